#include "collage/search/recorded.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "collage/support/short_list.h"

namespace collage {
namespace {

using nlohmann::json;

struct Conversion {
  size_t tensor;
  size_t from;
  size_t to;
  Cost cost;
};

/// Every conversion from a layout in which a tensor may be made to one in which it may be wanted.
std::vector<Conversion> PossibleConversions(const SearchProblem& problem) {
  std::vector<std::set<size_t>> made(problem.tensors.size(), {0});
  std::vector<std::set<size_t>> wanted(problem.tensors.size());
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    if (problem.tensors[t].is_result) wanted[t].insert(0);
  }
  for (const SearchCandidate& candidate : problem.candidates) {
    for (const SearchVariant& variant : candidate.variants) {
      if (variant.cost.IsInvalid()) continue;
      for (size_t i = 0; i < candidate.outputs.size(); ++i) made[candidate.outputs[i]].insert(variant.output_layouts[i]);
      for (size_t i = 0; i < candidate.inputs.size(); ++i) wanted[candidate.inputs[i]].insert(variant.input_layouts[i]);
    }
  }
  std::vector<Conversion> possible;
  for (size_t t = 0; t < problem.tensors.size() && problem.conversion; ++t) {
    for (const size_t from : made[t]) {
      for (const size_t to : wanted[t]) {
        if (from != to) possible.push_back({t, from, to, problem.conversion(t, from, to)});
      }
    }
  }
  return possible;
}

/// Conversions that were not recorded cannot be made.
void SetConversions(SearchProblem& problem, const std::vector<Conversion>& conversions) {
  auto table = std::make_shared<std::unordered_map<size_t, Cost>>();
  const size_t layouts = problem.layout_count;
  for (const Conversion& one : conversions) (*table)[(one.tensor * layouts + one.from) * layouts + one.to] = one.cost;
  problem.conversion = [table, layouts](size_t tensor, size_t from, size_t to) {
    if (from == to) return Cost();
    const auto at = table->find((tensor * layouts + from) * layouts + to);
    return at == table->end() ? Cost::Invalid() : at->second;
  };
}

json ToNumber(Cost cost) {
  if (cost.IsUnknown()) return "unknown";
  if (cost.IsInvalid()) return "invalid";
  return std::llround(cost.ToSeconds() * 1e12);
}

Cost ToCost(const json& value) {
  if (value.is_string()) return value.get<std::string>() == "unknown" ? Cost::Unknown() : Cost::Invalid();
  return Cost::Seconds(value.get<double>() * 1e-12);
}

json ToJson(const SearchCandidate& candidate, const std::vector<Cost>& bounds, const std::vector<std::string>* names) {
  json variants = json::array();
  for (size_t v = 0; v < candidate.variants.size(); ++v) {
    const SearchVariant& variant = candidate.variants[v];
    variants.push_back({{"cost", ToNumber(variant.cost)},
                        {"bound", ToNumber(bounds[v])},
                        {"inputs", variant.input_layouts},
                        {"outputs", variant.output_layouts}});
    if (names) variants.back()["name"] = (*names)[v];
  }
  return {{"inside", candidate.inside.ToVector()}, {"backend", candidate.backend},    {"inputs", candidate.inputs},
          {"outputs", candidate.outputs},          {"variants", std::move(variants)}, {"is_partition", candidate.is_partition}};
}

/// Throws where a field is missing or of another kind; `bounds` and `names` get those of its variants.
/// Empty where one is not below the limit: such a set may be larger than all memory.
IndexSet ReadNodes(const json& text, size_t limit) {
  const auto nodes = text.get<std::vector<size_t>>();
  const bool fit = std::all_of(nodes.begin(), nodes.end(), [&](size_t node) { return node < limit; });
  return fit ? IndexSet(nodes) : IndexSet();
}

SearchCandidate ReadCandidate(const json& text, size_t node_count, std::vector<Cost>& bounds, std::vector<std::string>& names) {
  SearchCandidate candidate;
  candidate.inside = ReadNodes(text.at("inside"), node_count);
  candidate.backend = text.at("backend").get<size_t>();
  candidate.inputs = text.at("inputs").get<std::vector<size_t>>();
  candidate.outputs = text.at("outputs").get<std::vector<size_t>>();
  candidate.is_partition = text.at("is_partition").get<bool>();
  for (const json& variant : text.at("variants")) {
    candidate.variants.push_back(
        {ToCost(variant.at("cost")), variant.at("inputs").get<std::vector<size_t>>(), variant.at("outputs").get<std::vector<size_t>>()});
    bounds.push_back(ToCost(variant.at("bound")));
    names.push_back(variant.value("name", std::string()));
  }
  return candidate;
}

/// What a damaged or foreign file could break later.
Status CheckIndices(const RecordedProblem& recorded) {
  const SearchProblem& problem = recorded.problem;
  const auto all_below = [](const std::vector<size_t>& list, size_t limit) {
    return std::all_of(list.begin(), list.end(), [&](size_t index) { return index < limit; });
  };
  if (problem.layout_count < 1) return Fail("recorded problem: layout_count is zero");
  if (recorded.operators.size() != problem.node_count) return Fail("recorded problem: operators are not as many as nodes");
  if (!recorded.onnx_nodes.empty() && recorded.onnx_nodes.size() != problem.node_count)
    return Fail("recorded problem: onnx_nodes are not as many as nodes");
  for (const SearchTensor& tensor : problem.tensors) {
    const bool known = tensor.producer == SearchTensor::kOutside || tensor.producer < problem.node_count;
    if (!known || !all_below(tensor.consumers, problem.node_count))
      return Fail("recorded problem: a tensor names a node that does not exist");
  }
  for (const SearchCandidate& candidate : problem.candidates) {
    bool fits = candidate.backend < problem.backend_count && !candidate.inside.Empty() && candidate.inside.Last() < problem.node_count;
    fits = fits && all_below(candidate.inputs, problem.tensors.size()) && all_below(candidate.outputs, problem.tensors.size());
    for (const SearchVariant& variant : candidate.variants) {
      fits = fits && variant.input_layouts.size() == candidate.inputs.size() && variant.output_layouts.size() == candidate.outputs.size();
      fits = fits && all_below(variant.input_layouts, problem.layout_count) && all_below(variant.output_layouts, problem.layout_count);
    }
    if (!fits) return Fail("recorded problem: a candidate names a backend, node, tensor or layout that does not exist");
  }
  if (problem.transition.size() != problem.backend_count && !problem.transition.empty())
    return Fail("recorded problem: transitions are not as many as backends");
  for (const std::vector<Cost>& row : problem.transition) {
    if (row.size() != problem.backend_count) return Fail("recorded problem: transitions are not as many as backends");
  }
  for (const RecordedCall& call : recorded.calls) {
    const bool fits = call.candidate < problem.candidates.size() && call.library < recorded.backends.size() && !call.nodes.Empty() &&
                      call.nodes.Last() < problem.node_count;
    if (!fits) return Fail("recorded problem: a call of a library names a candidate, backend or node that does not exist");
  }
  for (const SearchChoice& choice : recorded.chosen) {
    if (choice.candidate >= problem.candidates.size() || choice.variant >= problem.candidates[choice.candidate].variants.size())
      return Fail("recorded problem: the chosen plan names a candidate or variant that does not exist");
  }
  return {};
}

}  // namespace

