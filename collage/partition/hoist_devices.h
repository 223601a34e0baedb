#pragma once

// What runs on a device other than the host, as functions of their own: largest regions of one device, as merge finds them for a
// backend. It comes after device planning, where every call has a device and copies are explicit, and before partitioning, to which
// the functions are open.
//
// before:  def @main(%x {virtual_device="cpu:0"}) { %0 = device_copy(%x, cpu:0, cuda:0); %1 = exp(%0); %2 = tanh(%1); .. }
// after:   def @main(..) { %0 = device_copy(%x, ..); %1 = @device_cuda_0(%0); .. }
//          def @device_cuda_0(%v {virtual_device="cuda:0"}, target="cuda", virtual_device="cuda:0") { tanh(exp(%v)) }

#include "collage/dataflow/dataflow_graph.h"
#include "collage/device/plan_devices.h"
#include "collage/support/index_set.h"

namespace collage {

struct HoistOptions {
  /// What of a device counts: calls that agree in these fields may share a function.
  std::vector<VirtualDeviceField> by = {VirtualDeviceField::kDeviceType, VirtualDeviceField::kVirtualDeviceId, VirtualDeviceField::kTarget,
                                        VirtualDeviceField::kMemoryScope};
  /// What is on one of these stays in place: in all that they say of it.
  std::vector<VirtualDevice> keep;
};

/// Where a call of a planned program runs, targets included; nothing for what has no device of its own. Copies have both ends.
struct CallDevices {
  VirtualDevice first;
  VirtualDevice last;  ///< of a copy, where it goes to
};

/// A region of one function of a planned program.
struct DeviceRegion {
  IndexSet nodes;
  std::vector<VirtualDevice> devices;  ///< each once, those of copies left out; as the plan shows them
  Target target;                       ///< that the region is compiled for
};

/// The regions of one function of the program that `plan` was applied to, by first node.
std::vector<DeviceRegion> FindDeviceRegions(const DevicePlan& plan, const PlannedProgram& planned, const DataflowGraph& graph,
                                            const HoistOptions& options);
/// Every region a function of the module, annotated. `graphs` and `regions` one for each function that is no kernel, in order.
Result<IRModule> HoistRegions(const DevicePlan& plan, const PlannedProgram& planned, const std::vector<const DataflowGraph*>& graphs,
                              const std::vector<std::vector<DeviceRegion>>& regions, const OpTable& ops);
/// The pass: plans, then hoists. Without `keep` the host stays in place.
Result<IRModule> HoistDevices(const IRModule& module, const DeviceConfiguration& configuration, HoistOptions options, const OpTable& ops);

}  // namespace collage
