#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "collage/backend/registry.h"
#include "collage/ir/op_sequence.h"
#include "collage/op/table.h"
#include "collage/tensor/agreement.h"
#include "tests/runtime/layout_oracle.h"

namespace collage::testing_backend {

inline Expr Input(Shape shape) { return MakeVar("x", TensorType{std::move(shape)}); }

inline Expr RandomConstant(Shape shape, uint64_t seed, double low = -1, double high = 1) {
  Tensor tensor(TensorType{std::move(shape)});
  FillRandom(tensor, seed, low, high);
  return MakeConstant(tensor);
}

inline Expr Scalar(double value) { return MakeConstant(Tensor::Scalar(value, DType::kFloat32)); }

inline Expr CallOp(const std::string& op, std::vector<Expr> args, Attributes attributes = {}) {
  Result<Expr> call = MakeCall(Operators().Find(op), std::move(args), std::move(attributes));
  COLLAGE_CHECK(call.has_value(), call ? "" : call.error().message);
  return *call;
}

inline Expr FunctionOf(std::vector<Expr> parameters, const Expr& body) { return *MakeFunction(std::move(parameters), body); }

/// Inputs for a function's parameters.
inline std::vector<Tensor> RandomInputs(const Expr& function, uint64_t seed = 5) {
  std::vector<Tensor> inputs;
  for (const Expr& parameter : function->As<Function>()->parameters) {
    inputs.emplace_back(*parameter->type().AsTensor());
    FillRandom(inputs.back(), seed++);
  }
  return inputs;
}

/// The function by the operators' reference kernels.
inline Tensor Reference(const Expr& function, const std::vector<Tensor>& inputs) {
  const OpSequence sequence = *ToOpSequence(*function->As<Function>());
  std::vector<Tensor> values;
  for (const OpSequence::Value& value : sequence.values) values.push_back(value.constant ? *value.constant : Tensor(value.type));
  for (size_t i = 0; i < inputs.size(); ++i) values[sequence.parameters[i]] = inputs[i];
  for (const OpSequence::Step& step : sequence.steps) {
    std::vector<Tensor> arguments;
    std::vector<Tensor> outputs;
    for (size_t input : step.inputs) arguments.push_back(values[input]);
    for (size_t output : step.outputs) outputs.push_back(values[output]);
    step.op->reference(arguments, step.attributes, outputs);
  }
  return values[sequence.results[0]];
}

/// 64-byte aligned memory with a tail that must stay as it is.
class Buffer {
 public:
  explicit Buffer(size_t bytes)
      : bytes_(bytes), memory_(static_cast<char*>(std::aligned_alloc(64, (bytes + kTail + 63) / 64 * 64)), std::free) {
    std::memset(memory_.get(), kFill, bytes + kTail);
  }
  [[nodiscard]] char* data() const { return memory_.get(); }
  [[nodiscard]] bool TailIntact() const {
    for (size_t i = 0; i < kTail; ++i) {
      if (memory_.get()[bytes_ + i] != kFill) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kTail = 256;
  static constexpr char kFill = 0x5a;
  size_t bytes_;
  std::unique_ptr<char, void (*)(void*)> memory_;
};

/// A kernel with buffers of its own, run on plain tensors.
class Runner {
 public:
  explicit Runner(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)), workspace_(kernel_->workspace_bytes()) {
    for (const Port& port : kernel_->inputs()) inputs_.emplace_back(PhysicalByteCount(port.type, port.layout));
    for (const Port& port : kernel_->outputs()) outputs_.emplace_back(PhysicalByteCount(port.type, port.layout));
  }

  Tensor operator()(const std::vector<Tensor>& inputs) {
    std::vector<const void*> in;
    std::vector<void*> out;
    for (Buffer& buffer : outputs_) out.push_back(buffer.data());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      Buffer& buffer = kernel_->accumulated_input() == i ? outputs_[0] : inputs_[i];
      ToPhysical(inputs[i], kernel_->inputs()[i], buffer);
      in.push_back(buffer.data());
    }
    const Status status = kernel_->Run(in, out, workspace_.data());
    EXPECT_TRUE(status) << (status ? "" : status.error().message);
    EXPECT_TRUE(workspace_.TailIntact());
    for (const Buffer& buffer : outputs_) EXPECT_TRUE(buffer.TailIntact());
    return FromPhysical(kernel_->outputs()[0], outputs_[0]);
  }

