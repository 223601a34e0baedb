#include "collage/backend/opencl/kernel.h"

#include <algorithm>

#include "collage/backend/artifact_bytes.h"
#include "collage/backend/element_code/source.h"
#include "collage/backend/opencl/program.h"
#include "collage/support/memory.h"

namespace collage::opencl {
namespace {

using artifact::ArtifactReader;
using artifact::ArtifactWriter;
using element_code::Array;
using element_code::GeneratedSource;
using element_code::Launch;

element_code::Language LanguageOf(ConstantScope scope) {
  const auto is_texture = [scope](const Array& array) { return scope == ConstantScope::kTexture && array.is_constant; };
  const auto kernel = [is_texture](const std::string& name, const std::vector<Array>& inputs, const std::string& body) {
    std::string parameters;
    for (const Array& input : inputs)
      parameters += (is_texture(input) ? "__read_only image2d_t " : "__global const float* ") + input.name + ", ";
    return "__kernel void " + name + "(" + parameters + "__global float* out) {\n  const int i = get_global_id(0);\n" + body + "}\n";
  };
  const auto element = [is_texture](const Array& array, const std::string& index) {
    return is_texture(array) ? "texel(" + array.name + ", " + index + ")" : array.name + "[" + index + "]";
  };
  return {kernel, element};
}

/// What the kernels call.
std::string PreludeOf(ConstantScope scope) {
  if (scope == ConstantScope::kBuffer) return "";
  const std::string row = std::to_string(DeviceTexture::kRowElements);
  return "float texel(__read_only image2d_t image, int i) { return read_imagef(image, (int2)(i % " + row + ", i / " + row + ")).x; }\n";
}

constexpr std::string_view kMagic = "collage-opencl-3";

/// What a kernel is made of: buffers by value of the function, and launches that take them.
struct Recipe {
  ConstantScope scope = ConstantScope::kBuffer;
  size_t values = 0;
  std::vector<size_t> parameters;
  std::vector<size_t> results;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<Launch> launches;
  std::vector<size_t> constants;  ///< values
  std::vector<Tensor> tensors;    ///< of each
  std::vector<size_t> intermediate;
  std::vector<size_t> intermediate_bytes;
};

Recipe RecipeOf(const OpSequence& sequence, ConstantScope scope, GeneratedSource& source) {
  Recipe recipe;
  recipe.scope = scope;
  recipe.values = sequence.values.size();
  recipe.parameters = sequence.parameters;
  recipe.results = sequence.results;
  for (const size_t value : sequence.parameters) recipe.inputs.push_back({sequence.values[value].type, Layout()});
  for (const size_t value : sequence.results) recipe.outputs.push_back({sequence.values[value].type, Layout()});
  recipe.launches = std::move(source.launches);
  recipe.constants = std::move(source.constants);
  for (const size_t value : recipe.constants) recipe.tensors.push_back(*sequence.values[value].constant);
  recipe.intermediate = std::move(source.intermediate);
  for (const size_t value : recipe.intermediate) recipe.intermediate_bytes.push_back(sequence.values[value].type.ByteCount());
  return recipe;
}

std::string Write(const Recipe& recipe, const SavedProgram& program) {
  ArtifactWriter writer;
  writer.Text(kMagic);
  writer.Number(static_cast<uint64_t>(recipe.scope));
  writer.Number(recipe.values);
  writer.Numbers(recipe.parameters);
  writer.Numbers(recipe.results);
  writer.Ports(recipe.inputs);
  writer.Ports(recipe.outputs);
  writer.Number(recipe.launches.size());
  for (const Launch& launch : recipe.launches) {
    writer.Text(launch.name);
    writer.Number(launch.items);
    writer.Numbers(launch.values);
  }
  writer.Numbers(recipe.constants);
  writer.Tensors(recipe.tensors);
  writer.Numbers(recipe.intermediate);
  writer.Numbers(recipe.intermediate_bytes);
  program.Write(writer);
  return writer.Take();
}

Result<std::pair<Recipe, SavedProgram>> Read(std::string_view artifact) {
  ArtifactReader reader(artifact, "opencl");
  const Result<std::string_view> magic = reader.Text();
  if (!magic || *magic != kMagic) return Fail("opencl: not a saved kernel of this version");
  Recipe recipe;
  const uint64_t scope = COLLAGE_TRY(reader.Number());
  if (scope > static_cast<uint64_t>(ConstantScope::kTexture)) return reader.Damaged();
  recipe.scope = static_cast<ConstantScope>(scope);
  recipe.values = COLLAGE_TRY(reader.Number());
  // Each value is a parameter, a constant, a result or intermediate, and each of these takes bytes of its own.
  if (recipe.values > artifact.size()) return reader.Damaged();
  recipe.parameters = COLLAGE_TRY(reader.Numbers(recipe.values));
  recipe.results = COLLAGE_TRY(reader.Numbers(recipe.values));
  recipe.inputs = COLLAGE_TRY(reader.Ports());
  recipe.outputs = COLLAGE_TRY(reader.Ports());
  for (uint64_t left = COLLAGE_TRY(reader.Count()); left > 0; --left) {
    Launch launch;
    launch.name = std::string(COLLAGE_TRY(reader.Text()));
    launch.items = COLLAGE_TRY(reader.Number());
    launch.values = COLLAGE_TRY(reader.Numbers(recipe.values));
    recipe.launches.push_back(std::move(launch));
  }
  recipe.constants = COLLAGE_TRY(reader.Numbers(recipe.values));
  recipe.tensors = COLLAGE_TRY(reader.Tensors());
  recipe.intermediate = COLLAGE_TRY(reader.Numbers(recipe.values));
  recipe.intermediate_bytes = COLLAGE_TRY(reader.Numbers(PhysicalMemory()));
  SavedProgram program = COLLAGE_TRY(SavedProgram::Read(reader));
  const bool fits = recipe.inputs.size() == recipe.parameters.size() && recipe.outputs.size() == recipe.results.size() &&
                    recipe.constants.size() == recipe.tensors.size() && recipe.intermediate.size() == recipe.intermediate_bytes.size();
  if (!fits || !reader.AtEnd()) return reader.Damaged();
  return std::pair(std::move(recipe), std::move(program));
}

class OpenClKernel final : public Kernel {
 public:
  OpenClKernel(Recipe recipe, std::shared_ptr<OpenClContext> context)
      : recipe_(std::move(recipe)), device_(context), addresses_(recipe_.values, nullptr), images_(recipe_.values, nullptr) {
    context_ = std::move(context);
    inputs_ = recipe_.inputs;
    outputs_ = recipe_.outputs;
    for (const size_t bytes : recipe_.intermediate_bytes) {
      offsets_.push_back(workspace_bytes_);
      workspace_bytes_ += AlignedBytes(bytes);
    }
  }

