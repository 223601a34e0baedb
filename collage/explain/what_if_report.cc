#include "collage/explain/what_if_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "collage/support/short_list.h"

namespace collage {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRecorded = "recorded";
constexpr const char* kProfiles = "profiles";
constexpr const char* kModelIdentity = "model_identity";

Result<Json> ParseMetadata(const std::string& metadata) {
  Json json = Json::parse(metadata, nullptr, false);
  if (!json.is_object()) return Fail("the report of the file is malformed: it is no JSON object");
  return json;
}

std::string Write(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

/// Who holds a node in one of the two plans.
struct Holder {
  std::string name;  ///< "dnnl winograd", or "host"
  size_t candidate = 0;
  size_t sharers = 0;
  double cost_us = 0;
};

std::vector<Holder> HoldersOf(const RecordedProblem& recorded, const SearchResult& plan) {
  std::vector<Holder> holders(recorded.problem.node_count);
  for (const SearchChoice& choice : plan.choices) {
    const SearchCandidate& candidate = recorded.problem.candidates[choice.candidate];
    Holder holder{"host", choice.candidate, candidate.inside.Count(), candidate.variants[choice.variant].cost.ToMicroseconds()};
    if (candidate.is_partition) {
      holder.name = recorded.backends[candidate.backend];
      if (!recorded.variants.empty()) holder.name += " " + recorded.variants[choice.candidate][choice.variant];
    }
    candidate.inside.ForEach([&](size_t node) { holders[node] = holder; });
  }
  return holders;
}

struct Change {
  size_t node;
  Holder before;
  Holder after;
};

std::vector<Change> ChangesOf(const RecordedProblem& recorded, const WhatIfAnswer& answer) {
  const std::vector<Holder> before = HoldersOf(recorded, answer.before);
  const std::vector<Holder> after = HoldersOf(recorded, answer.after);
  std::vector<Change> changes;
  for (size_t node = 0; node < before.size(); ++node) {
    const bool same = before[node].candidate == after[node].candidate && before[node].name == after[node].name;
    if (!same) changes.push_back({node, before[node], after[node]});
  }
  return changes;
}

std::vector<std::string> OnnxNodesOf(const RecordedProblem& recorded, size_t node) {
  return recorded.onnx_nodes.empty() ? std::vector<std::string>() : recorded.onnx_nodes[node];
}

/// The ONNX nodes of several nodes, each once; where one has none, by its number.
std::vector<std::string> NamesOf(const RecordedProblem& recorded, const std::vector<size_t>& nodes) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const size_t node : nodes) {
    std::vector<std::string> of_node = OnnxNodesOf(recorded, node);
    if (of_node.empty()) of_node = {recorded.NameOf(node)};
    for (std::string& name : of_node) {
      if (seen.insert(name).second) names.push_back(std::move(name));
    }
  }
  return names;
}

Json PlanJson(const RecordedProblem& recorded, const SearchResult& plan) {
  Json partitions = Json::array();
  for (const SearchChoice& choice : plan.choices) {
    const SearchCandidate& candidate = recorded.problem.candidates[choice.candidate];
    if (!candidate.is_partition) continue;
    std::vector<std::string> nodes;
    candidate.inside.ForEach([&](size_t node) { nodes.push_back(recorded.nodes[node]); });
    Json onnx_nodes = Json::array();
    if (!recorded.onnx_nodes.empty()) onnx_nodes = NamesOf(recorded, candidate.inside.ToVector());
    partitions.push_back({{"backend", recorded.backends[candidate.backend]},
                          {"variant", recorded.variants.empty() ? "" : recorded.variants[choice.candidate][choice.variant]},
                          {"operators", nodes},
                          {"nodes", std::move(onnx_nodes)},
                          {"cost_us", candidate.variants[choice.variant].cost.ToMicroseconds()}});
  }
  return {{"cost_us", plan.cost.ToMicroseconds()}, {"partitions", std::move(partitions)}};
}

std::string QuestionText(const WhatIf& question) {
  std::string text;
  for (const std::string& word : question.forbid) text += " --forbid " + word;
  for (const std::string& word : question.pin) text += " --pin " + word;
  for (const std::string& word : question.penalty) text += " --penalty " + word;
  return text;
}

std::string HolderText(const Holder& holder) {
  if (holder.name == "host") return holder.name;
  return fmt::format("{} {:.1f} us{}", holder.name, holder.cost_us,
                     holder.sharers > 1 ? fmt::format(" for {} operators", holder.sharers) : std::string());
}

std::string ChangeText(const std::string& what, const Holder& before, const Holder& after) {
  return fmt::format("  {:<32} {}  ->  {}\n", what, HolderText(before), HolderText(after));
}

/// What leaves one partition for another is one line.
std::string ChangesByPartition(const RecordedProblem& recorded, const std::vector<Change>& changes) {
  std::map<std::pair<size_t, size_t>, size_t> group_of;  // by the candidates before and after
  std::vector<std::vector<size_t>> nodes;
  std::vector<const Change*> first;
  for (const Change& change : changes) {
    const auto [group, is_new] = group_of.try_emplace({change.before.candidate, change.after.candidate}, nodes.size());
    if (is_new) {
      nodes.emplace_back();
      first.push_back(&change);
    }
    nodes[group->second].push_back(change.node);
  }
  std::string text;
  for (size_t i = 0; i < nodes.size(); ++i)
    text += ChangeText(CountedList(NamesOf(recorded, nodes[i]), "nodes"), first[i]->before, first[i]->after);
  return text;
}

