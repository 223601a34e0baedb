#pragma once

// One function, the targets it may run on, and all that could be chosen: found once, and then a value that nobody changes. What is known of
// its kernels is evidence beside it (evidence_store.h), and a plan is a value of its own (plan.h).

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "collage/candidate/gather.h"
#include "collage/dataflow/dataflow_graph.h"
#include "collage/decide/decide.h"
#include "collage/driver/constraints.h"
#include "collage/form/form.h"
#include "collage/pricing/pricer.h"
#include "collage/pricing/problem.h"
#include "collage/runtime/processors.h"
#include "collage/support/progress.h"
#include "collage/tensor/precision.h"

namespace collage {

struct OnnxModel;

/// A backend that takes part, in the order in which the targets were given.
struct PlacementTarget {
  const Backend* backend;
  std::string version;
  BackendRules rules;
  std::string target;        ///< "cpu -compiler=dnnl"
  bool is_fallback = false;  ///< runs only what no other backend can
  /// On which its kernels run; nothing: on the host. A backend that runs on several devices is a target for each.
  std::optional<Device> device = {};
  std::shared_ptr<DeviceContext> context = {};  ///< of that
};

/// The backends that the targets name, and the reference as the fallback for operators that none of them runs. No targets: all that are
/// present on the host, with `all_devices` on every device that some backend finds. Errors name a target that cannot be parsed, an unknown
/// compiler, or the reason of an absent one.
/// With `cpus`, a target of the CPU that names none by number is one on each of them too, but for graph compilers and backends of this
/// process: their threads are their own and stay the host's.
Result<std::vector<PlacementTarget>> ResolveTargets(const std::vector<std::string>& targets, const Device& device, bool all_devices = false,
                                                    const std::vector<CpuStatement>& cpus = {});
/// "opencl:0", "cpu:1 -processors=2-3": the device of a target that is not the host's, for records; empty for the host.
std::string DeviceText(const PlacementTarget& target);
/// Names of those that only this process has, whose kernels therefore are timed in it.
std::vector<std::string> TimedHere(const std::vector<PlacementTarget>& targets);

/// A way to compute something: an arm of the decision. Candidates with equal functions share it.
struct PlacedKernel {
  MeasurementKey key;
  size_t candidate = kNone;  ///< one of those that share it; kNone: a conversion
  Variant variant;           ///< of a conversion: the layout from which and that to which
  TensorType type;           ///< of a conversion
  size_t from = 0;           ///< of a conversion: the device, of the placement's
  size_t to = 0;             ///< likewise
  static constexpr size_t kNone = static_cast<size_t>(-1);
};

/// What may not lie on a device, because a plan that had it there needed more memory than the device has (device_memory.h).
struct KeptOffDevice {
  bool is_whole = false;                                   ///< nothing may
  std::set<TensorSource> tensors;                          ///< kernels of the device neither read nor write them
  IndexSet calls;                                          ///< those of the device compute none of them
  size_t most_bytes = std::numeric_limits<size_t>::max();  ///< of what plans need there, as far as is known before they are built
};

struct Placement {
  std::shared_ptr<const DataflowGraph> graph;  ///< of the function
  FormedGraph formed;                          ///< the same with all its forms; nodes of candidates and of `built` are of its graph
  std::shared_ptr<const OnnxModel> original;   ///< that the function was made of, for graph compilers; null: none
  std::vector<PlacementTarget> targets;
  std::vector<Device> devices;     ///< the host first
  std::vector<IndexSet> may_take;  ///< by target: the calls that it may take by what is said of devices. Empty: all
  /// Calls that take or give strings. Their elements are numbers of this process (tensor/strings.h): only the fallback, which is told them
  /// as texts, takes them.
  IndexSet of_strings;
  UserConstraints said;
  std::optional<Precision> precision;  ///< that kernels may compute in
  StatedRules stated_rules;
  std::vector<std::string> stated_forms;  ///< users' form rules, by name
  std::shared_ptr<const Constraints> constraints;
  std::vector<Refusal> refusals;  ///< what rules declined
  std::vector<PricedCandidate> candidates;
  std::vector<std::unordered_map<IndexSet, size_t>> partitions_of;  ///< by target: positions of candidates by what is inside
  FunctionProblem built;
  Arms arms;
  std::vector<PlacedKernel> kernels;  ///< numbered as in `arms`
  std::vector<IndexSet> coverable;    ///< search nodes that each target has a variant for
  std::vector<std::string> node_names;
  std::vector<KeptOffDevice> kept_off;  ///< by device; empty: nothing is
  uint64_t found_by_stated_rules = 0;   ///< a hash, of what stated forms are as well; zero where there are neither

