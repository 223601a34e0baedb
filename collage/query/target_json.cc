#include "collage/query/target_json.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <unordered_set>

#include "collage/query/sub_graph_json.h"

namespace collage {

Result<QueryTarget> TargetFrom(const JsonReader& reader) {
  if (reader.IsObject()) {
    COLLAGE_TRY_STATUS(reader.OnlyFields({"name", "target"}));
    return TargetFrom(COLLAGE_TRY(reader.At(reader.Has("target") ? "target" : "name")));
  }
  QueryTarget target{COLLAGE_TRY(reader.String()), ""};
  std::istringstream words(target.text);
  std::string word;
  if (!(words >> word)) return reader.Expected("a target, such as \"cpu -compiler=dnnl\", or the name of a compiler");
  constexpr std::array<std::string_view, 11> kDevices = {"cpu",    "llvm",  "cuda",   "opencl", "gpu", "rocm",
                                                         "vulkan", "metal", "webgpu", "native", "host"};
  const bool is_device = std::find(kDevices.begin(), kDevices.end(), word) != kDevices.end();
  target.compiler = is_device ? "native" : word;
  constexpr std::string_view kCompiler = "-compiler=";
  while (words >> word) {
    if (word.starts_with(kCompiler)) target.compiler = word.substr(kCompiler.size());
  }
  if (target.compiler.empty()) return reader.Wrong("-compiler names no compiler");
  return target;
}

Json CandidatesToJson(const std::vector<NamedCandidate>& candidates) {
  Json list = Json::array();
  std::unordered_set<std::string> seen;
  for (const NamedCandidate& candidate : candidates) {
    const NamedFunction& function = *candidate.function;
    std::string unnamed_calls;
    candidate.sub_graph.inside().ForEach([&](PostDfsIndex node) {
      if (function.NameOf(node).empty() && CalledOp(function.graph()[node].expr)) unnamed_calls += " " + std::to_string(node);
    });
    Json inside = function.NamesOf(candidate.sub_graph.inside());
    if (inside.empty() && unnamed_calls.empty()) continue;
    Json entry = function.Tagged({{"inside", std::move(inside)}, {"nested", NestedToJson(function, candidate.sub_graph.nested())}});
    if (seen.insert(entry.dump() + unnamed_calls).second) list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace collage
