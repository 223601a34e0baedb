#include "collage/backend/native/panel_kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "collage/runtime/parallel.h"
#include "collage/support/memory.h"

namespace collage::native {
namespace {

class PanelKernel final : public Kernel {
 public:
  explicit PanelKernel(PanelParts parts) : parts_(std::move(parts)) {
    inputs_ = parts_.inputs;
    outputs_ = parts_.outputs;
    panels_ = PanelCount(parts_);
    const size_t teams = std::clamp<size_t>(parts_.workers.size(), 1, static_cast<size_t>(panels_));
    for (const PanelCode& code : parts_.workers) Measure(code);
    if (parts_.last.library) Measure(parts_.last);
    workspace_bytes_ = teams * (panel_bytes_ + scratch_bytes_);
    for (size_t i = 0; i < teams; ++i) {
      pointers_.push_back({std::vector<const void*>(parts_.library_arguments.size()),
                           std::vector<const void*>(parts_.rest_arguments.size() + 1),
                           std::vector<void*>(outputs_.size()),
                           {}});
    }
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    const Request request{inputs, outputs, static_cast<std::byte*>(workspace)};
    ParallelFor(pointers_.size(), 1, static_cast<int>(pointers_.size()), [&](size_t begin, size_t end) {
      for (size_t worker = begin; worker < end; ++worker) pointers_[worker].status = RunShare(request, worker);
    });
    for (const Pointers& one : pointers_) {
      if (!one.status) return one.status;
    }
    return {};
  }

  [[nodiscard]] std::string Serialize() const override { return parts_.serialize(); }

 private:
  struct Request {
    std::span<const void* const> inputs;
    std::span<void* const> outputs;
    std::byte* workspace;
  };
  /// Of one thread, so that a run allocates nothing.
  struct Pointers {
    std::vector<const void*> library;
    std::vector<const void*> rest;
    std::vector<void*> outputs;
    Status status;
  };

  void Measure(const PanelCode& code) {
    const Port& given = code.library->outputs()[0];
    panel_bytes_ = std::max(panel_bytes_, AlignedBytes(PhysicalByteCount(given.type, given.layout)));
    scratch_bytes_ = std::max({scratch_bytes_, AlignedBytes(code.library->workspace_bytes()), AlignedBytes(code.rest->workspace_bytes())});
  }

  Status RunShare(const Request& request, size_t worker) {
    const auto share = [&](size_t of) { return panels_ * static_cast<int64_t>(of) / static_cast<int64_t>(pointers_.size()); };
    for (int64_t panel = share(worker); panel < share(worker + 1); ++panel) COLLAGE_TRY_STATUS(RunPanel(request, worker, panel));
    return {};
  }

  Status RunPanel(const Request& request, size_t worker, int64_t panel) {
    const auto first = static_cast<size_t>(panel * parts_.rows_of_panel);
    const bool is_last = panel + 1 == panels_ && parts_.last.library;
    const PanelCode& code = is_last ? parts_.last : parts_.workers[worker];
    Pointers& pointers = pointers_[worker];
    std::byte* const given = request.workspace + worker * (panel_bytes_ + scratch_bytes_);
    std::byte* const scratch = given + panel_bytes_;
    const auto at = [&](const PanelArgument& argument) {
      return static_cast<const std::byte*>(request.inputs[argument.port]) + first * argument.bytes_of_row;
    };
    std::transform(parts_.library_arguments.begin(), parts_.library_arguments.end(), pointers.library.begin(), at);
    if (const std::optional<size_t> accumulated = code.library->accumulated_input()) {
      const Port& port = code.library->outputs()[0];
      std::memcpy(given, pointers.library[*accumulated], PhysicalByteCount(port.type, port.layout));
      pointers.library[*accumulated] = given;
    }
    void* const target = given;
    COLLAGE_TRY_STATUS(code.library->Run(pointers.library, {&target, 1}, scratch));
    pointers.rest[0] = given;
    std::transform(parts_.rest_arguments.begin(), parts_.rest_arguments.end(), pointers.rest.begin() + 1, at);
    for (size_t i = 0; i < pointers.outputs.size(); ++i)
      pointers.outputs[i] = static_cast<std::byte*>(request.outputs[i]) + first * parts_.bytes_of_output_row[i];
    return code.rest->Run(pointers.rest, pointers.outputs, scratch);
  }

  PanelParts parts_;
  int64_t panels_ = 0;
  size_t panel_bytes_ = 0;
  size_t scratch_bytes_ = 0;
  std::vector<Pointers> pointers_;
};

}  // namespace

int64_t PanelCount(const PanelParts& parts) { return (parts.rows + parts.rows_of_panel - 1) / parts.rows_of_panel; }

std::unique_ptr<Kernel> MakePanelKernel(PanelParts parts) { return std::make_unique<PanelKernel>(std::move(parts)); }

}  // namespace collage::native
