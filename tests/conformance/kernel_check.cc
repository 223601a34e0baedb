#include "tests/conformance/kernel_check.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "collage/runtime/layout_conversion.h"
#include "collage/tensor/agreement.h"

namespace collage::conformance {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kGuardBytes = 256;
constexpr std::byte kGuard{0xA5};
// Not a number as float32, so that an element that a kernel forgets to write is seen.
constexpr std::byte kUnwritten{0xFF};

std::vector<GuardedBuffer> MakeBuffers(const std::vector<Port>& ports) {
  std::vector<GuardedBuffer> buffers;
  for (const Port& port : ports) buffers.emplace_back(PhysicalByteCount(port.type, port.layout));
  return buffers;
}

bool AllAre(const std::byte* begin, const std::byte* end, std::byte value) {
  return std::all_of(begin, end, [value](std::byte byte) { return byte == value; });
}

}  // namespace

GuardedBuffer::GuardedBuffer(size_t bytes) : bytes_(bytes), memory_(new std::byte[bytes + 2 * kGuardBytes + kAlignment]) {
  const auto address = reinterpret_cast<uintptr_t>(memory_.get()) + kGuardBytes;
  data_ = memory_.get() + kGuardBytes + (kAlignment - address % kAlignment) % kAlignment;
  std::memset(data_ - kGuardBytes, static_cast<int>(kGuard), kGuardBytes);
  std::memset(data_, static_cast<int>(kUnwritten), bytes);
  std::memset(data_ + bytes, static_cast<int>(kGuard), kGuardBytes);
}

std::byte* GuardedBuffer::whole() const { return data_ - kGuardBytes; }
size_t GuardedBuffer::whole_bytes() const { return bytes_ + 2 * kGuardBytes; }
size_t GuardedBuffer::guard_bytes() { return kGuardBytes; }

bool GuardedBuffer::GuardsIntact() const {
  return AllAre(data_ - kGuardBytes, data_, kGuard) && AllAre(data_ + bytes_, data_ + bytes_ + kGuardBytes, kGuard);
}

KernelRunner::KernelRunner(std::unique_ptr<Kernel> kernel, int threads)
    : kernel_(std::move(kernel)), threads_(threads), workspace_(kernel_->workspace_bytes()) {
  ChangeBuffers();
}

void KernelRunner::ChangeBuffers() {
  // The old buffers live until the new ones are there, so no address comes again.
  std::vector<GuardedBuffer> inputs = MakeBuffers(kernel_->inputs());
  std::vector<GuardedBuffer> outputs = MakeBuffers(kernel_->outputs());
  inputs_.swap(inputs);
  outputs_.swap(outputs);
  input_pointers_.clear();
  output_pointers_.clear();
  for (const GuardedBuffer& buffer : inputs_) input_pointers_.push_back(buffer.data());
  for (const GuardedBuffer& buffer : outputs_) output_pointers_.push_back(buffer.data());
  if (const auto accumulated = kernel_->accumulated_input()) input_pointers_[*accumulated] = output_pointers_[0];
}

std::string KernelRunner::CheckPorts(const std::vector<Tensor>& inputs, const std::vector<Tensor>& expected) const {
  if (kernel_->inputs().size() != inputs.size()) return "the kernel has " + std::to_string(kernel_->inputs().size()) + " inputs";
  if (kernel_->outputs().size() != expected.size()) return "the kernel has " + std::to_string(kernel_->outputs().size()) + " outputs";
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!(kernel_->inputs()[i].type == inputs[i].type())) return "input " + std::to_string(i) + " has another type than the function's";
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!(kernel_->outputs()[i].type == expected[i].type())) return "output " + std::to_string(i) + " has another type than the function's";
  }
  return {};
}