/// In one line. A model may say what is no UTF-8.
std::string WriteLine(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// A field that an object has not, behind its others. The texts may be large, and are not read for it.
std::string WithField(std::string object, const char* name, const std::string& value) {
  object.back() = ',';
  return object += WriteLine(name) + ":" + value + "}";
}

}  // namespace

std::string ToMetadata(const CompileReport& report, const RecordedProblem& recorded) {
  return WithField(ToJson(report, JsonLines::kOne), kRecorded, ToJson(recorded));
}

std::string WithReport(const std::string& metadata, const CompileReport& report) {
  const Json old = Json::parse(metadata);
  Json json = Json::parse(ToJson(report));
  if (const auto recorded = old.find(kRecorded); recorded != old.end()) json[kRecorded] = *recorded;
  return WriteLine(json);
}

std::string JoinMetadata(const std::vector<std::string>& profiles) {
  Json all = Json::array();
  for (const std::string& profile : profiles) all.push_back(Json::parse(profile));
  const Json first = all[0];
  return Json{{"model", first.at("model")}, {"threads", first.at("threads")}, {kProfiles, std::move(all)}}.dump();
}

std::string WithModel(const std::string& metadata, const std::string& identity, const ModelMetadata& model) {
  const Json of_model = {{"producer_name", model.producer_name},
                         {"graph_name", model.graph_name},
                         {"domain", model.domain},
                         {"description", model.description},
                         {"graph_description", model.graph_description},
                         {"version", model.version},
                         {"custom_metadata_map", model.custom_metadata_map}};
  return WithField(WithField(metadata, kModelIdentity, WriteLine(identity)), "model_metadata", WriteLine(of_model));
}

Result<std::string> ModelIdentityOfMetadata(const std::string& metadata) {
  const Json json = COLLAGE_TRY(ParseMetadata(metadata));
  const auto identity = json.find(kModelIdentity);
  return identity != json.end() && identity->is_string() ? identity->get<std::string>() : std::string();
}

Result<std::vector<std::string>> MetadataOfProfiles(const std::string& metadata) {
  const Json json = COLLAGE_TRY(ParseMetadata(metadata));
  if (!json.contains(kProfiles)) return std::vector<std::string>{metadata};
  std::vector<std::string> profiles;
  for (const Json& profile : json[kProfiles]) profiles.push_back(profile.dump());
  return profiles;
}

Result<std::string> ReportOfMetadata(const std::string& metadata) {
  Json json = COLLAGE_TRY(ParseMetadata(metadata));
  json.erase(kRecorded);
  json.erase(kModelIdentity);
  if (json.contains(kProfiles)) {
    for (Json& profile : json[kProfiles]) profile.erase(kRecorded);
  }
  return Write(json);
}

Result<RecordedProblem> RecordedOfMetadata(const std::string& metadata) {
  const Json json = COLLAGE_TRY(ParseMetadata(metadata));
  if (!json.contains(kRecorded))
    return Fail("carries no prices to search again with: it has control flow, or is of before; compile the model again");
  return ParseRecorded(json[kRecorded].dump());
}

std::string WhatIfText(const RecordedProblem& recorded, const WhatIf& question, const WhatIfAnswer& answer, ExplanationDetail detail) {
  std::string text;
  const double before = answer.before.cost.ToMicroseconds();
  const double after = answer.after.cost.ToMicroseconds();
  text += fmt::format("before:{:>7} partitions {:>12.1f} us\n", answer.before.partitions, before);
  text += fmt::format("after: {:>7} partitions {:>12.1f} us  ({:+.1f} us, {:+.1f}%)  under{}\n", answer.after.partitions, after,
                      after - before, 100 * (after / before - 1), QuestionText(question));
  if (answer.lower_bound < answer.after.cost) {
    text += fmt::format("what was never measured might bring it down to {:.1f} us\n", answer.lower_bound.ToMicroseconds());
  }
  if (answer.chosen_cost && *answer.chosen_cost != answer.before.cost) {
    text += fmt::format(
        "(the file's own plan is {:.1f} us at these prices: it was chosen by the race of whole plans, or before all of them "
        "were known)\n",
        answer.chosen_cost->ToMicroseconds());
  }
  const std::vector<Change> changes = ChangesOf(recorded, answer);
  text += changes.empty() ? "nothing changes hands\n" : "what changes hands:\n";
  if (detail == ExplanationDetail::kPartitions) return text + ChangesByPartition(recorded, changes);
  for (const Change& change : changes) text += ChangeText(recorded.NameOf(change.node), change.before, change.after);
  return text;
}

std::string WhatIfJson(const RecordedProblem& recorded, const WhatIf& question, const WhatIfAnswer& answer) {
  Json changes = Json::array();
  for (const Change& change : ChangesOf(recorded, answer)) {
    changes.push_back({{"name", recorded.nodes[change.node]},
                       {"operator", recorded.operators[change.node]},
                       {"nodes", OnnxNodesOf(recorded, change.node)},
                       {"before", change.before.name},
                       {"after", change.after.name}});
  }
  const Json json = {{"question", {{"forbid", question.forbid}, {"pin", question.pin}, {"penalty", question.penalty}}},
                     {"before", PlanJson(recorded, answer.before)},
                     {"after", PlanJson(recorded, answer.after)},
                     {"difference_us", (answer.after.cost - answer.before.cost).ToMicroseconds()},
                     {"lower_bound_us", answer.lower_bound.ToMicroseconds()},
                     {"chosen_us", answer.chosen_cost ? Json(answer.chosen_cost->ToMicroseconds()) : Json()},
                     {"changes", std::move(changes)}};
  return Write(json);
}

}  // namespace collage
