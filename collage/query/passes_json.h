#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collage/partition/classic_flow.h"
#include "collage/query/program.h"

namespace collage {

/// A pass that a query asks for, and where its parameters may stand: in an object of its own, else beside the list of passes.
struct PassRequest {
  std::string name;
  std::vector<JsonReader> places;  ///< nearest first

  /// The nearest field of that name; null is none.
  [[nodiscard]] std::optional<JsonReader> Find(const std::string& field) const;
};

/// The annotate passes among these, and the one that runs with the parameters of the first pass that needs it and finds none.
std::vector<PassRequest> AnnotatePasses(const std::vector<PassRequest>& passes, const JsonReader& query);

/// The field "passes", a list, or "pass", one: "fuse", {"pass": "fuse", "level": 0} or {"fuse": {"level": 0}}. Without both, what
/// remains to be done from "assignment" (merge, partition) or "regions" (partition). Errors name the pass that is unknown.
Result<std::vector<PassRequest>> PassesFrom(const JsonReader& query);

/// merge-composite's table: "patterns", a list of {"label", "pattern", "check"}, or these fields of one.
Result<std::vector<PatternRule>> PatternTableFrom(const PassRequest& pass);

/// The backends of a query. Their position is their number; their count stands for native.
class QueryBackends {
 public:
  /// Of one annotate pass: "backends", a list of names, and "supports", by name; `labels` are those of composites, whose backends are
  /// meant where nothing is said of backends.
  static Result<QueryBackends> Read(const PassRequest& annotate, const std::vector<std::string>& labels);
  /// Of all passes of a query. Backends that only "assignment" or "regions" name come last and support nothing.
  static Result<QueryBackends> ReadAll(const std::vector<PassRequest>& passes, const JsonReader& query,
                                       const std::vector<std::string>& labels);

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] size_t native() const { return names_.size(); }
  [[nodiscard]] const std::string& NameOf(size_t backend) const { return backend < names_.size() ? names_[backend] : native_name_; }
  [[nodiscard]] bool AnyAsked() const { return is_asked_; }
  [[nodiscard]] std::vector<NamedRules> Rules() const;
  /// Errors on a backend that nothing has named.
  [[nodiscard]] Result<size_t> PositionOf(const std::string& name, const JsonReader& place) const;

 private:
  void Add(const std::string& name);
  Status ReadNames(const JsonReader& backends);
  Status ReadSupports(const JsonReader& supports, bool names_are_stated);
  Status Support(const std::string& name, const JsonReader& supports);

  std::vector<std::string> names_;
  std::map<std::string, BackendRules> rules_;
  std::string native_name_ = "native";
  bool is_asked_ = false;
};

/// "priority": names of backends, the first preferred. Empty when absent.
Result<PreferRegion> PriorityFrom(const PassRequest& pass, const QueryBackends& backends);

/// "assignment": backend -> nodes. A composite whose calls all go to one backend is one part; tuples and projections follow their
/// neighbours and need no mention. Errors on what is no call, and on one that two backends get.
Result<std::vector<SupportedRegion>> AssignmentFrom(const NamedFunction& function, const JsonReader& assignment,
                                                    const QueryBackends& backends, const std::vector<NestedSubGraph>& composites);
/// The function whose nodes an assignment names.
Result<const NamedFunction*> FunctionOfAssignment(const QueryProgram& program, const JsonReader& query);

/// "regions" as a list: an object by backend, of names or of lists of names, says the same.
Json RegionList(const JsonReader& regions);
/// "regions": a list of {"backend", "members", "composites"}, as the answers have it. By function.
Result<std::map<const NamedFunction*, std::vector<BackendRegion>>> RegionsFrom(const QueryProgram& program, const JsonReader& query,
                                                                               const QueryBackends& backends);

}  // namespace collage
