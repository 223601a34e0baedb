#include "tests/onnx/expected.h"

#include <gtest/gtest.h>

#include <map>

#include "collage/ir/op_sequence.h"
#include "collage/onnx/writer.h"
#include "collage/op/interpreter.h"
#include "collage/support/file.h"
#include "collage/tensor/npy.h"

namespace collage {
namespace {

Result<std::vector<Tensor>> Select(const std::map<std::string, Tensor>& arrays, const std::string& prefix,
                                   const std::vector<std::string>& names) {
  std::vector<Tensor> tensors;
  for (const std::string& name : names) {
    const auto found = arrays.find(prefix + name);
    if (found == arrays.end()) return Fail("no array " + prefix + name);
    tensors.push_back(found->second);
  }
  return tensors;
}

}  // namespace

Result<Expectation> ReadExpectation(const std::filesystem::path& path, const OnnxModel& model) {
  std::map<std::string, Tensor> arrays;
  for (auto& [name, tensor] : COLLAGE_TRY(ReadNpz(path))) arrays.emplace(name, tensor);
  return Expectation{COLLAGE_TRY(Select(arrays, "in:", model.input_names)), COLLAGE_TRY(Select(arrays, "out:", model.output_names))};
}

void ExpectOutputs(const OnnxModel& model, const Expectation& expectation, double tolerance) {
  const Result<std::vector<Tensor>> outputs = InterpretMain(model.module, expectation.inputs);
  ASSERT_TRUE(outputs) << outputs.error().message;
  ASSERT_EQ(outputs->size(), expectation.outputs.size());
  for (size_t i = 0; i < outputs->size(); ++i) {
    const Tensor& output = (*outputs)[i];
    const Tensor& expected = expectation.outputs[i];
    EXPECT_EQ(ToString(output.type()), ToString(expected.type()));
    if (output.type() == expected.type()) {
      EXPECT_LE(RelativeDifference(output, expected), tolerance) << model.output_names[i];
    }
  }
}

Result<OnnxModel> WriteAndRead(const OnnxModel& model, const std::filesystem::path& path, WriteOptions options) {
  options.input_names = model.input_names;
  options.output_names = model.output_names;
  COLLAGE_TRY_STATUS(WriteFileAtomically(path, COLLAGE_TRY(WriteOnnx(model.module.Main(), options))));
  return ReadOnnxFile(path);
}

size_t CountOperators(const OnnxModel& model) {
  const Result<OpSequence> sequence = ToOpSequence(model.module.Main());
  EXPECT_TRUE(sequence);
  return sequence ? sequence->steps.size() : 0;
}

}  // namespace collage
