#include "collage/explain/page.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "collage/explain/elsewhere.h"
#include "collage/explain/page_template.h"
#include "collage/explain/what_if_report.h"

namespace collage {
namespace {

using Json = nlohmann::ordered_json;

const char* NameOf(Elsewhere::Known known) {
  switch (known) {
    case Elsewhere::Known::kPrice:
      return "price";
    case Elsewhere::Known::kNoCandidate:
      return "no candidate";
    case Elsewhere::Known::kRefused:
      return "refused";
    case Elsewhere::Known::kNotTimed:
      return "not timed";
    case Elsewhere::Known::kNoPlan:
      return "no plan";
    case Elsewhere::Known::kNotSearched:
      return "not searched";
  }
  return "";
}

/// Kernels that plans name by a number: each is written once, however many plans have it.
class KernelTable {
 public:
  explicit KernelTable(const RecordedProblem& recorded) : recorded_(recorded) {}

  Json NumbersOf(const std::vector<SearchChoice>& choices) {
    Json numbers = Json::array();
    for (const SearchChoice& choice : choices) numbers.push_back(NumberOf(choice));
    return numbers;
  }
  Json Take() { return std::move(kernels_); }

 private:
  size_t NumberOf(const SearchChoice& choice) {
    const auto [at, is_new] = number_.try_emplace(choice, kernels_.size());
    if (!is_new) return at->second;
    const SearchCandidate& candidate = recorded_.problem.candidates[choice.candidate];
    const SearchVariant& variant = candidate.variants[choice.variant];
    Json kernel = {{"backend", candidate.is_partition ? recorded_.backends[candidate.backend] : "host"},
                   {"variant", recorded_.variants.empty() ? "" : recorded_.variants[choice.candidate][choice.variant]},
                   {"inside", candidate.inside.ToVector()}};
    kernel["cost_us"] = variant.cost.IsKnown() ? Json(variant.cost.ToMicroseconds()) : Json();
    kernels_.push_back(std::move(kernel));
    return at->second;
  }

  const RecordedProblem& recorded_;
  std::map<SearchChoice, size_t> number_;
  Json kernels_ = Json::array();
};

Json ElsewhereJson(const RecordedProblem& recorded, KernelTable& kernels) {
  Json all = Json::array();
  for (const std::vector<Elsewhere>& of_node : FindElsewhere(recorded)) {
    Json rows = Json::array();
    for (const Elsewhere& one : of_node) {
      Json row = {{"backend", recorded.backends[one.backend]}, {"known", NameOf(one.known)}};
      if (one.known == Elsewhere::Known::kPrice) {
        row["extra_us"] = one.extra.ToMicroseconds();
        row["kernels"] = kernels.NumbersOf(one.choices);
      }
      rows.push_back(std::move(row));
    }
    all.push_back(std::move(rows));
  }
  return all;
}

Json AloneJson(const RecordedProblem& recorded, KernelTable& kernels) {
  Json all = Json::array();
  for (const AlonePlan& alone : FindAlone(recorded)) {
    all.push_back({{"backend", recorded.backends[alone.backend]},
                   {"cost_us", alone.plan.cost.ToMicroseconds()},
                   {"partitions", alone.plan.partitions},
                   {"left_to_others", alone.left_to_others},
                   {"kernels", kernels.NumbersOf(alone.plan.choices)}});
  }
  return all;
}

/// What the search knew, without the candidates that no plan shown has.
Json ProblemJson(const RecordedProblem& recorded) {
  KernelTable kernels(recorded);
  Json nodes = Json::array();
  for (size_t node = 0; node < recorded.nodes.size(); ++node) {
    nodes.push_back({{"name", recorded.nodes[node]},
                     {"operator", recorded.operators[node]},
                     {"nodes", recorded.onnx_nodes.empty() ? Json::array() : Json(recorded.onnx_nodes[node])}});
  }
  Json tensors = Json::array();
  for (const SearchTensor& tensor : recorded.problem.tensors) {
    const Json producer = tensor.producer == SearchTensor::kOutside ? Json() : Json(tensor.producer);
    tensors.push_back({producer, tensor.consumers, tensor.is_result ? 1 : 0});
  }
  Json problem = {{"backends", recorded.backends}, {"nodes", std::move(nodes)}, {"tensors", std::move(tensors)}};
  problem["chosen"] = kernels.NumbersOf(recorded.chosen);
  problem["chosen_us"] = recorded.chosen.empty() ? Json() : Json(PriceOfCover(recorded.problem, recorded.chosen).ToMicroseconds());
  problem["elsewhere"] = ElsewhereJson(recorded, kernels);
  problem["alone"] = AloneJson(recorded, kernels);
  problem["kernels"] = kernels.Take();
  return problem;
}

Json RunJson(const PageProfile& profile) {
  if (profile.steps.empty()) return {{"why_not", profile.why_not_run}};
  Json steps = Json::array();
  for (const RunStep& step : profile.steps) {
    steps.push_back(
        {{"kind", step.kind}, {"name", step.name}, {"device", step.device}, {"begin_us", step.begin_us}, {"took_us", step.took_us}});
  }
  return {{"run_us", profile.run_us}, {"steps", std::move(steps)}};
}

Result<Json> ProfileJson(const PageProfile& profile) {
  const CompileReport report = COLLAGE_TRY(ReportFromJson(profile.metadata));
  Json json = {{"name", ProfileName(report)}, {"report", Json::parse(ToJson(report))}, {"run", RunJson(profile)}};
  const Result<RecordedProblem> recorded = RecordedOfMetadata(profile.metadata);
  if (recorded)
    json["problem"] = ProblemJson(*recorded);
  else
    json["no_problem"] = recorded.error().message;
  return json;
}

/// JSON inside of an HTML script: nothing in it may end the script or begin a comment.
std::string Embeddable(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  return safe;
}

std::string Escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else
      safe += c;
  }
  return safe;
}

}  // namespace

Result<std::string> ReportPage(const std::string& file, const std::vector<PageProfile>& profiles) {
  Json all = Json::array();
  for (const PageProfile& profile : profiles) all.push_back(COLLAGE_TRY(ProfileJson(profile)));
  const Json data = {{"file", file}, {"profiles", std::move(all)}};
  const std::pair<std::string_view, std::string> parts[] = {
      {"@TITLE@", Escaped(file)}, {"@STYLE@", kPageStyle}, {"@DATA@", Embeddable(data)}, {"@SCRIPT@", kPageScript}};
  // Each place is looked for in the template only, so that what was put in is never searched.
  std::string page;
  std::string_view rest = kPageFrame;
  for (const auto& [place, content] : parts) {
    const size_t at = rest.find(place);
    page.append(rest.substr(0, at)).append(content);
    rest.remove_prefix(at + place.size());
  }
  return page.append(rest);
}

}  // namespace collage