void KernelRunner::WriteInputs(const std::vector<Tensor>& inputs) {
  input_copies_.clear();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Port& port = kernel_->inputs()[i];
    LayoutConversion(port.type, Layout(), port.layout, threads_).Run(inputs[i].Bytes(), inputs_[i].data());
    input_copies_.emplace_back(inputs_[i].data(), inputs_[i].data() + inputs_[i].size());
  }
  for (GuardedBuffer& buffer : outputs_) std::memset(buffer.data(), static_cast<int>(kUnwritten), buffer.size());
  if (const auto accumulated = kernel_->accumulated_input())
    std::memcpy(outputs_[0].data(), inputs_[*accumulated].data(), inputs_[*accumulated].size());
}

std::string KernelRunner::CheckWrites() const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].GuardsIntact()) return "wrote outside of input " + std::to_string(i);
    if (!std::equal(input_copies_[i].begin(), input_copies_[i].end(), inputs_[i].data())) return "wrote into input " + std::to_string(i);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i].GuardsIntact()) return "wrote outside of output " + std::to_string(i);
  }
  return workspace_.GuardsIntact() ? std::string() : "wrote outside of the workspace";
}

std::string KernelRunner::CheckOutput(size_t index, const Tensor& expected, double step, double tolerance) const {
  const Port& port = kernel_->outputs()[index];
  const std::string place = "output " + std::to_string(index);
  Tensor plain(port.type);
  LayoutConversion(port.type, port.layout, Layout(), threads_).Run(outputs_[index].data(), plain.MutableBytes());
  const std::string objection = Objection(Compare(plain, expected, step), tolerance);
  if (!objection.empty()) return place + ": " + objection;
  std::vector<std::byte> clean(outputs_[index].size());
  LayoutConversion(port.type, Layout(), port.layout, threads_).Run(plain.Bytes(), clean.data());
  if (!std::equal(clean.begin(), clean.end(), outputs_[index].data())) return place + " has padding that is not zero";
  return {};
}

Status KernelRunner::Run() {
  return kernel_->context() ? RunOnDevice() : kernel_->Run(input_pointers_, output_pointers_, workspace_.data());
}

Status KernelRunner::RunOnDevice() {
  const std::shared_ptr<DeviceContext>& context = kernel_->context();
  std::vector<DeviceMemory> memory;
  std::vector<const GuardedBuffer*> copied;
  const auto place = [&](const GuardedBuffer& buffer) -> Result<std::byte*> {
    memory.push_back(COLLAGE_TRY(DeviceMemory::Allocate(context, buffer.whole_bytes())));
    copied.push_back(&buffer);
    COLLAGE_TRY_STATUS(context->CopyIn(memory.back().address(), buffer.whole(), buffer.whole_bytes()));
    return memory.back().address() + GuardedBuffer::guard_bytes();
  };
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const GuardedBuffer& buffer : inputs_) inputs.push_back(COLLAGE_TRY(place(buffer)));
  for (const GuardedBuffer& buffer : outputs_) outputs.push_back(COLLAGE_TRY(place(buffer)));
  if (const auto accumulated = kernel_->accumulated_input()) inputs[*accumulated] = outputs[0];
  std::byte* workspace = COLLAGE_TRY(place(workspace_));
  COLLAGE_TRY_STATUS(kernel_->Run(inputs, outputs, workspace));
  for (size_t i = 0; i < copied.size(); ++i)
    COLLAGE_TRY_STATUS(context->CopyOut(copied[i]->whole(), memory[i].address(), copied[i]->whole_bytes()));
  return context->WaitForAll();
}

std::string KernelRunner::Check(const std::vector<Tensor>& inputs, const std::vector<Tensor>& expected, const std::vector<double>& steps,
                                double tolerance) {
  std::string problem = CheckPorts(inputs, expected);
  if (!problem.empty()) return problem;
  WriteInputs(inputs);
  const Status status = Run();
  if (!status) return "it failed: " + status.error().message;
  problem = CheckWrites();
  for (size_t i = 0; i < expected.size() && problem.empty(); ++i)
    problem = CheckOutput(i, expected[i], i < steps.size() ? steps[i] : 0, tolerance);
  return problem;
}

}  // namespace collage::conformance
