#include <algorithm>

#include "collage/backend/entry.h"
#include "collage/backend/region_kernel.h"
#include "collage/backend/side_by_side/shares.h"
#include "collage/runtime/parallel.h"

namespace collage::side_by_side {
namespace {

constexpr size_t kAlignment = 64;  // of a workspace, by the contract of kernels

/// A share's kernels as one, with what it is given of the whole kernel.
struct Part {
  std::unique_ptr<Kernel> kernel;
  std::vector<size_t> inputs;
  std::vector<size_t> outputs;
  size_t workspace = 0;  ///< its offset, bytes
  std::vector<const void*> given = {};
  std::vector<void*> made = {};
  Status status = {};
};

/// Runs each part on one thread of a region. The region has all threads of the device: a smaller one would make libgomp end the others.
class SideBySideKernel final : public Kernel {
 public:
  SideBySideKernel(std::vector<Part> parts, std::vector<Port> inputs, std::vector<Port> outputs, int threads)
      : parts_(std::move(parts)), threads_(threads) {
    inputs_ = std::move(inputs);
    outputs_ = std::move(outputs);
    for (Part& part : parts_) {
      part.workspace = workspace_bytes_;
      workspace_bytes_ += (part.kernel->workspace_bytes() + kAlignment - 1) / kAlignment * kAlignment;
      part.given.resize(part.inputs.size());
      part.made.resize(part.outputs.size());
    }
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    for (Part& part : parts_) {
      for (size_t i = 0; i < part.inputs.size(); ++i) part.given[i] = inputs[part.inputs[i]];
      for (size_t i = 0; i < part.outputs.size(); ++i) part.made[i] = outputs[part.outputs[i]];
    }
    ParallelRegion(threads_, [this, workspace](const TeamMember& member) {
      // There may be fewer threads than shares.
      for (auto i = static_cast<size_t>(member.index); i < parts_.size(); i += static_cast<size_t>(member.size)) {
        Part& part = parts_[i];
        part.status = part.kernel->Run(part.given, part.made, static_cast<std::byte*>(workspace) + part.workspace);
      }
    });
    for (const Part& part : parts_) {
      if (!part.status) return part.status;
    }
    return {};
  }

  [[nodiscard]] std::unique_ptr<Kernel> Twin() const override {
    std::vector<Part> parts;
    for (const Part& part : parts_) {
      parts.push_back({part.kernel->Twin(), part.inputs, part.outputs});
      if (!parts.back().kernel) return nullptr;
    }
    return std::make_unique<SideBySideKernel>(std::move(parts), inputs_, outputs_, threads_);
  }

 private:
  std::vector<Part> parts_;
  int threads_;
};

Result<Part> CompileShare(Share share, const Device& device) {
  Device one_thread = device;
  one_thread.threads = 1;
  Program program{std::move(share.values), {}, std::move(share.entering), std::move(share.leaving)};
  for (Member& member : share.members) {
    Result<std::unique_ptr<Kernel>> kernel = member.backend->Compile(*member.function->As<Function>(), one_thread, member.variant);
    if (!kernel) return Fail(kernel.error().At("partition '" + member.call.record.name + "'"));
    member.call.kernel = std::move(*kernel);
    program.calls.push_back(std::move(member.call));
  }
  return Part{COLLAGE_TRY(MakeRegionKernel(std::move(program), share.layouts, one_thread)), std::move(share.inputs),
              std::move(share.outputs)};
}

/// Independent partitions of other backends at the same time, each on one thread of the team, as one kernel: so it is measured, compared
/// and saved as any other, and its price is that of all of them together.
class SideBySideBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "side_by_side"; }

  [[nodiscard]] Presence Probe(const Device& device) const override {
    return device.kind == DeviceKind::kCpu ? Presence::Version("1") : Presence::Absent("a team of threads is a CPU's");
  }

  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    rules.runs_side_by_side = true;
    return rules;
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override {
    Result<Shares> shares = ToShares(function, device);
    if (!shares) return {};
    return {Variant{std::move(shares->name), std::move(shares->inputs), std::move(shares->outputs)}};
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    Shares shares = COLLAGE_TRY(ToShares(function, device));
    if (shares.name != variant.name)
      return Fail("side_by_side: there is no variant '" + variant.name + "' of these partitions, only '" + shares.name + "'");
    std::vector<Part> parts;
    for (Share& share : shares.shares) parts.push_back(COLLAGE_TRY(CompileShare(std::move(share), device)));
    std::vector<Port> inputs;
    for (const Expr& parameter : function.parameters) {
      for (TensorType& type : FlattenTensors(parameter->type())) inputs.push_back({std::move(type), shares.inputs[inputs.size()]});
    }
    std::vector<Port> outputs;
    for (TensorType& type : FlattenTensors(function.result_type)) outputs.push_back({std::move(type), shares.outputs[outputs.size()]});
    return std::make_unique<SideBySideKernel>(std::move(parts), std::move(inputs), std::move(outputs), device.threads);
  }
};

}  // namespace
}  // namespace collage::side_by_side

COLLAGE_BACKEND(collage::side_by_side::SideBySideBackend)
