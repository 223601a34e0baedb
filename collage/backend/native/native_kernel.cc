#include "collage/backend/native/native_kernel.h"

#include <HalideRuntime.h>

#include "collage/backend/native/artifact.h"
#include "collage/backend/native/codegen/generate.h"
#include "collage/backend/native/runtime_functions.h"

namespace collage::native {
namespace {

using Entry = int (*)(void** arguments);

class NativeKernel : public Kernel {
 public:
  NativeKernel(std::shared_ptr<const KernelImage> image, Entry entry, const Device& device)
      : image_(std::move(image)), entry_(entry), device_(device) {
    inputs_ = image_->inputs;
    outputs_ = image_->outputs;
    context_ = {device_.threads, &arena_};
    const size_t count = inputs_.size() + image_->constants.size() + outputs_.size();
    buffers_.resize(count);
    dimensions_.resize(count);
    arguments_.push_back(&context_pointer_);
    for (size_t i = 0; i < count; ++i) {
      const size_t constant = i - inputs_.size();
      const size_t output = constant - image_->constants.size();
      size_t bytes = 0;
      DType dtype = DType::kFloat32;
      if (i < inputs_.size()) {
        bytes = PhysicalByteCount(inputs_[i].type, inputs_[i].layout);
        dtype = inputs_[i].type.dtype;
      } else if (constant < image_->constants.size()) {
        bytes = image_->constants[constant].ByteCount();
        dtype = image_->constants[constant].dtype();
        buffers_[i].host = reinterpret_cast<uint8_t*>(const_cast<std::byte*>(image_->constants[constant].Bytes()));
      } else {
        bytes = PhysicalByteCount(outputs_[output].type, outputs_[output].layout);
        dtype = outputs_[output].type.dtype;
      }
      Describe(i, bytes / ByteSize(dtype), dtype);
    }
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void*) override {
    for (size_t i = 0; i < inputs.size(); ++i) buffers_[i].host = static_cast<uint8_t*>(const_cast<void*>(inputs[i]));
    const size_t first_output = inputs_.size() + image_->constants.size();
    for (size_t i = 0; i < outputs.size(); ++i) buffers_[first_output + i].host = static_cast<uint8_t*>(outputs[i]);
    const int error = entry_(arguments_.data());
    if (error != 0) return Fail("native: the kernel stopped with error " + std::to_string(error) + " (out of memory)");
    return {};
  }

  [[nodiscard]] std::string Serialize() const override { return WriteArtifact(*image_, Fingerprint(device_)); }

  [[nodiscard]] std::unique_ptr<Kernel> Twin() const override { return std::make_unique<NativeKernel>(image_, entry_, device_); }

 private:
  // The code knows every extent and reads the address only; the rest is filled in for whoever looks at a buffer.
  void Describe(size_t i, size_t elements, DType dtype) {
    dimensions_[i] = {0, static_cast<int32_t>(elements), 1};
    buffers_[i].dim = &dimensions_[i];
    buffers_[i].dimensions = 1;
    const halide_type_code_t code = IsFloatingPoint(dtype) ? halide_type_float : halide_type_int;
    buffers_[i].type = {code, static_cast<uint8_t>(ByteSize(dtype) * 8), 1};
    arguments_.push_back(&buffers_[i]);
  }

  std::shared_ptr<const KernelImage> image_;
  Entry entry_;
  Device device_;
  Arena arena_;
  RunContext context_;
  void* context_pointer_ = &context_;
  std::vector<halide_buffer_t> buffers_;
  std::vector<halide_dimension_t> dimensions_;
  std::vector<void*> arguments_;
};

}  // namespace

artifact::SharedCodes& Codes() {
  static artifact::SharedCodes codes(ResolveRuntimeFunction);
  return codes;
}

Result<std::unique_ptr<Kernel>> MakeKernel(KernelImage image, const Device& device) {
  const auto entry = reinterpret_cast<Entry>(image.code->Find(kEntryName));
  if (!entry) return Fail(std::string("native: the machine code does not define ") + kEntryName);
  return std::make_unique<NativeKernel>(std::make_shared<const KernelImage>(std::move(image)), entry, device);
}

Result<std::unique_ptr<Kernel>> LoadKernel(std::string_view artifact, const Device& device) {
  return MakeKernel(COLLAGE_TRY(ReadArtifact(artifact, Fingerprint(device))), device);
}

}  // namespace collage::native
