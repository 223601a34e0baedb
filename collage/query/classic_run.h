#pragma once

#include <optional>
#include <vector>

#include "collage/query/passes_json.h"

namespace collage {

/// What the classic flow knows of one function so far. Stages that did not run are empty.
struct FunctionStages {
  const NamedFunction* function;
  std::vector<NestedSubGraph> composites;
  std::optional<std::vector<SupportedRegion>> supported;
  std::optional<std::vector<SupportedRegion>> assigned;
  std::optional<std::vector<BackendRegion>> regions;
  /// What `partition` has made functions.
  std::vector<BackendRegion> partitions;
};

/// One run of passes over the functions of a program, each pass answered as docs/query.md says. A pass that needs an earlier one which
/// did not run, and was not given as "assignment" or "regions", runs it first.
class ClassicRun {
 public:
  static Result<ClassicRun> Start(const QueryProgram& program, const JsonReader& query, const std::vector<PassRequest>& passes);

  Result<Json> Run(const PassRequest& pass);

 private:
  ClassicRun(const QueryProgram& program, const JsonReader& query) : program_(&program), query_(query), module_(program.module()) {}

  Result<Json> FindTheComposites(const PassRequest& pass);
  Result<Json> AnnotateAll(const PassRequest& pass);
  Result<Json> DeconflictAll(const PassRequest& pass);
  Result<Json> MergeAll(const PassRequest& pass);
  Result<Json> PartitionAll(const PassRequest& pass);
  Result<Json> FuseAll(const PassRequest& pass);
  Result<Json> InlineAll(const PassRequest& pass);

  /// What the pass needs from those before it, made with its own parameters where nobody has made it.
  Status NeedSupported(const PassRequest& pass);
  Status NeedAssigned(const PassRequest& pass);
  Status NeedRegions(const PassRequest& pass);
  [[nodiscard]] Json RegionToJson(const NamedFunction& function, size_t backend, const SubGraph& sub_graph) const;
  /// What the program itself calls as a composite is one of "composites", too.
  void AddCalledComposites(const NamedFunction& function, const IndexSet& inside, Json& composites) const;
  [[nodiscard]] Json ToJson(const NamedFunction& function, const SupportedRegion& region) const;
  Result<Json> PartitionEntry(const NamedFunction& function, const BackendRegion& region, bool bind_constants) const;

  const QueryProgram* program_;
  JsonReader query_;
  IRModule module_;  ///< as `partition` and `inline` have left it
  QueryBackends backends_;
  std::vector<std::string> labels_;  // of all composites
  std::vector<FunctionStages> functions_;
  std::vector<PatternRule> table_;
  bool bind_constants_ = true;
};

}  // namespace collage
