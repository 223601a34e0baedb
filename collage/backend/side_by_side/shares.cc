#include "collage/backend/side_by_side/shares.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "collage/backend/partition_program.h"
#include "collage/backend/registry.h"
#include "collage/backend/tuning.h"

namespace collage::side_by_side {
namespace {

Result<Variant> OnOneThread(const Backend& backend, const Function& function, Device device, const std::string& name) {
  // A program may run on another number of threads than it was made for; its kernels stay what they are.
  device.threads = static_cast<int>(COLLAGE_TRY(function.attributes.Int("Threads", device.threads)));
  const Variant wanted = COLLAGE_TRY(FindVariant(backend, function, device, name));
  Device one_thread = device;
  one_thread.threads = 1;
  const auto fits = [&](const Variant& variant) { return variant.inputs == wanted.inputs && variant.outputs == wanted.outputs; };
  Result<Variant> same = FindVariant(backend, function, one_thread, name);
  if (same && fits(*same)) return same;
  for (Variant& variant : backend.Variants(function, one_thread)) {
    if (fits(variant) && !variant.uses_precision) return std::move(variant);
  }
  return Fail(std::string(backend.Name()) + " has no variant of the layouts of '" + name + "' for one thread");
}

/// Distributes the calls of a function over shares.
class Division {
 public:
  Division(PartitionProgram program, const Device& device) : program_(std::move(program)), device_(device) {}

  Result<Shares> Divide() {
    for (PartitionCall& call : program_.calls) COLLAGE_TRY_STATUS(Add(call));
    for (const Share& share : result_.shares) {
      if (share.members.empty()) return Fail("side_by_side: a share has no partition");
    }
    if (result_.shares.size() < 2) return Fail("side_by_side: there are fewer than two shares");
    COLLAGE_TRY_STATUS(AddEndpoints());
    for (size_t number = 0; number < result_.shares.size(); ++number) {
      if (number > 0) result_.name += " | ";
      for (size_t i = 0; i < result_.shares[number].members.size(); ++i) {
        const Member& member = result_.shares[number].members[i];
        result_.name += (i > 0 ? ", " : "") + std::string(member.backend->Name()) + " " + member.variant.name;
      }
    }
    return std::move(result_);
  }

 private:
  Status Add(PartitionCall& call) {
    const Function& function = *call.function->As<Function>();
    const int64_t number = COLLAGE_TRY(function.attributes.Int("Share", -1));
    if (number < 0 || number >= static_cast<int64_t>(program_.calls.size()))
      return NoShare(call, "it has " + (number < 0 ? std::string("no Share") : "Share " + std::to_string(number)));
    const Backend* backend = COLLAGE_TRY(FindBackend(call.record.backend, device_));
    // Threads of its own no share of a team confines.
    if (!RunsOnTeam(*backend)) return NoShare(call, "backend '" + call.record.backend + "' has threads of its own");
    Variant variant = COLLAGE_TRY(OnOneThread(*backend, function, device_, call.record.variant));
    const auto share_number = static_cast<size_t>(number);
    if (result_.shares.size() <= share_number) {
      result_.shares.resize(share_number + 1);
      own_.resize(share_number + 1);
    }
    Share& share = result_.shares[share_number];
    Program::KernelCall own{call.record, nullptr, {}, {}};
    own.record.variant = variant.name;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const size_t value = call.inputs[i];
      if (const auto made = maker_.find(value); made != maker_.end() && made->second != share_number)
        return NoShare(call, "it reads what another share makes");
      layout_of_.try_emplace(value, variant.inputs[i]);
      own.inputs.push_back(Own(share_number, value));
    }
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      maker_.emplace(call.outputs[i], share_number);
      layout_of_.try_emplace(call.outputs[i], variant.outputs[i]);
      own.outputs.push_back(Own(share_number, call.outputs[i]));
    }
    share.members.push_back({backend, call.function, std::move(variant), std::move(own)});
    return {};
  }

  Status AddEndpoints() {
    for (const Program::Value& value : program_.values) {
      if (!value.Sources().empty()) return Fail("side_by_side: between partitions there is a view, which is none");
    }
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const size_t value = program_.inputs[i].value;
      const Layout layout = LayoutOf(value);
      result_.inputs.push_back(layout);
      for (size_t number = 0; number < result_.shares.size(); ++number) {
        const auto own = own_[number].find(value);
        if (own == own_[number].end()) continue;
        Share& share = result_.shares[number];
        share.inputs.push_back(i);
        share.entering.push_back({"input" + std::to_string(i), own->second});
        share.layouts.inputs.push_back(layout);
      }
    }
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const size_t value = program_.outputs[i].value;
      const auto made = maker_.find(value);
      if (made == maker_.end()) return Fail("side_by_side: a result is that of no partition");
      const Layout layout = LayoutOf(value);
      result_.outputs.push_back(layout);
      Share& share = result_.shares[made->second];
      share.outputs.push_back(i);
      share.leaving.push_back({"output" + std::to_string(i), own_[made->second].at(value)});
      share.layouts.outputs.push_back(layout);
    }
    return {};
  }

  static Status NoShare(const PartitionCall& call, const std::string& reason) {
    return Fail("side_by_side: partition '" + call.record.name + "' can have no thread of the team: " + reason);
  }

  [[nodiscard]] Layout LayoutOf(size_t value) const {
    const auto at = layout_of_.find(value);
    return at == layout_of_.end() ? Layout() : at->second;
  }

  size_t Own(size_t share, size_t value) {
    const auto [at, is_new] = own_[share].try_emplace(value, result_.shares[share].values.size());
    if (is_new) result_.shares[share].values.push_back(program_.values[value]);
    return at->second;
  }

  PartitionProgram program_;
  const Device& device_;
  Shares result_;
  std::vector<std::unordered_map<size_t, size_t>> own_;  // by share: values of the function to its own
  std::unordered_map<size_t, size_t> maker_;             // by value: the share
  std::unordered_map<size_t, Layout> layout_of_;         // by value: that of who makes it, or reads it first
};

}  // namespace

Result<Shares> ToShares(const Function& function, const Device& device) {
  const Expr whole = COLLAGE_TRY(MakeFunction(function.parameters, function.body));
  PartitionProgram program = COLLAGE_TRY(ToPartitionProgram(IRModule::FromMain(whole)));
  return Division(std::move(program), device).Divide();
}

}  // namespace collage::side_by_side
