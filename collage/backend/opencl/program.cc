#include "collage/backend/opencl/program.h"

#include <algorithm>

#include "collage/support/hash.h"
#include "collage/support/log.h"

namespace collage::opencl {
namespace {

/// What PoCL's guard around 18 000 lines of declarations is, which it reads anew for each program: 160 of the 190 ms that a build takes.
/// `kFunctions` stands for what the kernels use of them.
constexpr const char* kWithoutDeclarations = "-D_OPENCL_H_ -DCOLLAGE_DECLARES_FUNCTIONS";

/// The functions that kernels call, as the standard declares them (OpenCL C 1.2, sections 6.12 and 6.12.14).
constexpr const char* kFunctions = R"(#ifdef COLLAGE_DECLARES_FUNCTIONS
#define FUNCTION __attribute__((overloadable, const))
#define READER __attribute__((overloadable, pure))
size_t FUNCTION get_global_id(unsigned int);
float FUNCTION fabs(float);
float FUNCTION exp(float);
float FUNCTION log(float);
float FUNCTION sqrt(float);
float FUNCTION erf(float);
float FUNCTION tanh(float);
float FUNCTION ceil(float);
float FUNCTION floor(float);
float FUNCTION pow(float, float);
float FUNCTION fmax(float, float);
int FUNCTION max(int, int);
int FUNCTION min(int, int);
float READER vload_half(size_t, const half*);
void __attribute__((overloadable)) vstore_half_rte(float, size_t, half*);
float4 READER read_imagef(__read_only image2d_t, int2);
#endif
)";

bool ReadsDeclarationsAnew(const OpenClContext& context) { return context.Platform() == "Portable Computing Language"; }

}  // namespace

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
  const bool is_spared = ReadsDeclarationsAnew(*context_);
  Status built = FromSource(kernels, is_spared ? kWithoutDeclarations : "");
  if (!built && is_spared) {
    spdlog::info("opencl: built again with the driver's declarations: {}", built.error().message);
    Release();
    built = FromSource(kernels, "");
  }
  COLLAGE_TRY_STATUS(built);
  spdlog::debug("opencl: compiled {} kernels from their source", kernels.size());
  return {};
}

Status BuiltProgram::FromSource(const std::vector<std::string>& kernels, const char* options) {
  const char* texts[] = {kFunctions, source_.c_str()};
  cl_int error = CL_SUCCESS;
  program_ = clCreateProgramWithSource(context_->context(), std::size(texts), texts, nullptr, &error);
  if (error != CL_SUCCESS) return FailOf("clCreateProgramWithSource", error);
  return Build(kernels, options);
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
  COLLAGE_TRY_STATUS(Build(kernels, ""));
  spdlog::debug("opencl: took {} kernels from saved code", kernels.size());
  return {};
}

Status BuiltProgram::Build(const std::vector<std::string>& kernels, const char* options) {
  cl_device_id id = context_->id();
  cl_int error = clBuildProgram(program_, 1, &id, options, nullptr, nullptr);
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
