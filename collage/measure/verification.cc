#include "collage/measure/verification.h"

#include <algorithm>
#include <cstring>

#include "collage/measure/on_device.h"
#include "collage/measure/rounding_excuse.h"
#include "collage/op/rounding_effect.h"
#include "collage/runtime/layout_conversion.h"

namespace collage {
namespace {

// Not a number in every floating point type, and no boolean.
constexpr int kUnwritten = 0xff;

Tensor Buffer(size_t bytes) { return Tensor(TensorType{{static_cast<int64_t>(bytes)}, DType::kUInt8}); }

Tensor BufferOf(const Port& port) {
  Tensor buffer = Buffer(PhysicalByteCount(port.type, port.layout));
  std::memset(buffer.MutableBytes(), kUnwritten, buffer.ByteCount());
  return buffer;
}

Status CheckTypes(const Kernel& kernel, std::span<const Tensor> inputs) {
  if (kernel.inputs().size() != inputs.size())
    return Fail("takes " + std::to_string(kernel.inputs().size()) + " inputs, expected " + std::to_string(inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = kernel.inputs()[i].type;
    if (!(type == inputs[i].type()))
      return Fail("takes " + ToString(type) + " as input " + std::to_string(i) + ", expected " + ToString(inputs[i].type()));
  }
  return {};
}

}  // namespace

Result<std::vector<Tensor>> RunKernel(Kernel& kernel, std::span<const Tensor> inputs) {
  COLLAGE_TRY_STATUS(CheckTypes(kernel, inputs));
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
    outputs.push_back(BufferOf(port));
    output_pointers.push_back(outputs.back().MutableBytes());
  }
  if (const auto accumulated = kernel.accumulated_input()) {
    outputs[0] = buffers[*accumulated];
    output_pointers[0] = outputs[0].MutableBytes();
  }
  if (kernel.context()) {
    BuffersOnDevice on_device = COLLAGE_TRY(BuffersOnDevice::Create(kernel, buffers, outputs));
    COLLAGE_TRY_STATUS(on_device.Run(kernel));
    COLLAGE_TRY_STATUS(on_device.CopyOut(kernel, outputs));
  } else {
    Tensor workspace = Buffer(kernel.workspace_bytes());
    COLLAGE_TRY_STATUS(kernel.Run(input_pointers, output_pointers, workspace.MutableBytes()));
  }
  std::vector<Tensor> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Port& port = kernel.outputs()[i];
    Tensor plain(port.type);
    LayoutConversion(port.type, port.layout, Layout(), 1).Run(outputs[i].Bytes(), plain.MutableBytes());
    results.push_back(std::move(plain));
  }
  return results;
}

Result<Agreement> CompareWithReference(const RunTensors& run, const ReferenceSample& sample) {
  return Compare(COLLAGE_TRY(run(sample.inputs)), sample.expected, sample.steps);
}

Result<Agreement> CompareWithReference(Kernel& kernel, const ReferenceSample& sample) {
  return CompareWithReference([&](std::span<const Tensor> inputs) { return RunKernel(kernel, inputs); }, sample);
}

std::string ObjectionOfProgram(const Agreement& agreement, double tolerance) {
  const bool differs = IsComparison(agreement) ? !Passes(agreement, tolerance) : agreement.unequal > 0;
  if (!differs) return {};
  const std::string objection = Objection(agreement, tolerance);
  return objection.empty() ? "differs from the reference where that is not finite" : objection;
}

Result<double> DifferenceFromReference(Kernel& kernel, const Expr& function, uint64_t seed,
                                       const std::function<void(const char* stage)>& enter) {
  const auto begin = [&](const char* stage) {
    if (enter) enter(stage);
  };
  begin("running the reference");
  const ReferenceSample sample = COLLAGE_TRY(SampleReference(function, seed));
  begin("running");
  const std::vector<Tensor> found = COLLAGE_TRY(RunKernel(kernel, sample.inputs));
  const Agreement agreement = Compare(found, sample.expected, sample.steps);
  if (!IsComparison(agreement)) return Fail(Objection(agreement, sample.tolerance));
  if (!Passes(agreement, sample.tolerance) && CompoundsRounding(function)) {
    const auto run = [&](const std::vector<Tensor>& inputs, const InterpreterOptions& rounded) {
      begin("running the reference with rounding");
      return InterpretFunction(function, inputs, rounded);
    };
    RoundingEffect rounding(run, sample, seed);
    const auto excuse = COLLAGE_TRY(RoundingExcuse::Find(found, sample, rounding, sample.tolerance));
    if (excuse) return agreement.difference * (kTolerance / std::max(sample.tolerance, excuse->rounding.difference));
  }
  if (agreement.unequal > 0) return Fail(Objection(agreement, sample.tolerance));
  return agreement.difference * (kTolerance / sample.tolerance);
}

}  // namespace collage
