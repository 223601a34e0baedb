#include "collage/backend/cuda/kernel.h"

#include <utility>
#include <vector>

#include "collage/backend/artifact_bytes.h"
#include "collage/backend/cuda/compiler.h"
#include "collage/backend/cuda/source.h"
#include "collage/backend/cuda_device/driver.h"
#include "collage/support/hash.h"
#include "collage/support/log.h"

namespace collage::cuda_source {
namespace {

using artifact::ArtifactReader;
using artifact::ArtifactWriter;
using cuda::CudaContext;
using cuda::Driver;
using element_code::Launch;
using element_code::Recipe;

constexpr std::string_view kMagic = "collage-cuda-1";

/// Source and the machine code made of it.
struct CudaProgram {
  std::string source;
  std::string capability;  ///< for which the code is: "9.0"
  std::string code;
};

std::string CapabilityOf(const CudaContext& context) {
  return std::to_string(context.capabilities().major) + "." + std::to_string(context.capabilities().minor);
}

Result<CudaProgram> Compiled(std::string source, const CudaContext& context) {
  std::string code = COLLAGE_TRY(CompileCuda(source, context.capabilities().major, context.capabilities().minor));
  return CudaProgram{std::move(source), CapabilityOf(context), std::move(code)};
}

std::string Write(const Recipe& recipe, const CudaProgram& program) {
  ArtifactWriter writer;
  writer.Text(kMagic);
  recipe.Write(writer);
  writer.Text(program.source);
  writer.Text(program.capability);
  writer.Number(HashBytes(program.code));
  writer.Text(program.code);
  return writer.Take();
}

Result<std::pair<Recipe, CudaProgram>> Read(std::string_view artifact) {
  ArtifactReader reader(artifact, "cuda");
  const Result<std::string_view> magic = reader.Text();
  if (!magic || *magic != kMagic) return Fail("cuda: not a saved kernel of this version");
  Recipe recipe = COLLAGE_TRY(Recipe::Read(reader, artifact.size()));
  CudaProgram program;
  program.source = COLLAGE_TRY(reader.Text());
  program.capability = COLLAGE_TRY(reader.Text());
  const uint64_t hash = COLLAGE_TRY(reader.Number());
  program.code = COLLAGE_TRY(reader.Text());
  if (!reader.AtEnd()) return reader.Damaged();
  if (HashBytes(program.code) != hash) {
    spdlog::warn("cuda: the saved code of a kernel is damaged");
    program.code.clear();
  }
  return std::pair(std::move(recipe), std::move(program));
}

class CudaKernel final : public Kernel {
 public:
  CudaKernel(Recipe recipe, CudaProgram program, std::shared_ptr<CudaContext> context)
      : recipe_(std::move(recipe)), program_(std::move(program)), device_(context), addresses_(recipe_) {
    context_ = std::move(context);
    inputs_ = recipe_.inputs;
    outputs_ = recipe_.outputs;
    workspace_bytes_ = addresses_.workspace_bytes();
    for (const Launch& launch : recipe_.launches) items_.push_back(static_cast<int>(launch.items));
    for (size_t k = 0; k < recipe_.launches.size(); ++k) {
      std::vector<void*>& arguments = arguments_.emplace_back();
      for (const size_t value : recipe_.launches[k].values) arguments.push_back(&addresses_.Of(value));
      arguments.push_back(&items_[k]);
    }
  }
  ~CudaKernel() override {
    if (module_ && device_->Enter()) Driver::Use().cuModuleUnload(module_);
  }

  /// Opens the code and brings the constants to the device.
  Status Prepare() {
    COLLAGE_TRY_STATUS(device_->Enter());
    COLLAGE_CUDA_CALL(cuModuleLoadData, &module_, program_.code.data());
    for (const Launch& launch : recipe_.launches) {
      CUfunction function = nullptr;
      COLLAGE_CUDA_CALL(cuModuleGetFunction, &function, module_, launch.name.c_str());
      functions_.push_back(function);
    }
    for (size_t i = 0; i < recipe_.constants.size(); ++i) {
      constants_.push_back(COLLAGE_TRY(cuda::BringConstant(device_, recipe_.tensors[i])));
      addresses_.Set(recipe_.constants[i], constants_.back().address());
    }
    return {};
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    COLLAGE_TRY_STATUS(device_->Enter());
    addresses_.Bind(recipe_, inputs, outputs, workspace);
    for (size_t k = 0; k < recipe_.launches.size(); ++k) {
      const size_t items_of_block = static_cast<size_t>(kBlockThreads / recipe_.launches[k].lanes);
      const auto blocks = static_cast<unsigned>((recipe_.launches[k].items + items_of_block - 1) / items_of_block);
      COLLAGE_CUDA_CALL(cuLaunchKernel, functions_[k], blocks, 1, 1, kBlockThreads, 1, 1, 0, device_->stream(), arguments_[k].data(),
                        nullptr);
    }
    return {};
  }

  [[nodiscard]] std::string Serialize() const override { return Write(recipe_, program_); }

 private:
  Recipe recipe_;
  CudaProgram program_;
  std::shared_ptr<CudaContext> device_;
  element_code::Addresses addresses_;
  std::vector<int> items_;                     // one a launch
  std::vector<std::vector<void*>> arguments_;  // of each launch, where they lie
  std::vector<DeviceMemory> constants_;
  CUmodule module_ = nullptr;
  std::vector<CUfunction> functions_;
};

/// A launch that a damaged artifact may ask for would divide a block unevenly.
bool AreRight(const Recipe& recipe) {
  constexpr size_t kMostItems = size_t{1} << 30;  // generated code counts in int
  for (const Launch& launch : recipe.launches) {
    const bool is_right = launch.lanes == 1 || launch.lanes == kWarpThreads || launch.lanes == kBlockThreads;
    if (!is_right || launch.items == 0 || launch.items > kMostItems) return false;
  }
  return true;
}

Result<std::unique_ptr<Kernel>> MakeKernel(Recipe recipe, CudaProgram program, std::shared_ptr<CudaContext> context) {
  auto kernel = std::make_unique<CudaKernel>(std::move(recipe), std::move(program), std::move(context));
  COLLAGE_TRY_STATUS(kernel->Prepare());
  return kernel;
}

}  // namespace

Result<std::unique_ptr<Kernel>> CompileKernel(const OpSequence& sequence, int lanes, std::shared_ptr<CudaContext> context) {
  CudaSource source = COLLAGE_TRY(GenerateCuda(sequence, lanes));
  CudaProgram program = COLLAGE_TRY(Compiled(std::move(source.text), *context));
  return MakeKernel(std::move(source.recipe), std::move(program), std::move(context));
}

Result<std::unique_ptr<Kernel>> LoadKernel(std::string_view artifact, std::shared_ptr<CudaContext> context) {
  auto [recipe, program] = COLLAGE_TRY(Read(artifact));
  if (!AreRight(recipe)) return Fail("cuda: the saved kernel is damaged");
  if (program.code.empty() || program.capability != CapabilityOf(*context)) {
    spdlog::info("cuda: compiles the source of a kernel that was saved for compute capability {}", program.capability);
    program = COLLAGE_TRY(Compiled(std::move(program.source), *context));
  }
  return MakeKernel(std::move(recipe), std::move(program), std::move(context));
}

}  // namespace collage::cuda_source
