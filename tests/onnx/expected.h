#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "collage/onnx/reader.h"
#include "collage/onnx/writer.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// Inputs of a model and the outputs that ONNX Runtime computed from them, in the model's order: "in:NAME" and "out:NAME" of an
/// .npz file.
struct Expectation {
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
};

Result<Expectation> ReadExpectation(const std::filesystem::path& path, const OnnxModel& model);

/// Runs the model on the reference executor and fails the test where types differ or values by more than `tolerance` of the
/// largest.
void ExpectOutputs(const OnnxModel& model, const Expectation& expectation, double tolerance);

/// The model written to a file, by the names that it has, and read again; check_written.py runs ONNX Runtime on the file.
Result<OnnxModel> WriteAndRead(const OnnxModel& model, const std::filesystem::path& path, WriteOptions options = {});

/// Number of operator calls left in "main".
size_t CountOperators(const OnnxModel& model);

}  // namespace collage
