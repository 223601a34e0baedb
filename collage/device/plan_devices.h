#pragma once

// Device planning: every tensor of a module gets a place, by unification over all of them at once.
//
// before:  def @main(%x) { %0 = exp(%x); %1 = on_device(%0, virtual_device="cuda:1"); tanh(%1) }          default cpu:0
// after:   def @main(%x {virtual_device="cuda:1"}, virtual_device="cpu:0") {
//            %0 = exp(%x); %1 = device_copy(%0, src_virtual_device="cuda:1", dst_virtual_device="cpu:0"); tanh(%1) }
//
// First what must agree (a let's variable and its value, what calls of one function take), then what is stated, then crossings in the
// order of the program, each joined where that is still possible, then defaults. What stays apart gets a copy. It runs before
// anything that asks for devices, and again after lowering, when kernels state memory scopes. Nearly linear, without recursion.

#include <memory>

#include "collage/device/tensor_flow.h"

namespace collage {

/// Why a program has no plan.
struct DeviceError {
  enum class Kind : uint8_t { kConflict, kUnknownDevice, kUnknownTarget };
  Kind kind;
  std::vector<std::string> devices;          ///< as stated
  std::vector<const DeviceStatement*> from;  ///< who stated each
};
/// "conflict", "unknown-device", "unknown-target".
std::string_view Name(DeviceError::Kind kind);

/// One tensor brought to one place, for all who use it there.
struct PlannedCopy {
  uint32_t maker;  ///< of the flow
  uint32_t field;
  VirtualDevice from;
  VirtualDevice to;
  std::vector<const TensorUse*> uses;
};

/// A statement that the planned program keeps, around a call or an if that nothing else would hold in its place.
struct KeptStatement {
  Expr of;
  std::string devices;
};

/// Places of all tensors of a module. It speaks of the expressions of the module that was planned, which must outlive it.
class DevicePlan {
 public:
  /// A module that cannot be planned gives a plan with errors. A Result's error is for devices that cannot be read.
  static Result<DevicePlan> Create(const IRModule& module, const DeviceConfiguration& configuration, DeviceRecords records = {});
  /// Takes in statements and exact equations alone, so that every device that nothing fixes is open: for a search that chooses.
  static Result<DevicePlan> CreateOpen(const IRModule& module, const DeviceConfiguration& configuration);

  [[nodiscard]] const IRModule& module() const { return *module_; }
  [[nodiscard]] const DeviceConfiguration& configuration() const { return *configuration_; }
  [[nodiscard]] const TensorFlow& flow() const { return *flow_; }
  [[nodiscard]] const std::vector<DeviceError>& errors() const { return errors_; }

  // All that follows is for a plan without errors.

  /// Where the tensors of an expression are made, one for each; what is said of a target is left out where it is the device's own.
  [[nodiscard]] std::vector<VirtualDevice> DevicesOf(const Expr& expr) const;
  /// Of what a function gives.
  [[nodiscard]] std::vector<VirtualDevice> DevicesOfResult(const Expr& function) const;
  [[nodiscard]] VirtualDevice DeviceOf(uint32_t tensor) const;
  /// Where a use finds its tensor.
  [[nodiscard]] VirtualDevice PlaceOf(const TensorUse& use) const;
  [[nodiscard]] const std::vector<PlannedCopy>& copies() const { return copies_; }
  /// The copy that this use reads, or null.
  [[nodiscard]] const PlannedCopy* CopyFor(const TensorUse& use) const;
  /// Whether a device_copy of the program lies within one place.
  [[nodiscard]] bool IsWithinOnePlace(const ExprNode* device_copy) const { return within_one_place_.contains(device_copy); }
  /// Who makes a tensor when these are gone.
  [[nodiscard]] TensorLeaf MakerOf(uint32_t maker, uint32_t field) const;
  [[nodiscard]] const std::vector<KeptStatement>& kept_statements() const { return kept_; }

 private:
  DevicePlan() = default;
  static Result<DevicePlan> Begin(const IRModule& module, const DeviceConfiguration& configuration, DeviceRecords records);
  void TakeStatements();
  void CheckDevices();
  void JoinScopes();
  void DropCopiesWithinOnePlace();
  void FindCopies();
  void FindKeptStatements();
  [[nodiscard]] std::vector<VirtualDevice> ExpectedDevices(const Expr& expr, const std::vector<const TensorUse*>& uses) const;
  [[nodiscard]] std::vector<VirtualDevice> DevicesOf(std::span<const TensorLeaf> leaves) const;
  void AddError(DeviceError error);

  const IRModule* module_ = nullptr;
  const DeviceConfiguration* configuration_ = nullptr;
  std::shared_ptr<const DeviceRecords> records_;
  std::shared_ptr<TensorFlow> flow_;
  std::vector<DeviceError> errors_;
  std::vector<PlannedCopy> copies_;
  std::unordered_map<const TensorUse*, size_t> copy_of_use_;
  std::unordered_set<const ExprNode*> within_one_place_;
  std::unordered_map<const ExprNode*, std::vector<TensorLeaf>> maker_behind_;  // of those
  std::vector<KeptStatement> kept_;
};

/// A program that a plan was applied to, and how its expressions and those of the program before belong together.
struct PlannedProgram {
  IRModule module;
  std::unordered_map<const ExprNode*, Expr> written;            ///< of an expression before, the one that stands for it
  std::unordered_map<const ExprNode*, Expr> origin;             ///< of an expression, the one before that it was made from
  std::unordered_map<const ExprNode*, size_t> inserted_copies;  ///< positions in the plan's copies
};
/// Parameters and results annotated, copies explicit, every on_device gone but those that the plan keeps.
Result<PlannedProgram> ApplyDevicePlan(const DevicePlan& plan, const OpTable& ops);
/// The program without anything that is said of devices: no on_device, no device_copy that the plan drops, no copy inserted.
Result<PlannedProgram> RemoveStatements(const DevicePlan& plan, const OpTable& ops);

/// Both as a pass. The error is one line that names the functions and expressions of a contradiction.
Result<IRModule> PlanDevices(const IRModule& module, const DeviceConfiguration& configuration, const OpTable& ops);
/// The errors of a plan in words; `name_of` names who stated something.
std::string Describe(const DeviceError& error, const std::function<std::string(const DeviceStatement&)>& name_of);

}  // namespace collage
