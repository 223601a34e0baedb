#include "collage/backend/cudnn/plan.h"

#include <algorithm>
#include <charconv>

namespace collage::cudnn {
namespace {

constexpr std::string_view kEngine = "engine";

// Each choice is compiled, compared and timed. The heuristics order them by the time they expect; in lists for an H100 those behind the
// first four are settings of the same engines, or engines that can do anything.
constexpr size_t kMostChoices = 4;
// Neighbours in the lists are often one engine with another tile.
constexpr size_t kMostOfOneEngine = 2;

/// Products of float32 stay such, unless they are to be in TF32: tensor cores round them so, and what converts its inputs to something
/// else. And a program gives the same results whenever it runs.
bool IsAsExact(const std::vector<cudnnBackendNumericalNote_t>& notes, const Layer& layer) {
  const auto has = [&](cudnnBackendNumericalNote_t note) { return std::find(notes.begin(), notes.end(), note) != notes.end(); };
  if (has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) || has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  if (layer.dtype != DType::kFloat32) return true;
  return !has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) && has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) == layer.in_tf32;
}

Result<std::vector<cudnnBackendNumericalNote_t>> NotesOf(const Descriptor& engine) {
  return engine.Get<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
}

template <class Value>
Result<Value> GetOnly(const Descriptor& descriptor, cudnnBackendAttributeName_t name) {
  const std::vector<Value> values = COLLAGE_TRY(descriptor.Get<Value>(name, 1));
  if (values.empty()) return Fail("cudnn: an attribute has no value");
  return values[0];
}

/// Nothing where it computes less exactly.
Result<std::optional<Choice>> ReadChoice(const Descriptor& configuration, const Layer& layer) {
  const Descriptor engine = COLLAGE_TRY(configuration.GetOne(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR));
  if (!IsAsExact(COLLAGE_TRY(NotesOf(engine)), layer)) return std::nullopt;
  Choice choice{COLLAGE_TRY(GetOnly<int64_t>(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX)), {}};
  const std::vector<Descriptor> knobs =
      COLLAGE_TRY(configuration.GetAll(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS));
  for (const Descriptor& knob : knobs) {
    choice.knobs.emplace_back(COLLAGE_TRY(GetOnly<cudnnBackendKnobType_t>(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE)),
                              COLLAGE_TRY(GetOnly<int64_t>(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE)));
  }
  return choice;
}

Result<std::vector<Descriptor>> ListedConfigurations(const Graph& graph, cudnnBackendHeurMode_t mode) {
  const Descriptor heuristics = COLLAGE_TRY(DescriptorBuilder(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
                                                .Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.operations)
                                                .Set(CUDNN_ATTR_ENGINEHEUR_MODE, mode)
                                                .Finalised());
  const size_t count = COLLAGE_TRY(heuristics.Count(CUDNN_ATTR_ENGINEHEUR_RESULTS));
  return heuristics.GetAll(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count);
}

/// Of one list of the heuristics; none where the library makes no such list of this graph.
Result<std::vector<Choice>> ChoicesOf(const Graph& graph, const Layer& layer, cudnnBackendHeurMode_t mode) {
  std::vector<Choice> choices;
  const Result<std::vector<Descriptor>> listed = ListedConfigurations(graph, mode);
  if (!listed) return choices;
  for (const Descriptor& configuration : *listed) {
    std::optional<Choice> choice = COLLAGE_TRY(ReadChoice(configuration, layer));
    if (!choice) continue;
    const auto is_same_engine = [&](const Choice& other) { return other.engine == choice->engine; };
    if (static_cast<size_t>(std::count_if(choices.begin(), choices.end(), is_same_engine)) == kMostOfOneEngine) continue;
    choices.push_back(std::move(*choice));
    if (choices.size() == kMostChoices) break;
  }
  return choices;
}

/// Takes a number, and `behind` it, off the front of a text.
std::optional<int64_t> TakeNumber(std::string_view& text, char behind) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size() || *end != behind) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()) + 1);
  return number;
}

