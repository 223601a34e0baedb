#include "collage/measure/kernel_buffers.h"

#include "collage/runtime/layout_conversion.h"
#include "collage/runtime/parallel.h"
#include "collage/support/check.h"
#include "collage/support/clock.h"

namespace collage {
namespace {

/// Padding holds data too: timing does not read it.
Tensor FilledBuffer(const Port& port, uint64_t seed) {
  const auto elements = static_cast<int64_t>(PhysicalByteCount(port.type, port.layout) / ByteSize(port.type.dtype));
  Tensor buffer(TensorType{{elements}, port.type.dtype});
  FillRandom(buffer, seed);
  return buffer;
}

Tensor Workspace(const Kernel& kernel) { return Tensor(TensorType{{static_cast<int64_t>(kernel.workspace_bytes())}, DType::kUInt8}); }

}  // namespace

KernelBuffers::KernelBuffers(const Kernel& kernel, std::span<const Tensor> inputs) : workspace_(Workspace(kernel)) {
  COLLAGE_CHECK(inputs.size() == kernel.inputs().size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Port& port = kernel.inputs()[i];
    COLLAGE_CHECK(inputs[i].type() == port.type);
    inputs_.emplace_back(TensorType{{static_cast<int64_t>(PhysicalByteCount(port.type, port.layout))}, DType::kUInt8});
    LayoutConversion(port.type, Layout(), port.layout, 1).Run(inputs[i].Bytes(), inputs_.back().MutableBytes());
  }
  AddOutputs(kernel);
}

KernelBuffers::KernelBuffers(const Kernel& kernel) : workspace_(Workspace(kernel)) {
  for (const Port& port : kernel.inputs()) inputs_.push_back(FilledBuffer(port, inputs_.size() + 1));
  AddOutputs(kernel);
}

void KernelBuffers::AddOutputs(const Kernel& kernel) {
  for (const Tensor& input : inputs_) input_pointers_.push_back(input.Bytes());
  for (const Port& port : kernel.outputs()) {
    outputs_.push_back(FilledBuffer(port, 0));
    output_pointers_.push_back(outputs_.back().MutableBytes());
  }
  if (const auto accumulated = kernel.accumulated_input()) output_pointers_[0] = inputs_[*accumulated].MutableBytes();
  if (kernel.context()) on_device_ = BuffersOnDevice::Create(kernel, inputs_, outputs_);
}

Result<DeviceTimes> KernelBuffers::TimedRun(Kernel& kernel) {
  if (on_device_ && *on_device_) return (*on_device_)->TimedRun(kernel);
  const Clock::time_point start = Clock::now();
  const Status status = Run(kernel);
  const double seconds = Clock::SecondsSince(start);
  if (!status) return Fail(status.error());
  return DeviceTimes{seconds, std::nullopt};
}

void KernelBuffers::ReadInputs(int threads) const {
  constexpr size_t kLine = 64;  // bytes of a cache line, of which one read brings all
  for (const Tensor& buffer : inputs_) {
    ParallelFor(buffer.ByteCount(), 1, threads, [bytes = buffer.Bytes()](size_t begin, size_t end) {
      uint64_t sum = 0;
      for (size_t i = begin; i < end; i += kLine) sum += static_cast<uint64_t>(bytes[i]);
      // The reads must happen although nobody wants the sum.
      asm volatile("" : : "r"(sum));
    });
  }
}

}  // namespace collage
