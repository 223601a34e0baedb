#include "collage/support/shared_object.h"

#include <dlfcn.h>

#include <string>

#include "collage/support/check.h"

namespace collage {

std::filesystem::path SharedObjectOf(const void* code) {
  Dl_info found{};
  COLLAGE_CHECK(::dladdr(code, &found) != 0);
  return found.dli_fname;
}

Result<void*> OpenSharedObject(const std::filesystem::path& file) {
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return Fail(::dlerror());
  return library;
}

Result<void*> SymbolOf(void* library, const std::filesystem::path& file, const char* name) {
  void* symbol = ::dlsym(library, name);
  if (!symbol) return Fail(file.string() + ": does not export " + name + "; it is of another version of Collage");
  return symbol;
}

}  // namespace collage