  Status Compile(std::string source) {
    program_ = COLLAGE_TRY(BuiltProgram::Compile(device_, std::move(source), KernelNames()));
    return BringConstants();
  }

  Status Load(SavedProgram saved) {
    program_ = COLLAGE_TRY(BuiltProgram::Load(device_, std::move(saved), KernelNames()));
    return BringConstants();
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    for (size_t i = 0; i < inputs.size(); ++i) addresses_[recipe_.parameters[i]] = const_cast<void*>(inputs[i]);
    for (size_t i = 0; i < outputs.size(); ++i) addresses_[recipe_.results[i]] = outputs[i];
    for (size_t i = 0; i < offsets_.size(); ++i) addresses_[recipe_.intermediate[i]] = static_cast<std::byte*>(workspace) + offsets_[i];
    for (size_t k = 0; k < recipe_.launches.size(); ++k) COLLAGE_TRY_STATUS(Enqueue(recipe_.launches[k], program_->kernels()[k]));
    return {};
  }

  [[nodiscard]] std::string Serialize() const override { return Write(recipe_, program_->Saved()); }

 private:
  [[nodiscard]] std::vector<std::string> KernelNames() const {
    std::vector<std::string> names;
    for (const Launch& launch : recipe_.launches) names.push_back(launch.name);
    return names;
  }

