#pragma once

// The contract between Collage and what runs kernels: operator libraries, graph compilers and our own code generator alike.
// A backend states what it supports once; nothing else names it, and there are no priorities: measured cost decides.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/pattern/rule.h"
#include "collage/runtime/device.h"
#include "collage/runtime/kernel.h"

namespace collage {

/// Whether the library behind a backend is there: its version, or the reason why not.
struct Presence {
  bool present = false;
  std::string version;
  std::string reason;
  /// Absent, but Load works: only what compiles is missing. Artifacts are then of the version whose end `version` is: what is missing has
  /// the rest of it.
  bool loads = false;

  static Presence Version(std::string version) { return {true, std::move(version), {}}; }
  static Presence Absent(std::string reason) { return {false, {}, std::move(reason)}; }
  static Presence LoadsOnly(std::string reason) { return {false, {}, std::move(reason), true}; }
};

/// How candidates for a backend are found (the partition rule is made from this, see candidate/rules.h).
struct BackendRules {
  enum class Style {
    kPattern,    ///< operator library: each match of a pattern is one candidate
    kPredicate,  ///< graph compiler: regions of supported operators, whole and cut
    kNative,     ///< code generator: operator fusion by kind
  };
  Style style = Style::kPattern;
  /// kPattern: the table, longest patterns first (the order of merge-composite).
  std::vector<PatternRule> patterns;
  /// kPredicate: may this call of an operator be inside a region? kNative: can code be generated for this call?
  std::function<Verdict(const Expr& call)> supports = {};
  /// The backend's own pass over one of its partitions: a Primitive function to one of the same type that computes the same.
  /// Empty: none.
  std::function<Result<Expr>(const Expr& function)> on_partition = {};
  /// Global rewrites that this backend likes and others may not, applied to a function by choice before anything is placed. The
  /// result has the same type and computes the same. Empty: none.
  std::function<Result<Expr>(const Expr& function)> optimize = {};
  /// Safe passes (transform/pass.h) that pay for this backend, by name, in order; they come before `optimize`. Empty where the library
  /// does the like itself.
  std::vector<std::string> passes = {};
  /// kPattern: matches whose kernels a code generator may call from inside of its own: for some of the rows, one thread each.
  std::vector<PatternRule> callable = {};
  /// kNative: may this call of an operator be generated behind a call of a library, in one kernel? Empty: none may.
  std::function<Verdict(const Expr& call)> may_follow_call = {};
  /// kNative: can one kernel be generated of this function, which holds a function that a library labels Composite and calls that library
  /// for it? Empty: of none.
  std::function<Verdict(const Function& function)> supports_calls = {};
  /// It competes only where a target names it.
  bool only_where_named = false;
  /// Its kernels are partitions of other backends that run at the same time, each on one thread of the team. It finds no candidates: which
  /// partitions are worth it is seen from a plan.
  bool runs_side_by_side = false;
  /// kPredicate: only whole regions are candidates, none of their parts. For a compiler whose kernels of parts take as long as another's:
  /// each of these takes seconds to compile, compare and time.
  bool whole_regions_only = false;
};

/// One way to run a function: an algorithm, and the layout of every input and output tensor (flattened as in Kernel).
/// Variants are priced apart.
struct Variant {
  std::string name;  ///< unique among the variants of one function, stable across runs: "winograd", "direct/aBcd16b"
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
  /// It computes with fewer bits than the types say, as the function permits (ir/permitted_precision.h).
  bool uses_precision = false;
};

/// A number in the schedule of a variant that may be chosen otherwise: "tile_rows".
struct TuningParameter {
  std::string name;         ///< letters, digits and underscores
  std::vector<int> values;  ///< the variant's own first
};

/// A device that a backend has found.
struct FoundDevice {
  Device device;
  std::string name;  ///< what its maker calls it
};

class Backend {
 public:
  virtual ~Backend() = default;

  /// The compiler name: "dnnl", "openvino", "native".
  [[nodiscard]] virtual std::string_view Name() const = 0;
  [[nodiscard]] virtual Presence Probe(const Device& device) const = 0;
  [[nodiscard]] virtual BackendRules Rules() const = 0;

  /// The devices beside the host's CPU on which its kernels may run.
  [[nodiscard]] virtual std::vector<FoundDevice> Devices() const { return {}; }
  /// One of those in use; every backend of a device gives the same context. Null for the host's CPU.
  [[nodiscard]] virtual Result<std::shared_ptr<DeviceContext>> Open(const Device& device) const {
    if (device.kind == DeviceKind::kCpu) return nullptr;
    return Fail(std::string(Name()) + " runs nothing on " + ToString(device));
  }

  /// The ways to run a candidate; cheap, no compilation. Empty when it cannot be run. `function` is a Primitive function of
  /// tensors whose composites may be nested (ToOpSequence flattens them); constants are inside. Of one that permits fewer bits
  /// (ir/permitted_precision.h) there may be more: those that use the permit, behind all others, and marked so. A saved program has the
  /// functions of those that round weights with the rounded ones (op/integer_weights.h); of these they must be there, too.
  [[nodiscard]] virtual std::vector<Variant> Variants(const Function& function, const Device& device) const = 0;
  /// What of a variant's schedule can be tuned; nothing by default. Variants made so are named by TunedVariant (backend/tuning.h), and
  /// Compile must take every combination of the values, or say why not.
  [[nodiscard]] virtual std::vector<TuningParameter> Tuning(const Function& function, const Device& device, const Variant& variant) const {
    (void)function;
    (void)device;
    (void)variant;
    return {};
  }
  /// Compiles and packs, or says why not, as where the backend loads only (Presence::loads). No exception leaves it.
  [[nodiscard]] virtual Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                                const Variant& variant) const = 0;
  /// Whether Load makes a kernel of every artifact of its own, by compiling the source in it where the code beside it is for another
  /// processor or by another version. Of others Load sees only those that this processor and this version made.
  [[nodiscard]] virtual bool ArtifactsHoldSource() const { return false; }
  /// From what Kernel::Serialize gave; only called with a non-empty artifact.
  [[nodiscard]] virtual Result<std::unique_ptr<Kernel>> Load(std::string_view artifact, const Device& device) const {
    (void)artifact;
    (void)device;
    return Fail(std::string(Name()) + ": kernels of this backend are compiled, not loaded");
  }
};

}  // namespace collage