  [[nodiscard]] const Expr& function() const { return graph->function(); }
  /// Whether a candidate computes something of a form.
  [[nodiscard]] bool IsOfForm(size_t candidate) const;
  /// Whether a choice is a kernel that uses the permitted precision.
  [[nodiscard]] bool UsesPrecision(const SearchChoice& choice) const {
    return candidates[choice.candidate].variants[choice.variant].variant.uses_precision;
  }
  [[nodiscard]] size_t OperatorCount() const { return built.nodes.size(); }
  [[nodiscard]] std::string NameOf(size_t target) const { return std::string(targets[target].backend->Name()); }
  /// Of a plan of that target alone: "dnnl", "opencl@opencl:0".
  [[nodiscard]] std::string TitleOf(size_t target) const;
  /// Position in `devices`.
  [[nodiscard]] size_t DeviceOf(size_t target) const;
  /// Position in `devices` of that in whose memory its kernels read and write: all CPUs share the host's.
  [[nodiscard]] size_t MemoryOf(size_t device) const { return devices[device].kind == DeviceKind::kCpu ? 0 : device; }
  [[nodiscard]] TensorPlace PlaceOf(size_t device, const Layout& layout) const;
  /// The candidate that is a partition of these nodes by this target, if any.
  [[nodiscard]] std::optional<size_t> FindPartition(size_t target, const IndexSet& inside) const;
  [[nodiscard]] std::optional<size_t> FindPartition(const PricedCandidate& like) const {
    return FindPartition(like.backend, like.candidate.sub_graph.inside());
  }
  /// Whether all that the candidate reads are inputs of the function.
  [[nodiscard]] bool ReadsInputsOnly(const PricedCandidate& candidate) const;
  /// Whether nothing that the candidate reads, writes or computes is kept off its device.
  [[nodiscard]] bool MayLie(size_t candidate) const;
  /// Whether neither what is said of devices nor strings keep a candidate from a target.
  [[nodiscard]] bool MayTake(size_t target, const IndexSet& inside) const;
  /// Of the function and the transitions that its prices inside of programs leave out.
  [[nodiscard]] uint64_t ContextHash() const;
  /// Whether the user states the rule of a target, which then is taken as it is.
  [[nodiscard]] bool HasStatedRule(size_t target) const;
  /// Of everything that a decision hangs on beside evidence: function, backends, versions, constraints, what stated rules have found, tuned
  /// schedules.
  [[nodiscard]] uint64_t DecisionHash() const;
  /// Targets, by their position, whose backend can run some operator; the fallback is none of them.
  [[nodiscard]] std::vector<size_t> Singles() const;
  /// All but the fallback's candidates for what another backend covers, and whole models as they came: these are plans of their own, which
  /// race as single backends'. Were they known before anything else, the search would begin with them, not with small kernels.
  [[nodiscard]] std::vector<bool> Competing() const;
  /// Whole models as they came.
  [[nodiscard]] std::vector<bool> OfOriginals() const;
  /// What the fallback takes.
  [[nodiscard]] std::vector<bool> OfFallback() const;
  /// All that may lie where they lie.
  [[nodiscard]] std::vector<bool> Lying() const;
  /// Candidates of one target, and native code or the fallback for what its backend cannot run.
  [[nodiscard]] std::vector<bool> AllowedFor(size_t target) const;
  /// What the search says of a node, in the words of the model, and why kernels of it are out, as far as that is given.
  [[nodiscard]] std::string NameNode(const std::string& message, const std::vector<Evidence>& evidence = {}) const;
};

using PlacementPointer = std::shared_ptr<const Placement>;

struct PlacementOptions {
  bool choose_devices = false;  ///< all other calls may lie on any device, else where planning has them
  StatedRules stated_rules = {};
  bool free_transitions = false;              ///< nothing is measured, and transitions cost nothing
  std::vector<FormRule> forms = FormRules();  ///< equivalent forms that are looked for
  /// The model as it was read, of whose main function passes made the function; graph compilers are offered it too. Null: none.
  std::shared_ptr<const OnnxModel> original = nullptr;
  /// In which kernels may compute beside float32. Those are variants of their own, under keys that say so.
  std::optional<Precision> precision = {};
};

/// Phases 1 and 2: candidates of all targets that keep to the constraints, their variants and those that earlier compiles have tuned, the
/// transitions between their backends (measured where the cache has none). Errors are of the targets, the constraints or the cache.
/// Where something is said of devices, calls lie there.
Result<PlacementPointer> MakePlacement(const Expr& function, const std::vector<PlacementTarget>& targets, Pricer& pricer,
                                       const Progress& progress, const UserConstraints& constraints = {},
                                       const PlacementOptions& options = {});

/// What is added to a placement: candidates behind the others, variants behind the others of those that share a kernel with them. Kernels
/// keep their numbers.
struct PlacementAddition {
  std::vector<PricedCandidate> candidates;
  std::vector<std::pair<size_t, Variant>> tuned;  ///< the kernel of a template, and what it was tuned to
};
Result<PlacementPointer> Extend(const Placement& placement, PlacementAddition addition, Pricer& pricer);

}  // namespace collage