  Status BringConstants() {
    for (size_t i = 0; i < recipe_.constants.size(); ++i) {
      const Tensor& constant = recipe_.tensors[i];
      if (recipe_.scope == ConstantScope::kTexture) {
        COLLAGE_TRY_STATUS(BringTexture(recipe_.constants[i], constant));
        continue;
      }
      constants_.push_back(COLLAGE_TRY(DeviceMemory::Allocate(context_, constant.ByteCount())));
      void* address = constants_.back().address();
      addresses_[recipe_.constants[i]] = address;
      COLLAGE_TRY_STATUS(context_->CopyIn(address, constant.Bytes(), constant.ByteCount()));
    }
    return context_->WaitForAll();
  }

  Status BringTexture(size_t value, const Tensor& constant) {
    const auto elements = static_cast<size_t>(constant.ElementCount());
    if (constant.type().dtype != DType::kFloat32 || !device_->TakesTexture(elements))
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
    const cl_int error = clSetKernelArgSVMPointer(kernel, number, addresses_[value]);
    return error == CL_SUCCESS ? Status() : FailOf("clSetKernelArgSVMPointer", error);
  }

  Status Enqueue(const Launch& launch, cl_kernel kernel) {
    for (cl_uint i = 0; i < launch.values.size(); ++i) COLLAGE_TRY_STATUS(SetArgument(kernel, i, launch.values[i]));
    const cl_int error = clEnqueueNDRangeKernel(device_->queue(), kernel, 1, nullptr, &launch.items, nullptr, 0, nullptr, nullptr);
    return error == CL_SUCCESS ? Status() : FailOf("clEnqueueNDRangeKernel", error);
  }

  Recipe recipe_;
  std::shared_ptr<OpenClContext> device_;
  std::vector<void*> addresses_;  // by value
  std::vector<cl_mem> images_;    // by value; null: it has an address
  std::vector<size_t> offsets_;   // in the workspace, of what lies between kernels
  std::vector<DeviceMemory> constants_;
  std::vector<DeviceTexture> textures_;
  std::unique_ptr<BuiltProgram> program_;
};

}  // namespace

bool TakesTextures(const OpSequence& sequence, const OpenClContext& context) {
  bool has_constants = false;
  for (const OpSequence::Value& value : sequence.values) {
    // What has one element is written into the source.
    if (!value.constant || value.constant->ElementCount() == 1) continue;
    if (!context.TakesTexture(static_cast<size_t>(value.constant->ElementCount()))) return false;
    has_constants = true;
  }
  return has_constants;
}

Result<std::unique_ptr<Kernel>> CompileKernel(const OpSequence& sequence, ConstantScope scope, std::shared_ptr<OpenClContext> context) {
  GeneratedSource source = COLLAGE_TRY(element_code::GenerateSource(sequence, LanguageOf(scope)));
  auto kernel = std::make_unique<OpenClKernel>(RecipeOf(sequence, scope, source), std::move(context));
  COLLAGE_TRY_STATUS(kernel->Compile(PreludeOf(scope) + source.text));
  return kernel;
}

Result<std::unique_ptr<Kernel>> LoadKernel(std::string_view artifact, std::shared_ptr<OpenClContext> context) {
  auto [recipe, program] = COLLAGE_TRY(Read(artifact));
  auto kernel = std::make_unique<OpenClKernel>(std::move(recipe), std::move(context));
  COLLAGE_TRY_STATUS(kernel->Load(std::move(program)));
  return kernel;
}

}  // namespace collage::opencl
