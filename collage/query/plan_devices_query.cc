#include <unordered_map>
#include <unordered_set>

#include "collage/ir/print.h"
#include "collage/ir/structural.h"
#include "collage/ir/verify.h"
#include "collage/op/table.h"
#include "collage/query/device_json.h"
#include "collage/query/queries.h"

namespace collage {
namespace {

/// An object of as many fields as a program has names: Json would compare each name with all before it.
class NamedFields {
 public:
  /// Of one name the last value counts, where the first stood.
  void Set(const std::string& name, Json value) {
    const auto [at, is_new] = position_of_.emplace(name, fields_.size());
    if (is_new) {
      fields_.emplace_back(name, std::move(value));
    } else {
      (fields_.begin() + static_cast<std::ptrdiff_t>(at->second))->second = std::move(value);
    }
  }
  [[nodiscard]] Json Take() && { return std::move(fields_); }

 private:
  Json::object_t fields_;  // a vector, whose own emplace_back looks for nothing
  std::unordered_map<std::string, size_t> position_of_;
};

class PlanWriter {
 public:
  PlanWriter(const DevicePlan& plan, const PlanNames& names) : plan_(plan), names_(names) {}

  /// By name, where the tensors of each expression are made. Kernels have no place of their own: each call has.
  [[nodiscard]] Json Devices() const {
    NamedFields devices;
    const auto& functions = plan_.module().functions();
    for (size_t i = 0; i < functions.size(); ++i) {
      const auto& [name, function] = functions[i];
      if (IsAtomicFunction(function)) continue;
      const DataflowGraph& graph = names_.Function(i).graph();
      for (PostDfsIndex node = 0; node + 1 < graph.size(); ++node) {
        const Expr& expr = graph[node].expr;
        const std::string& local = names_.Function(i).NameOf(node);
        if (local.empty() || !HasPlace(expr)) continue;
        devices.Set(local, ToString(plan_.DevicesOf(expr), expr->type()));
      }
      devices.Set("@" + name, ToString(plan_.DevicesOfResult(function), function->As<Function>()->result_type));
    }
    return std::move(devices).Take();
  }

  [[nodiscard]] Json Copies() const {
    Json copies = Json::array();
    for (const PlannedCopy& copy : plan_.copies()) {
      Json entry = CopyToJson(copy, names_);
      std::vector<std::string> uses;
      std::unordered_set<std::string> seen;
      const size_t function = copy.uses.front()->function;
      const DataflowGraph& graph = names_.Function(function).graph();
      size_t block = BlockOf(graph, *copy.uses.front());
      for (const TensorUse* use : copy.uses) {
        const std::string name = names_.Of(use->user, use->function);
        if (seen.insert(name).second) uses.push_back(name);
        block = graph.CommonBlock(block, BlockOf(graph, *use));
      }
      entry["uses"] = uses;
      entry["in"] = names_.OfBlock(block, function);
      copies.push_back(std::move(entry));
    }
    return copies;
  }

  [[nodiscard]] Json DeviceCopies() const {
    Json copies = Json::array();
    for (const TensorMaker& maker : plan_.flow().makers) {
      if (IsCallOf(maker.expr, "device_copy") && !plan_.IsWithinOnePlace(maker.expr.get())) {
        copies.push_back(names_.Of(maker.expr, maker.function));
      }
    }
    return copies;
  }

  [[nodiscard]] Json KeptStatements() const {
    std::unordered_map<const ExprNode*, std::vector<std::string>> devices;
    for (const KeptStatement& statement : plan_.kept_statements()) devices[statement.of.get()].push_back(statement.devices);
    Json kept = Json::array();
    for (const TensorMaker& maker : plan_.flow().makers) {
      const auto of_maker = devices.find(maker.expr.get());
      if (of_maker == devices.end()) continue;
      for (const std::string& device : of_maker->second) {
        kept.push_back({{"of", names_.Of(maker.expr, maker.function)}, {"virtual_device", device}});
      }
    }
    return kept;
  }

 private:
  [[nodiscard]] bool HasPlace(const Expr& expr) const {
    if (expr->As<Constant>() || expr->As<GlobalVar>() || IsCallOf(expr, "on_device")) return false;
    return !expr->type().AsFunction() || !plan_.flow().KernelOf(expr);
  }

  static size_t BlockOf(const DataflowGraph& graph, const TensorUse& use) {
    const PostDfsIndex user = graph.IndexOf(use.user);
    if (use.user->As<Function>()) return graph.BodyBlock(user);
    if (use.user->As<If>() && use.part > 0) return graph.BranchBlock(user, use.part - 1);
    return graph[user].block;
  }

  const DevicePlan& plan_;
  const PlanNames& names_;
};

/// Planning what was planned changes nothing.
Result<bool> IsStable(const IRModule& module, const DeviceConfiguration& configuration, const DeviceRecords& records) {
  const DevicePlan again = COLLAGE_TRY(DevicePlan::Create(module, configuration, records));
  if (!again.errors().empty()) return false;
  return StructuralEqual(COLLAGE_TRY(ApplyDevicePlan(again, Operators())).module, module);
}

}  // namespace

Result<Json> AnswerPlanDevices(const QueryProgram& program, const JsonReader& query) {
  const JsonReader asked = COLLAGE_TRY(query.At("plan-devices"));
  COLLAGE_TRY_STATUS(asked.OnlyFields({"operators"}));
  DeviceRecords records;
  if (asked.Has("operators")) records = COLLAGE_TRY(DeviceRecordsFrom(COLLAGE_TRY(asked.At("operators"))));
  const DeviceConfiguration configuration = COLLAGE_TRY(DevicesFrom(COLLAGE_TRY(query.At("devices"))));
  const DevicePlan plan = COLLAGE_TRY(DevicePlan::Create(program.module(), configuration, records));
  const PlanNames names(program, plan);
  if (!plan.errors().empty()) return ErrorsToJson(plan, names);
  const IRModule planned = COLLAGE_TRY(ApplyDevicePlan(plan, Operators())).module;
  COLLAGE_TRY_STATUS(Verify(planned));
  const PlanWriter writer(plan, names);
  return Json{{"host", configuration.host().ToString()},
              {"default", configuration.default_device().ToString()},
              {"devices", writer.Devices()},
              {"copies", writer.Copies()},
              {"device_copies", writer.DeviceCopies()},
              {"on_device", writer.KeptStatements()},
              {"stable", COLLAGE_TRY(IsStable(planned, configuration, records))},
              {"program", Print(planned)}};
}

}  // namespace collage
