#include "collage/cost/kernel_buffers.h"

#include "collage/support/clock.h"

namespace collage {
namespace {

/// Floating point padding holds data too: timing does not read it.
Tensor FilledBuffer(const Port& port, uint64_t seed) {
  const auto elements = static_cast<int64_t>(PhysicalByteCount(port.type, port.layout) / ByteSize(port.type.dtype));
  Tensor buffer(TensorType{{elements}, port.type.dtype});
  if (port.type.dtype != DType::kFloat16 && port.type.dtype != DType::kBFloat16) FillRandom(buffer, seed);
  return buffer;
}

}  // namespace

KernelBuffers::KernelBuffers(const Kernel& kernel)
    : workspace_(TensorType{{static_cast<int64_t>(kernel.workspace_bytes())}, DType::kUInt8}) {
  for (const Port& port : kernel.inputs()) {
    inputs_.push_back(FilledBuffer(port, inputs_.size() + 1));
    input_pointers_.push_back(inputs_.back().Bytes());
  }
  for (const Port& port : kernel.outputs()) {
    outputs_.push_back(FilledBuffer(port, 0));
    output_pointers_.push_back(outputs_.back().MutableBytes());
  }
  if (const auto accumulated = kernel.accumulated_input()) output_pointers_[0] = inputs_[*accumulated].MutableBytes();
}

Result<double> KernelBuffers::TimedRun(Kernel& kernel) {
  const Clock::time_point start = Clock::now();
  const Status status = Run(kernel);
  const double seconds = Clock::SecondsSince(start);
  if (!status) return Fail(status.error());
  return seconds;
}

void KernelBuffers::ReadInputs() const {
  uint64_t sum = 0;
  for (const Tensor& buffer : inputs_) {
    const std::byte* bytes = buffer.Bytes();
    for (size_t i = 0; i < buffer.ByteCount(); i += 64) sum += static_cast<uint64_t>(bytes[i]);
  }
  // The reads must happen although nobody wants the sum.
  asm volatile("" : : "r"(sum));
}

}  // namespace collage
