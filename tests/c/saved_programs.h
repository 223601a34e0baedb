#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "collage/backend/registry.h"
#include "collage/c/collage.h"
#include "collage/ir/parse.h"
#include "collage/lower/control.h"
#include "collage/lower/profiles.h"
#include "collage/lower/save.h"
#include "collage/op/table.h"
#include "collage/transform/outline_blocks.h"

namespace collage {

struct FreeError {
  void operator()(collage_error* error) const { collage_error_free(error); }
};
struct FreeProgram {
  void operator()(collage_program* program) const { collage_program_free(program); }
};
struct FreeSession {
  void operator()(collage_session* session) const { collage_session_free(session); }
};
using OwnedError = std::unique_ptr<collage_error, FreeError>;
using OwnedProgram = std::unique_ptr<collage_program, FreeProgram>;
using OwnedSession = std::unique_ptr<collage_session, FreeSession>;

/// "kind: message" of an error, which is freed; "" for none.
inline std::string Said(collage_error* error) {
  const OwnedError owned(error);
  return error ? std::to_string(collage_error_kind_of(error)) + ": " + collage_error_message(error) : "";
}

/// A folder of its own for program files, whose kernels are those of the registry.
class SavedPrograms : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "c_test.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = folder_ / "model.collage";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// Saves a module in text form, whole functions on `backend`, and keeps it to be compared with.
  void Save(const std::string& text, const std::string& backend = "reference") { SaveProfiles({text}, backend); }

  /// The same of several modules, a profile each.
  void SaveProfiles(const std::vector<std::string>& texts, const std::string& backend = "reference") {
    std::vector<LoweredModel> profiles;
    for (const std::string& text : texts) ASSERT_NO_FATAL_FAILURE(AddProfile(text, backend, profiles));
    Result<LoweredModel> model = profiles.size() == 1 ? std::move(profiles[0]) : JoinProfiles(std::move(profiles));
    ASSERT_TRUE(model) << model.error().message;
    model->remainders = remainders_;
    const Status saved = SaveProgram(*model, R"({"note": 1})", path_);
    ASSERT_TRUE(saved) << saved.error().message;
    executable_ = std::make_unique<Executable>(std::move(model->executable));
  }

  static void AddProfile(const std::string& text, const std::string& backend, std::vector<LoweredModel>& profiles) {
    Result<ParsedModule> parsed = ParseModule(text, Operators(), {});
    ASSERT_TRUE(parsed) << parsed.error().message;
    const Result<IRModule> outlined = OutlineBlocks(parsed->module);
    ASSERT_TRUE(outlined) << outlined.error().message;
    const bool is_flat = IsStraightLine(*outlined);
    LowerOptions options;
    options.device.threads = 2;
    options.program.fallback_backend = backend;
    options.find_backend = FindBackend;
    Result<LoweredModel> model = is_flat ? Lower(*outlined, options) : LowerControl(*outlined, options);
    ASSERT_TRUE(model) << model.error().message;
    profiles.push_back(std::move(*model));
  }

  OwnedProgram Load(const char* options = nullptr) {
    collage_program* program = nullptr;
    EXPECT_EQ(Said(collage_program_load(path_.c_str(), options, &program)), "");
    return OwnedProgram(program);
  }
  static OwnedSession Open(const OwnedProgram& program) {
    collage_session* session = nullptr;
    EXPECT_EQ(Said(collage_session_create(program.get(), &session)), "");
    return OwnedSession(session);
  }

  [[nodiscard]] std::vector<Tensor> Inputs(uint64_t seed) const {
    std::vector<Tensor> inputs;
    for (const NamedType& input : executable_->inputs()) FillRandom(inputs.emplace_back(input.type), seed * 10 + inputs.size());
    return inputs;
  }
  [[nodiscard]] std::vector<Tensor> Outputs() const {
    std::vector<Tensor> outputs;
    for (const NamedType& output : executable_->outputs()) outputs.emplace_back(output.type);
    return outputs;
  }
  static std::vector<collage_input> In(const std::vector<Tensor>& tensors) {
    std::vector<collage_input> buffers;
    for (const Tensor& tensor : tensors) buffers.push_back({tensor.Bytes(), tensor.ByteCount()});
    return buffers;
  }
  static std::vector<collage_output> Out(std::vector<Tensor>& tensors) {
    std::vector<collage_output> buffers;
    for (Tensor& tensor : tensors) buffers.push_back({tensor.MutableBytes(), tensor.ByteCount()});
    return buffers;
  }
  static collage_error* Run(const OwnedSession& session, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
    const std::vector<collage_input> in = In(inputs);
    const std::vector<collage_output> out = Out(outputs);
    return collage_session_run(session.get(), in.data(), in.size(), out.data(), out.size());
  }
  /// A run gives what the executor gives.
  void ExpectRight(const OwnedSession& session, uint64_t seed) {
    const std::vector<Tensor> inputs = Inputs(seed);
    const Result<std::vector<Tensor>> expected = executable_->Run(inputs);
    ASSERT_TRUE(expected) << expected.error().message;
    std::vector<Tensor> outputs = Outputs();
    ASSERT_EQ(Said(Run(session, inputs, outputs)), "");
    for (size_t i = 0; i < outputs.size(); ++i) EXPECT_TRUE(BitwiseEqual(outputs[i], (*expected)[i]));
  }

  std::filesystem::path folder_;
  std::filesystem::path path_;
  std::unique_ptr<Executable> executable_;
  Remainders remainders_;  // of what is saved next
};

/// x: (3, 5), y: (3, 5) -> tanh(x) + y, and y * y.
inline constexpr const char* kTwoOutputs = R"(#[version = "0.0.5"]
def @main(%x: Tensor[(3, 5), float32], %y: Tensor[(3, 5), float32]) {
  %0 = tanh(%x);
  %1 = add(%0, %y);
  %2 = multiply(%y, %y);
  (%1, %2)
}
)";

}  // namespace collage
