#include "collage/backend/native/generator.h"

#include <HalideRuntime.h>
#include <dlfcn.h>

#include <filesystem>

namespace collage::native {
namespace {

std::filesystem::path GeneratorPath() {
  Dl_info self{};
  if (::dladdr(reinterpret_cast<const void*>(&GenerateWithHalide), &self) == 0) return {};
  return std::filesystem::path(self.dli_fname).parent_path() / COLLAGE_NATIVE_CODEGEN_NAME;
}

Result<Generate> OpenGenerator() {
  // Private: another LLVM in the process (OpenCL drivers have one) must not see this one's symbols.
  void* library = ::dlopen(GeneratorPath().c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return Fail(std::string("native: the code generator cannot be opened: ") + ::dlerror());
  const auto* entry = static_cast<const Generate*>(::dlsym(library, kGenerateSymbol));
  if (!entry) return Fail(std::string("native: the code generator does not export ") + kGenerateSymbol);
  return *entry;
}

}  // namespace

Presence ProbeGenerator() {
  const std::filesystem::path path = GeneratorPath();
  if (!std::filesystem::exists(path)) return Presence::Absent("its code generator " + path.string() + " is missing");
  return Presence::Version("Halide " + std::to_string(HALIDE_VERSION_MAJOR) + "." + std::to_string(HALIDE_VERSION_MINOR) + "." +
                           std::to_string(HALIDE_VERSION_PATCH));
}

Result<GeneratedCode> GenerateWithHalide(const GenerateRequest& request) {
  static const Result<Generate> generate = OpenGenerator();
  if (!generate) return Fail(generate.error());
  return (*generate)(request);
}

}  // namespace collage::native
