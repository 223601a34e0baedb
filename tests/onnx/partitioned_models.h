#pragma once

// What the tests of written partitions share: models put together by hand, written, read again and run.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collage/ir/parse.h"
#include "collage/onnx/partitioned.h"
#include "collage/onnx/reader.h"
#include "collage/op/interpreter.h"
#include "collage/op/table.h"

namespace collage {

inline Tensor Random(Shape shape, uint64_t seed) {
  Tensor tensor(TensorType{std::move(shape), DType::kFloat32});
  FillRandom(tensor, seed);
  return tensor;
}

inline Expr Parse(const std::string& text, std::vector<Tensor> constants = {}) {
  Result<ParsedExpr> parsed = ParseExpr(text, Operators(), {.constants = std::move(constants)});
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed->expr;
}

/// A block as a model.
inline PartitionedModel Flat(PartitionedBlock block, std::vector<std::string> inputs, std::vector<std::string> outputs) {
  PartitionedModel model;
  PartitionedModel::Function main{"main", {}, block.inputs.size(), {}, {{}}, {}};
  PartitionedModel::Step& step = main.steps[0];
  for (const auto& [values, tensors] : {std::pair(&block.inputs, &step.inputs), std::pair(&block.outputs, &step.outputs)}) {
    for (const size_t value : *values) {
      tensors->push_back(main.types.size());
      main.types.push_back(block.values[value].type);
    }
  }
  main.results = step.outputs;
  model.functions = {std::move(main)};
  model.blocks = {std::move(block)};
  model.input_names = std::move(inputs);
  model.output_names = std::move(outputs);
  return model;
}

inline std::vector<Tensor> RunWritten(const PartitionedModel& model, const std::vector<Tensor>& inputs) {
  const Result<PartitionedForm> form = WritePartitioned(model);
  EXPECT_TRUE(form) << form.error().message;
  const Result<OnnxModel> read = ReadOnnx(form->bytes);
  EXPECT_TRUE(read) << read.error().message;
  Result<std::vector<Tensor>> outputs = InterpretMain(read->module, inputs);
  EXPECT_TRUE(outputs) << outputs.error().message;
  return *outputs;
}

inline std::string ErrorOf(const PartitionedModel& model) {
  const Result<PartitionedForm> form = WritePartitioned(model);
  return form ? "no error" : form.error().message;
}

}  // namespace collage
