#include "collage/backend/opencl/program.h"

#include <algorithm>

#include "collage/support/hash.h"
#include "collage/support/log.h"

namespace collage::opencl {

void SavedProgram::Write(artifact::ArtifactWriter& writer) const {
  writer.Text(source);
  writer.Text(made_by);
  writer.Number(HashBytes(code));
  writer.Text(code);
}

Result<SavedProgram> SavedProgram::Read(artifact::ArtifactReader& reader) {
  SavedProgram saved;
  saved.source = COLLAGE_TRY(reader.Text());
  saved.made_by = COLLAGE_TRY(reader.Text());
  const uint64_t hash = COLLAGE_TRY(reader.Number());
  saved.code = COLLAGE_TRY(reader.Text());
  // Drivers open code as a shared library, say, and few of them look at it first.
  if (HashBytes(saved.code) != hash) {
    spdlog::warn("opencl: the saved code of a kernel is damaged");
    saved.code.clear();
  }
  return saved;
}

Result<std::unique_ptr<BuiltProgram>> BuiltProgram::Compile(std::shared_ptr<OpenClContext> context, std::string source,
                                                            const std::vector<std::string>& kernels) {
  std::unique_ptr<BuiltProgram> program(new BuiltProgram(std::move(context), std::move(source)));
  COLLAGE_TRY_STATUS(program->FromSource(kernels));
  return program;
}

Result<std::unique_ptr<BuiltProgram>> BuiltProgram::Load(std::shared_ptr<OpenClContext> context, SavedProgram saved,
                                                         const std::vector<std::string>& kernels) {
  std::unique_ptr<BuiltProgram> program(new BuiltProgram(std::move(context), std::move(saved.source)));
  const std::string here = program->context_->Identity();
  if (saved.made_by != here) {
    spdlog::info("opencl: saved code is for {}; this is {}", saved.made_by, here);
  } else if (!saved.code.empty()) {
    const Status loaded = program->FromCode(saved.code, kernels);
    if (loaded) return program;
    spdlog::warn("opencl: the driver does not take the code that it gave: {}", loaded.error().message);
    program->Release();
  }
  COLLAGE_TRY_STATUS(program->FromSource(kernels));
  return program;
}

BuiltProgram::~BuiltProgram() { Release(); }

void BuiltProgram::Release() {
  for (cl_kernel kernel : kernels_) clReleaseKernel(kernel);
  kernels_.clear();
  if (program_) clReleaseProgram(program_);
  program_ = nullptr;
}

Status BuiltProgram::FromSource(const std::vector<std::string>& kernels) {
  const char* text = source_.c_str();
  const size_t length = source_.size();
  cl_int error = CL_SUCCESS;
  program_ = clCreateProgramWithSource(context_->context(), 1, &text, &length, &error);
  if (error != CL_SUCCESS) return FailOf("clCreateProgramWithSource", error);
  COLLAGE_TRY_STATUS(Build(kernels));
  spdlog::debug("opencl: compiled {} kernels from their source", kernels.size());
  return {};
}

Status BuiltProgram::FromCode(const std::string& code, const std::vector<std::string>& kernels) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(code.data());
  const size_t length = code.size();
  const cl_device_id id = context_->id();
  cl_int of_device = CL_SUCCESS;
  cl_int error = CL_SUCCESS;
  program_ = clCreateProgramWithBinary(context_->context(), 1, &id, &length, &bytes, &of_device, &error);
  if (error != CL_SUCCESS) return FailOf("clCreateProgramWithBinary", error);
  if (of_device != CL_SUCCESS) return FailOf("clCreateProgramWithBinary", of_device);
  COLLAGE_TRY_STATUS(Build(kernels));
  spdlog::debug("opencl: took {} kernels from saved code", kernels.size());
  return {};
}

Status BuiltProgram::Build(const std::vector<std::string>& kernels) {
  cl_device_id id = context_->id();
  cl_int error = clBuildProgram(program_, 1, &id, "", nullptr, nullptr);
  if (error != CL_SUCCESS) return Fail(FailOf("clBuildProgram", error).value().message + ": " + BuildLog());
  for (const std::string& name : kernels) {
    cl_kernel kernel = clCreateKernel(program_, name.c_str(), &error);
    if (error != CL_SUCCESS) return FailOf("clCreateKernel", error);
    kernels_.push_back(kernel);
  }
  return {};
}

SavedProgram BuiltProgram::Saved() const {
  SavedProgram saved{source_, context_->Identity(), {}};
  size_t length = 0;
  if (clGetProgramInfo(program_, CL_PROGRAM_BINARY_SIZES, sizeof length, &length, nullptr) != CL_SUCCESS || length == 0) return saved;
  saved.code.resize(length);
  auto* bytes = reinterpret_cast<unsigned char*>(saved.code.data());
  if (clGetProgramInfo(program_, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, nullptr) != CL_SUCCESS) saved.code.clear();
  return saved;
}

std::string BuiltProgram::BuildLog() const {
  size_t bytes = 0;
  clGetProgramBuildInfo(program_, context_->id(), CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  std::string log(bytes, '\0');
  clGetProgramBuildInfo(program_, context_->id(), CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  constexpr size_t kMost = 400;  // a few lines: an error is read whole, and the first one is what made the others
  return log.substr(0, std::min(log.find('\0'), kMost));
}

}  // namespace collage::opencl
