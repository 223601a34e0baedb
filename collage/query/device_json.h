#pragma once

#include "collage/device/plan_devices.h"
#include "collage/query/program.h"

namespace collage {

/// The field "devices" of a query: {"targets": {"cpu:0": ["cpu", "cpu -compiler=dnnl"], "cuda:0": ["cuda"]}, "host", "default"}, and of
/// a search "copies" and "choose".
Result<DeviceConfiguration> DevicesFrom(const JsonReader& reader);
/// {"take": ["same", "host", "same"]}: for each argument and the result where it lies beside the call.
Result<DeviceRecords> DeviceRecordsFrom(const JsonReader& reader);
/// A device, its text malformed or not.
Result<VirtualDevice> VirtualDeviceFrom(const JsonReader& reader);

/// What the text calls the parts of a plan.
class PlanNames {
 public:
  PlanNames(const QueryProgram& program, const DevicePlan& plan) : program_(program), plan_(plan) {}

  /// Of an expression of a function of the module, "@f" of that function itself; what has no name goes by that of its user.
  [[nodiscard]] std::string Of(const Expr& expr, size_t function) const;
  /// A tensor: "%t.1" is field 1 of what several are made by.
  [[nodiscard]] std::string OfTensor(uint32_t maker, uint32_t field) const;
  /// "@f", "%f", "%2 then".
  [[nodiscard]] std::string OfBlock(size_t block, size_t function) const;
  /// Of who states something.
  [[nodiscard]] std::string Of(const DeviceStatement& statement) const;
  [[nodiscard]] const NamedFunction& Function(size_t function) const { return *program_.functions()[function]; }

 private:
  const QueryProgram& program_;
  const DevicePlan& plan_;
};

/// The functions of a program that a plan was applied to, called what the text before called them; an inserted copy goes by what it
/// copies. One for each function that is no kernel, in order.
std::vector<std::unique_ptr<NamedFunction>> NamedAfterPlan(const QueryProgram& program, const PlannedProgram& planned,
                                                           const PlanNames& names, const DevicePlan& plan);

/// {"errors": [{"kind", "devices", "from", "message"}]} of a plan that has errors.
Json ErrorsToJson(const DevicePlan& plan, const PlanNames& names);
/// A copy of a plan: "of", "from", "to".
Json CopyToJson(const PlannedCopy& copy, const PlanNames& names);

}  // namespace collage