std::string RecordedProblem::NameOf(size_t node) const {
  const bool is_known = !onnx_nodes.empty() && !onnx_nodes[node].empty();
  return (is_known ? ShortList(onnx_nodes[node]) : nodes[node]) + " (" + operators[node] + ")";
}

bool RecordedProblem::IsCalled(size_t node, const std::string& name) const {
  if (nodes[node] == name || operators[node] == name) return true;
  return !onnx_nodes.empty() && std::find(onnx_nodes[node].begin(), onnx_nodes[node].end(), name) != onnx_nodes[node].end();
}

RecordedProblem Record(const SearchProblem& problem, std::vector<std::vector<Cost>> bounds, std::vector<std::string> backends,
                       std::vector<std::string> nodes, std::vector<std::string> operators) {
  RecordedProblem recorded{problem, std::move(bounds), std::move(backends), std::move(nodes), std::move(operators)};
  SetConversions(recorded.problem, PossibleConversions(recorded.problem));
  return recorded;
}

std::string ToJson(const RecordedProblem& recorded) {
  const SearchProblem& problem = recorded.problem;
  json tensors = json::array();
  for (const SearchTensor& tensor : problem.tensors) {
    const json producer = tensor.producer == SearchTensor::kOutside ? json() : json(tensor.producer);
    tensors.push_back({{"producer", producer}, {"consumers", tensor.consumers}, {"is_result", tensor.is_result}});
  }
  json candidates = json::array();
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    candidates.push_back(ToJson(problem.candidates[c], recorded.bounds[c], recorded.variants.empty() ? nullptr : &recorded.variants[c]));
  }
  json chosen = json::array();
  for (const SearchChoice& choice : recorded.chosen) chosen.push_back({choice.candidate, choice.variant});
  json conversions = json::array();
  for (const Conversion& one : PossibleConversions(problem)) conversions.push_back({one.tensor, one.from, one.to, ToNumber(one.cost)});
  json transitions = json::array();
  for (const std::vector<Cost>& row : problem.transition) {
    json costs = json::array();
    for (const Cost cost : row) costs.push_back(ToNumber(cost));
    transitions.push_back(std::move(costs));
  }
  json calls = json::array();
  for (const RecordedCall& call : recorded.calls) calls.push_back({call.candidate, call.library, call.nodes.ToVector()});
  return json{{"layout_count", problem.layout_count},
              {"tensors", std::move(tensors)},
              {"candidates", std::move(candidates)},
              {"conversions", std::move(conversions)},
              {"transitions", std::move(transitions)},
              {"backends", recorded.backends},
              {"nodes", recorded.nodes},
              {"operators", recorded.operators},
              {"onnx_nodes", recorded.onnx_nodes},
              {"calls", std::move(calls)},
              {"chosen", std::move(chosen)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);  // names are as the model has them, which may be no UTF-8
}

