#include "collage/backend/c/kernel.h"

#include <cmath>
#include <cstring>
#include <unordered_map>

#include "collage/runtime/parallel.h"
#include "collage/support/memory.h"

namespace collage::c_source {
namespace {

using Entry = void (*)(void* const* tensors, int begin, int end);

/// What generated code may call: what stands in its prelude and is no instruction here, and what compilers make of loops.
void* ResolveFunction(const std::string& name) {
  static const std::unordered_map<std::string, void*> functions = {
      {"expf", reinterpret_cast<void*>(&::expf)},        {"logf", reinterpret_cast<void*>(&::logf)},
      {"powf", reinterpret_cast<void*>(&::powf)},        {"sqrtf", reinterpret_cast<void*>(&::sqrtf)},
      {"erff", reinterpret_cast<void*>(&::erff)},        {"tanhf", reinterpret_cast<void*>(&::tanhf)},
      {"ceilf", reinterpret_cast<void*>(&::ceilf)},      {"floorf", reinterpret_cast<void*>(&::floorf)},
      {"fmaxf", reinterpret_cast<void*>(&::fmaxf)},      {"memcpy", reinterpret_cast<void*>(&std::memcpy)},
      {"memset", reinterpret_cast<void*>(&std::memset)}, {"memmove", reinterpret_cast<void*>(&std::memmove)}};
  const auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}

/// What twins share.
struct LinkedImage {
  KernelImage image;
  std::vector<Entry> entries;  ///< of the loops
};

class SourceKernel final : public Kernel {
 public:
  SourceKernel(std::shared_ptr<const LinkedImage> linked, const Device& device)
      : linked_(std::move(linked)), device_(device), addresses_(linked_->image.TensorCount()) {
    const KernelImage& image = linked_->image;
    inputs_ = image.inputs;
    outputs_ = image.outputs;
    for (size_t i = 0; i < image.constants.size(); ++i)
      addresses_[inputs_.size() + outputs_.size() + i] = const_cast<std::byte*>(image.constants[i].Bytes());
    for (const size_t bytes : image.between) {
      offsets_.push_back(workspace_bytes_);
      workspace_bytes_ += AlignedBytes(bytes);
    }
    for (const Loop& loop : image.loops) arguments_.emplace_back(loop.tensors.size());
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    const KernelImage& image = linked_->image;
    for (size_t i = 0; i < inputs.size(); ++i) addresses_[i] = const_cast<void*>(inputs[i]);
    for (size_t i = 0; i < outputs.size(); ++i) addresses_[inputs.size() + i] = outputs[i];
    const size_t first_between = addresses_.size() - offsets_.size();
    for (size_t i = 0; i < offsets_.size(); ++i) addresses_[first_between + i] = static_cast<std::byte*>(workspace) + offsets_[i];
    for (size_t k = 0; k < image.loops.size(); ++k) {
      const Loop& loop = image.loops[k];
      for (size_t i = 0; i < loop.tensors.size(); ++i) arguments_[k][i] = addresses_[loop.tensors[i]];
      struct Job {
        Entry entry;
        void* const* tensors;
      } job{linked_->entries[k], arguments_[k].data()};
      ParallelFor(loop.items, loop.grain, device_.threads,
                  [&job](size_t begin, size_t end) { job.entry(job.tensors, static_cast<int>(begin), static_cast<int>(end)); });
    }
    return {};
  }

  [[nodiscard]] std::unique_ptr<Kernel> Twin() const override { return std::make_unique<SourceKernel>(linked_, device_); }
  [[nodiscard]] std::string Serialize() const override { return WriteImage(linked_->image, Fingerprint(device_)); }

 private:
  std::shared_ptr<const LinkedImage> linked_;
  Device device_;
  std::vector<void*> addresses_;  // of tensors, as loops number them
  std::vector<std::vector<void*>> arguments_;
  std::vector<size_t> offsets_;  // in the workspace, of what lies between loops
};

}  // namespace

artifact::SharedCodes& Codes() {
  static artifact::SharedCodes codes(ResolveFunction);
  return codes;
}

Result<std::unique_ptr<Kernel>> MakeKernel(KernelImage image, const Device& device) {
  auto linked = std::make_shared<LinkedImage>();
  for (const Loop& loop : image.loops) {
    linked->entries.push_back(reinterpret_cast<Entry>(image.code->Find(loop.name)));
    if (!linked->entries.back()) return Fail("c: the machine code does not define " + loop.name);
  }
  linked->image = std::move(image);
  return std::make_unique<SourceKernel>(std::move(linked), device);
}

}  // namespace collage::c_source