Result<Descriptor> MakeEngine(const Graph& graph, const Choice& choice) {
  return DescriptorBuilder(CUDNN_BACKEND_ENGINE_DESCRIPTOR)
      .Set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.operations)
      .Set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, choice.engine)
      .Finalised();
}

Result<std::vector<Descriptor>> MakeKnobs(const Choice& choice) {
  std::vector<Descriptor> knobs;
  for (const auto& [knob, value] : choice.knobs) {
    knobs.push_back(COLLAGE_TRY(DescriptorBuilder(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)
                                    .Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, static_cast<cudnnBackendKnobType_t>(knob))
                                    .Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value)
                                    .Finalised()));
  }
  return knobs;
}

Result<Descriptor> MakeConfiguration(const Descriptor& engine, const std::vector<Descriptor>& knobs) {
  DescriptorBuilder configuration(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  configuration.Set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  std::vector<const Descriptor*> set;
  for (const Descriptor& knob : knobs) set.push_back(&knob);
  if (!set.empty()) configuration.Set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, set);
  return configuration.Finalised();
}

}  // namespace

std::string NameOf(const Choice& choice) {
  std::string name = std::string(kEngine) + std::to_string(choice.engine);
  for (size_t i = 0; i < choice.knobs.size(); ++i)
    name += (i == 0 ? "(" : ",") + std::to_string(choice.knobs[i].first) + "=" + std::to_string(choice.knobs[i].second);
  return choice.knobs.empty() ? name : name + ")";
}

std::optional<Choice> ChoiceNamed(std::string_view name) {
  if (!name.starts_with(kEngine)) return std::nullopt;
  // One form for all: a number, and then a sign.
  std::string text(name.substr(kEngine.size()));
  if (!text.ends_with(')')) text += "(";
  std::string_view rest = text;
  const std::optional<int64_t> engine = TakeNumber(rest, '(');
  if (!engine) return std::nullopt;
  Choice choice{*engine, {}};
  while (!rest.empty()) {
    const std::optional<int64_t> knob = TakeNumber(rest, '=');
    const std::optional<int64_t> value = knob ? TakeNumber(rest, rest.find(',') == std::string_view::npos ? ')' : ',') : std::nullopt;
    if (!value) return std::nullopt;
    choice.knobs.emplace_back(*knob, *value);
  }
  return choice;
}

Result<std::vector<Choice>> ChoicesOf(const Graph& graph, const Layer& layer) {
  std::vector<Choice> choices = COLLAGE_TRY(ChoicesOf(graph, layer, CUDNN_HEUR_MODE_A));
  // A list that is ordered by time may hold what uses tensor cores alone; this one holds what runs at all.
  return choices.empty() ? ChoicesOf(graph, layer, CUDNN_HEUR_MODE_FALLBACK) : choices;
}

Result<Plan> MakePlan(Graph graph, const Choice& choice, const Layer& layer, cudnnHandle_t handle) {
  Descriptor engine = COLLAGE_TRY(MakeEngine(graph, choice));
  if (!IsAsExact(COLLAGE_TRY(NotesOf(engine)), layer))
    return Fail("cudnn: engine " + std::to_string(choice.engine) + " does not compute in " +
                (layer.in_tf32 ? "TF32" : std::string(Name(layer.dtype))));
  std::vector<Descriptor> parts = COLLAGE_TRY(MakeKnobs(choice));
  Descriptor configuration = COLLAGE_TRY(MakeConfiguration(engine, parts));
  Descriptor plan = COLLAGE_TRY(DescriptorBuilder(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
                                    .Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle)
                                    .Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration)
                                    .Finalised());
  const int64_t workspace = COLLAGE_TRY(GetOnly<int64_t>(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  parts.push_back(std::move(engine));
  parts.push_back(std::move(configuration));
  return Plan{std::move(graph), std::move(parts), std::move(plan), static_cast<size_t>(workspace)};
}

}  // namespace collage::cudnn
