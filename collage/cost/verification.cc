#include "collage/cost/verification.h"

#include <algorithm>

#include "collage/op/interpreter.h"
#include "collage/runtime/layout_conversion.h"
#include "collage/tensor/tensor.h"

namespace collage {
namespace {

Tensor Buffer(size_t bytes) { return Tensor(TensorType{{static_cast<int64_t>(bytes)}, DType::kUInt8}); }

Result<std::vector<Tensor>> RunKernel(Kernel& kernel, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> buffers;
  std::vector<const void*> input_pointers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Port& port = kernel.inputs()[i];
    buffers.push_back(Buffer(PhysicalByteCount(port.type, port.layout)));
    LayoutConversion(port.type, Layout(), port.layout, 1).Run(inputs[i].Bytes(), buffers.back().MutableBytes());
    input_pointers.push_back(buffers.back().Bytes());
  }
  std::vector<Tensor> outputs;
  std::vector<void*> output_pointers;
  for (const Port& port : kernel.outputs()) {
    outputs.push_back(Buffer(PhysicalByteCount(port.type, port.layout)));
    output_pointers.push_back(outputs.back().MutableBytes());
  }
  if (const auto accumulated = kernel.accumulated_input()) {
    outputs[0] = buffers[*accumulated];
    output_pointers[0] = outputs[0].MutableBytes();
  }
  Tensor workspace = Buffer(kernel.workspace_bytes());
  COLLAGE_TRY_STATUS(kernel.Run(input_pointers, output_pointers, workspace.MutableBytes()));
  std::vector<Tensor> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Port& port = kernel.outputs()[i];
    Tensor plain(port.type);
    LayoutConversion(port.type, port.layout, Layout(), 1).Run(outputs[i].Bytes(), plain.MutableBytes());
    results.push_back(std::move(plain));
  }
  return results;
}

}  // namespace

Result<double> DifferenceFromReference(Kernel& kernel, const Expr& function, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const Port& port : kernel.inputs()) {
    Tensor tensor(port.type);
    if (tensor.dtype() == DType::kFloat16 || tensor.dtype() == DType::kBFloat16)
      return Fail("16-bit floating point inputs cannot be compared yet");
    FillRandom(tensor, seed + inputs.size());
    inputs.push_back(std::move(tensor));
  }
  const std::vector<Tensor> expected = COLLAGE_TRY(InterpretFunction(function, inputs));
  const std::vector<Tensor> found = COLLAGE_TRY(RunKernel(kernel, inputs));
  double difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) difference = std::max(difference, RelativeDifference(found[i], expected[i]));
  return difference;
}

}  // namespace collage
