#include "collage/backend/cuda/compiler.h"

#include <nvrtc.h>

#include <array>

#include "collage/backend/cuda_device/library.h"

namespace collage::cuda_source {
namespace {

struct Nvrtc {
  decltype(&::nvrtcVersion) nvrtcVersion = nullptr;
  decltype(&::nvrtcGetErrorString) nvrtcGetErrorString = nullptr;
  decltype(&::nvrtcCreateProgram) nvrtcCreateProgram = nullptr;
  decltype(&::nvrtcDestroyProgram) nvrtcDestroyProgram = nullptr;
  decltype(&::nvrtcCompileProgram) nvrtcCompileProgram = nullptr;
  decltype(&::nvrtcGetCUBINSize) nvrtcGetCUBINSize = nullptr;
  decltype(&::nvrtcGetCUBIN) nvrtcGetCUBIN = nullptr;
  decltype(&::nvrtcGetProgramLogSize) nvrtcGetProgramLogSize = nullptr;
  decltype(&::nvrtcGetProgramLog) nvrtcGetProgramLog = nullptr;
};

Result<Nvrtc> OpenNvrtc() {
  const cuda::Library library = COLLAGE_TRY(cuda::Library::OpenOfToolkit("nvrtc"));
  Nvrtc nvrtc;
  COLLAGE_CUDA_FIND(library, nvrtc, nvrtcVersion);
  COLLAGE_CUDA_FIND(library, nvrtc, nvrtcGetErrorString);
  COLLAGE_CUDA_FIND(library, nvrtc, nvrtcCreateProgram);
  COLLAGE_CUDA_FIND(library, nvrtc, nvrtcDestroyProgram);
  COLLAGE_CUDA_FIND(library, nvrtc, nvrtcCompileProgram);
  COLLAGE_CUDA_FIND(library, nvrtc, nvrtcGetCUBINSize);
  COLLAGE_CUDA_FIND(library, nvrtc, nvrtcGetCUBIN);
  COLLAGE_CUDA_FIND(library, nvrtc, nvrtcGetProgramLogSize);
  COLLAGE_CUDA_FIND(library, nvrtc, nvrtcGetProgramLog);
  return nvrtc;
}

const Result<Nvrtc>& Get() {
  static const Result<Nvrtc> nvrtc = OpenNvrtc();
  return nvrtc;
}

Presence FindCompiler() {
  if (!Get()) return Presence::Absent(Get().error().message);
  int major = 0;
  int minor = 0;
  Get()->nvrtcVersion(&major, &minor);
  return Presence::Version(std::to_string(major) + "." + std::to_string(minor));
}

/// A program of the compiler's, destroyed with it.
class Program {
 public:
  explicit Program(const Nvrtc& nvrtc) : nvrtc_(nvrtc) {}
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (program_) nvrtc_.nvrtcDestroyProgram(&program_);
  }

  Result<std::string> Compile(const std::string& source, const std::string& architecture) {
    COLLAGE_TRY_STATUS(Check("nvrtcCreateProgram", nvrtc_.nvrtcCreateProgram(&program_, source.c_str(), "kernel.cu", 0, nullptr, nullptr)));
    const std::array<const char*, 1> options = {architecture.c_str()};
    if (const nvrtcResult result = nvrtc_.nvrtcCompileProgram(program_, static_cast<int>(options.size()), options.data());
        result != NVRTC_SUCCESS)
      return Fail(Check("nvrtcCompileProgram", result).error().message + ": " + FirstError());
    size_t bytes = 0;
    COLLAGE_TRY_STATUS(Check("nvrtcGetCUBINSize", nvrtc_.nvrtcGetCUBINSize(program_, &bytes)));
    std::string code(bytes, '\0');
    COLLAGE_TRY_STATUS(Check("nvrtcGetCUBIN", nvrtc_.nvrtcGetCUBIN(program_, code.data())));
    return code;
  }

 private:
  [[nodiscard]] Status Check(const char* call, nvrtcResult result) const {
    return result == NVRTC_SUCCESS ? Status() : Fail("cuda: " + std::string(call) + ": " + nvrtc_.nvrtcGetErrorString(result));
  }

  [[nodiscard]] std::string FirstError() const {
    size_t bytes = 0;
    if (nvrtc_.nvrtcGetProgramLogSize(program_, &bytes) != NVRTC_SUCCESS || bytes == 0) return {};
    std::string log(bytes, '\0');
    if (nvrtc_.nvrtcGetProgramLog(program_, log.data()) != NVRTC_SUCCESS) return {};
    const size_t error = log.find("error");
    const size_t begin = error == std::string::npos ? 0 : log.rfind('\n', error) + 1;
    return log.substr(begin, log.find('\n', begin) - begin);
  }

  const Nvrtc& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

}  // namespace

const Presence& Compiler() {
  static const Presence presence = FindCompiler();
  return presence;
}

Result<std::string> CompileCuda(const std::string& source, int major, int minor) {
  if (!Get()) return Fail(Get().error());
  return Program(*Get()).Compile(source, "--gpu-architecture=sm_" + std::to_string(major) + std::to_string(minor));
}

}  // namespace collage::cuda_source