  [[nodiscard]] const Kernel& kernel() const { return *kernel_; }

 private:
  static void ToPhysical(const Tensor& tensor, const Port& port, Buffer& buffer) {
    std::memset(buffer.data(), 0, PhysicalByteCount(port.type, port.layout));
    const size_t size = ByteSize(port.type.dtype);
    const std::byte* next = tensor.Bytes();
    ForEachIndex(port.type.shape, [&](const std::vector<int64_t>& index) {
      std::memcpy(buffer.data() + PhysicalOffset(port.type, port.layout, index) * size, next, size);
      next += size;
    });
  }

  // Also checks that the padding is zero.
  static Tensor FromPhysical(const Port& port, const Buffer& buffer) {
    Tensor tensor(port.type);
    const size_t bytes = PhysicalByteCount(port.type, port.layout);
    const size_t size = ByteSize(port.type.dtype);
    std::vector<char> padding(buffer.data(), buffer.data() + bytes);
    std::byte* next = tensor.MutableBytes();
    ForEachIndex(port.type.shape, [&](const std::vector<int64_t>& index) {
      const size_t at = PhysicalOffset(port.type, port.layout, index) * size;
      std::memcpy(next, buffer.data() + at, size);
      std::fill_n(padding.begin() + static_cast<std::ptrdiff_t>(at), size, char{0});
      next += size;
    });
    EXPECT_EQ(std::count(padding.begin(), padding.end(), 0), static_cast<std::ptrdiff_t>(bytes)) << "padding is not zero";
    return tensor;
  }

  std::unique_ptr<Kernel> kernel_;
  std::vector<Buffer> inputs_;
  std::vector<Buffer> outputs_;
  Buffer workspace_;
};

inline Device Cpu(int threads) {
  Device device;
  device.threads = threads;
  return device;
}

inline const Backend& BackendNamed(const std::string& name) {
  const Result<const Backend*> backend = FindBackend(name, Cpu(1));
  COLLAGE_CHECK(backend.has_value(), backend ? "" : backend.error().message);
  return **backend;
}

inline Runner Compiled(const Backend& backend, const Expr& function, const Variant& variant, int threads) {
  Result<std::unique_ptr<Kernel>> kernel = backend.Compile(*function->As<Function>(), Cpu(threads), variant);
  COLLAGE_CHECK(kernel.has_value(), kernel ? "" : kernel.error().message);
  return Runner(std::move(*kernel));
}

/// Runs every variant, twice, and compares with the reference. Answers the variants' names.
inline std::vector<std::string> CheckAllVariants(const Backend& backend, const Expr& function, int threads = 2) {
  const std::vector<Tensor> first = RandomInputs(function, 5);
  const std::vector<Tensor> second = RandomInputs(function, 77);
  const Tensor expected_first = Reference(function, first);
  const Tensor expected_second = Reference(function, second);
  const double tolerance = Tolerance(expected_first.dtype());
  std::vector<std::string> names;
  for (const Variant& variant : backend.Variants(*function->As<Function>(), Cpu(threads))) {
    SCOPED_TRACE(variant.name);
    names.push_back(variant.name);
    Runner run = Compiled(backend, function, variant, threads);
    EXPECT_EQ(run.kernel().outputs()[0].layout, variant.outputs[0]);
    for (size_t i = 0; i < variant.inputs.size(); ++i) EXPECT_EQ(run.kernel().inputs()[i].layout, variant.inputs[i]);
    EXPECT_EQ(Objection(Compare(run(first), expected_first), tolerance), "");
    EXPECT_EQ(Objection(Compare(run(second), expected_second), tolerance), "");
    EXPECT_EQ(Objection(Compare(run(first), expected_first), tolerance), "");
  }
  EXPECT_FALSE(names.empty());
  return names;
}

}  // namespace collage::testing_backend
