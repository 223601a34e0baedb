#include "collage/backend/cuda_device/library.h"

#include <dlfcn.h>

namespace collage::cuda {

Result<Library> Library::Open(const std::string& name) {
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle) return Library(name, handle);
  const char* reason = ::dlerror();
  return Fail("cuda: " + std::string(reason ? reason : name + " cannot be opened"));
}

void* Library::Address(const char* name) const { return ::dlsym(handle_, name); }

}  // namespace collage::cuda
