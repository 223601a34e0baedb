#include "collage/backend/opencl/kernel.h"

#include <algorithm>

#include "collage/backend/artifact_bytes.h"
#include "collage/backend/element_code/recipe.h"
#include "collage/backend/element_code/types.h"
#include "collage/backend/opencl/program.h"

namespace collage::opencl {
namespace {

using artifact::ArtifactReader;
using artifact::ArtifactWriter;
using element_code::Array;
using element_code::GeneratedSource;
using element_code::Launch;
using element_code::Recipe;

/// Textures are of floats, as kernels read them.
bool LiesInTexture(ConstantScope scope, DType dtype) { return scope == ConstantScope::kTexture && dtype == DType::kFloat32; }

element_code::Language LanguageOf(ConstantScope scope) {
  const auto is_texture = [scope](const Array& array) { return array.is_constant && LiesInTexture(scope, array.dtype); };
  const auto kernel = [is_texture](const std::string& name, const std::vector<Array>& inputs, const Array& out, const std::string& body,
                                   int /*lanes*/) {
    std::string parameters;
    for (const Array& input : inputs)
      parameters += (is_texture(input) ? "__read_only image2d_t " : "__global const " + element_code::StoredType(input.dtype) + "* ") +
                    input.name + ", ";
    return "__kernel void " + name + "(" + parameters + "__global " + element_code::StoredType(out.dtype) + "* " + out.name +
           ") {\n  const int i = get_global_id(0);\n" + body + "}\n";
  };
  const auto element = [is_texture](const Array& array, const std::string& index) {
    return is_texture(array) ? "texel(" + array.name + ", " + index + ")" : array.name + "[" + index + "]";
  };
  return {kernel, element};
}

/// Needs no extension, as the type `half` would.
constexpr const char* kFloat16Functions = R"(float from_float16(unsigned short bits) { return vload_half(0, (const half*)&bits); }
unsigned short to_float16(float x) {
  unsigned short bits;
  vstore_half_rte(x, 0, (half*)&bits);
  return bits;
}
)";

/// What the kernels call.
std::string PreludeOf(ConstantScope scope) {
  const std::string conversions = kFloat16Functions + element_code::ConversionFunctions("");
  if (scope == ConstantScope::kBuffer) return conversions;
  const std::string row = std::to_string(DeviceTexture::kRowElements);
  return conversions + "float texel(__read_only image2d_t image, int i) { return read_imagef(image, (int2)(i % " + row + ", i / " + row +
         ")).x; }\n";
}

constexpr std::string_view kMagic = "collage-opencl-4";

struct Saved {
  ConstantScope scope;
  Recipe recipe;
  SavedProgram program;
};

std::string Write(const Recipe& recipe, ConstantScope scope, const SavedProgram& program) {
  ArtifactWriter writer;
  writer.Text(kMagic);
  writer.Number(static_cast<uint64_t>(scope));
  recipe.Write(writer);
  program.Write(writer);
  return writer.Take();
}

Result<Saved> Read(std::string_view artifact) {
  ArtifactReader reader(artifact, "opencl");
  const Result<std::string_view> magic = reader.Text();
  if (!magic || *magic != kMagic) return Fail("opencl: not a saved kernel of this version");
  const uint64_t scope = COLLAGE_TRY(reader.Number());
  if (scope > static_cast<uint64_t>(ConstantScope::kTexture)) return reader.Damaged();
  Recipe recipe = COLLAGE_TRY(Recipe::Read(reader, artifact.size()));
  SavedProgram program = COLLAGE_TRY(SavedProgram::Read(reader));
  if (!reader.AtEnd()) return reader.Damaged();
  return Saved{static_cast<ConstantScope>(scope), std::move(recipe), std::move(program)};
}

class OpenClKernel final : public Kernel {
 public:
  OpenClKernel(Recipe recipe, ConstantScope scope, std::shared_ptr<OpenClContext> context)
      : recipe_(std::move(recipe)), scope_(scope), device_(context), addresses_(recipe_), images_(recipe_.values, nullptr) {
    context_ = std::move(context);
    inputs_ = recipe_.inputs;
    outputs_ = recipe_.outputs;
    workspace_bytes_ = addresses_.workspace_bytes();
  }

  Status Compile(std::string source) {
    program_ = COLLAGE_TRY(BuiltProgram::Compile(device_, std::move(source), recipe_.KernelNames()));
    return BringConstants();
  }

