#include "collage/backend/cuda_device/library.h"

#include <cuda.h>
#include <dlfcn.h>

namespace collage::cuda {

Result<Library> Library::Open(const std::string& name) {
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle) return Library(name, handle);
  const char* reason = ::dlerror();
  return Fail("cuda: " + std::string(reason ? reason : name + " cannot be opened"));
}

Result<Library> Library::OpenOfToolkit(const std::string& name) {
  constexpr int kMajor = 1000;  // as CUDA_VERSION is made of its parts
  return Open("lib" + name + ".so." + std::to_string(CUDA_VERSION / kMajor));
}

void* Library::Address(const char* name) const { return ::dlsym(handle_, name); }

std::string VersionText(size_t version) {
  constexpr size_t kMajor = 10000;
  constexpr size_t kMinor = 100;
  return std::to_string(version / kMajor) + "." + std::to_string(version % kMajor / kMinor) + "." + std::to_string(version % kMinor);
}

}  // namespace collage::cuda
