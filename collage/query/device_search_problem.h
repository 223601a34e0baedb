#pragma once

// The search for the cheapest cover of a program on several devices. A place is to a tensor what a layout is: partitions read and
// write it in one, and bringing it from one to another has a price, paid once for each tensor and place. So devices need no search
// of their own: places are numbered as layouts, and every candidate stands once for each device that it may lie on.

#include "collage/candidate/rule.h"
#include "collage/query/device_json.h"
#include "collage/query/device_prices.h"
#include "collage/search/search.h"

namespace collage {

/// A target of a device; the order of all is the order of preference.
struct DeviceBackend {
  const ListedDevice* device;
  Target target;
  std::string compiler;
  SpecPointer spec;  ///< its rule is that of the compiler
};

/// A candidate of the cheapest cover.
struct PlacedCandidate {
  SubGraph sub_graph;
  size_t backend;
  VirtualDevice place;
  double price;
};
struct PricedCopy {
  std::string of;
  VirtualDevice from;
  VirtualDevice to;
  double price;
};
struct PlacedCover {
  std::vector<PlacedCandidate> partitions;
  std::vector<PricedCopy> copies;
  double price = 0;  ///< with a penalty for each partition
};

/// On which devices each tensor may be. A planned program leaves one each; without a plan, what statements leave, and the host for
/// what @main takes and gives.
class TensorPlaces {
 public:
  TensorPlaces(const DevicePlan& plan, bool choose);

  [[nodiscard]] size_t ClassOf(uint32_t tensor) const { return plan_.flow().classes.DeviceClassOf(tensor); }
  [[nodiscard]] const std::vector<const ListedDevice*>& DevicesFor(size_t device_class) const { return devices_[device_class]; }
  /// Its place on a device, with the memory scope that is stated of it.
  [[nodiscard]] VirtualDevice On(uint32_t tensor, const ListedDevice& device) const;
  /// Fixes a class, and gives what it was.
  std::vector<const ListedDevice*> Fix(size_t device_class, std::vector<const ListedDevice*> devices) {
    return std::exchange(devices_[device_class], std::move(devices));
  }
  [[nodiscard]] bool MayBe(uint32_t tensor, const ListedDevice& device) const;

 private:
  const DevicePlan& plan_;
  std::vector<std::vector<const ListedDevice*>> devices_;  // by class
};

/// One function of the program: its graph without statements, and who makes and reads which tensor there.
class FunctionOnDevices {
 public:
  FunctionOnDevices(const DevicePlan& plan, const PlannedProgram& program, const NamedFunction& function, const PlanNames& names);

  struct Use {
    size_t tensor;   ///< position in `tensors`
    uint32_t place;  ///< in the classes, or TensorUse::kOnHost
  };
  struct Made {
    uint32_t maker;
    uint32_t field;
    uint32_t tensor;  ///< in the classes
    PostDfsIndex node;
  };
  [[nodiscard]] const DataflowGraph& graph() const { return function_.graph(); }
  [[nodiscard]] const NamedFunction& function() const { return function_; }
  /// True for a call of an operator that some backend must run.
  [[nodiscard]] bool NeedsKernel(PostDfsIndex node) const;
  [[nodiscard]] bool IsCopy(PostDfsIndex node) const { return IsCallOf(graph()[node].expr, "device_copy"); }
  /// Classes that are one node's to choose.
  [[nodiscard]] std::vector<size_t> ClassesAt(PostDfsIndex node, const TensorPlaces& places) const;

  std::vector<Made> tensors;
  std::vector<std::vector<size_t>> made_at;  ///< by node
  std::vector<std::vector<Use>> uses_at;     ///< by node
  std::vector<CandidatePartition> candidates;

 private:
  const DevicePlan& plan_;
  const NamedFunction& function_;
};

/// The cheapest cover of one function where every class that several nodes share is fixed. Errors name what cannot be covered.
Result<PlacedCover> CheapestPlacedCover(const FunctionOnDevices& function, const TensorPlaces& places, const DevicePlan& plan,
                                        const std::vector<DeviceBackend>& backends, const DevicePrices& prices, double penalty,
                                        const PlanNames& names);
/// How many candidates of each backend may be chosen.
std::vector<size_t> CountCandidates(const FunctionOnDevices& function, const TensorPlaces& places, const DevicePlan& plan,
                                    const std::vector<DeviceBackend>& backends);

}  // namespace collage