  Status Load(SavedProgram saved) {
    program_ = COLLAGE_TRY(BuiltProgram::Load(device_, std::move(saved), recipe_.KernelNames()));
    return BringConstants();
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    addresses_.Bind(recipe_, inputs, outputs, workspace);
    for (size_t k = 0; k < recipe_.launches.size(); ++k) COLLAGE_TRY_STATUS(Enqueue(recipe_.launches[k], program_->kernels()[k]));
    return {};
  }

  [[nodiscard]] std::string Serialize() const override { return Write(recipe_, scope_, program_->Saved()); }

 private:
  Status BringConstants() {
    for (size_t i = 0; i < recipe_.constants.size(); ++i) {
      const Tensor& constant = recipe_.tensors[i];
      if (LiesInTexture(scope_, constant.dtype())) {
        COLLAGE_TRY_STATUS(BringTexture(recipe_.constants[i], constant));
        continue;
      }
      constants_.push_back(COLLAGE_TRY(DeviceMemory::Allocate(context_, constant.ByteCount())));
      void* address = constants_.back().address();
      addresses_.Set(recipe_.constants[i], address);
      COLLAGE_TRY_STATUS(context_->CopyIn(address, constant.Bytes(), constant.ByteCount()));
    }
    return context_->WaitForAll();
  }

  Status BringTexture(size_t value, const Tensor& constant) {
    const auto elements = static_cast<size_t>(constant.ElementCount());
    if (!device_->TakesTexture(elements))
      return Fail("opencl: " + device_->name() + " has no texture for a constant of " + ToString(constant.type()));
    textures_.push_back(COLLAGE_TRY(DeviceTexture::Create(device_, constant.Data<float>(), elements)));
    images_[value] = textures_.back().image();
    return {};
  }

  Status SetArgument(cl_kernel kernel, cl_uint number, size_t value) {
    if (cl_mem image = images_[value]) {
      const cl_int error = clSetKernelArg(kernel, number, sizeof(cl_mem), &image);
      return error == CL_SUCCESS ? Status() : FailOf("clSetKernelArg", error);
    }
    const cl_int error = clSetKernelArgSVMPointer(kernel, number, addresses_.Of(value));
    return error == CL_SUCCESS ? Status() : FailOf("clSetKernelArgSVMPointer", error);
  }

  Status Enqueue(const Launch& launch, cl_kernel kernel) {
    for (cl_uint i = 0; i < launch.values.size(); ++i) COLLAGE_TRY_STATUS(SetArgument(kernel, i, launch.values[i]));
    const cl_int error = clEnqueueNDRangeKernel(device_->queue(), kernel, 1, nullptr, &launch.items, nullptr, 0, nullptr, nullptr);
    return error == CL_SUCCESS ? Status() : FailOf("clEnqueueNDRangeKernel", error);
  }

  Recipe recipe_;
  ConstantScope scope_;
  std::shared_ptr<OpenClContext> device_;
  element_code::Addresses addresses_;
  std::vector<cl_mem> images_;  // by value; null: it has an address
  std::vector<DeviceMemory> constants_;
  std::vector<DeviceTexture> textures_;
  std::unique_ptr<BuiltProgram> program_;
};

}  // namespace

bool TakesTextures(const OpSequence& sequence, const OpenClContext& context) {
  bool has_constants = false;
  for (const OpSequence::Value& value : sequence.values) {
    // What has one element is written into the source.
    if (!value.constant || value.constant->ElementCount() == 1 || !LiesInTexture(ConstantScope::kTexture, value.type.dtype)) continue;
    if (!context.TakesTexture(static_cast<size_t>(value.constant->ElementCount()))) return false;
    has_constants = true;
  }
  return has_constants;
}

Result<std::unique_ptr<Kernel>> CompileKernel(const OpSequence& sequence, ConstantScope scope, std::shared_ptr<OpenClContext> context) {
  GeneratedSource source = COLLAGE_TRY(element_code::GenerateSource(sequence, LanguageOf(scope)));
  auto kernel = std::make_unique<OpenClKernel>(RecipeOf(sequence, source), scope, std::move(context));
  COLLAGE_TRY_STATUS(kernel->Compile(PreludeOf(scope) + source.text));
  return kernel;
}

Result<std::unique_ptr<Kernel>> LoadKernel(std::string_view artifact, std::shared_ptr<OpenClContext> context) {
  Saved saved = COLLAGE_TRY(Read(artifact));
  auto kernel = std::make_unique<OpenClKernel>(std::move(saved.recipe), saved.scope, std::move(context));
  COLLAGE_TRY_STATUS(kernel->Load(std::move(saved.program)));
  return kernel;
}

}  // namespace collage::opencl