Result<RecordedProblem> ParseRecorded(const std::string& text) {
  RecordedProblem recorded;
  SearchProblem& problem = recorded.problem;
  std::vector<Conversion> conversions;
  try {
    const json root = json::parse(text);
    recorded.backends = root.at("backends").get<std::vector<std::string>>();
    recorded.nodes = root.at("nodes").get<std::vector<std::string>>();
    recorded.operators = root.at("operators").get<std::vector<std::string>>();
    recorded.onnx_nodes = root.value("onnx_nodes", std::vector<std::vector<std::string>>());
    problem.node_count = recorded.nodes.size();
    problem.backend_count = recorded.backends.size();
    problem.layout_count = root.at("layout_count").get<size_t>();
    for (const json& tensor : root.at("tensors")) {
      const json& producer = tensor.at("producer");
      problem.tensors.push_back({producer.is_null() ? SearchTensor::kOutside : producer.get<size_t>(),
                                 tensor.at("consumers").get<std::vector<size_t>>(), tensor.at("is_result").get<bool>()});
    }
    for (const json& candidate : root.at("candidates")) {
      recorded.bounds.emplace_back();
      recorded.variants.emplace_back();
      problem.candidates.push_back(ReadCandidate(candidate, problem.node_count, recorded.bounds.back(), recorded.variants.back()));
    }
    for (const json& call : root.value("calls", json::array()))
      recorded.calls.push_back({call.at(0).get<size_t>(), call.at(1).get<size_t>(), ReadNodes(call.at(2), problem.node_count)});
    for (const json& choice : root.at("chosen")) recorded.chosen.push_back({choice.at(0).get<size_t>(), choice.at(1).get<size_t>()});
    for (const json& one : root.at("conversions"))
      conversions.push_back({one.at(0).get<size_t>(), one.at(1).get<size_t>(), one.at(2).get<size_t>(), ToCost(one.at(3))});
    for (const json& row : root.at("transitions")) {
      problem.transition.emplace_back();
      for (const json& cost : row) problem.transition.back().push_back(ToCost(cost));
    }
  } catch (const json::exception& error) {
    return Fail(std::string("recorded problem: ") + error.what());
  }
  const auto is_unnamed = [](const std::vector<std::string>& names) {
    return std::all_of(names.begin(), names.end(), [](const std::string& name) { return name.empty(); });
  };
  if (std::all_of(recorded.variants.begin(), recorded.variants.end(), is_unnamed)) recorded.variants.clear();
  COLLAGE_TRY_STATUS(CheckIndices(recorded));
  SetConversions(problem, conversions);
  return recorded;
}

}  // namespace collage
