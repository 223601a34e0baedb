#include "collage/backend/native/generator.h"

#include <HalideRuntime.h>

#include <filesystem>

#include "collage/support/shared_object.h"

namespace collage::native {
namespace {

std::filesystem::path GeneratorPath() { return SharedObjectOf(&GenerateWithHalide).parent_path() / COLLAGE_NATIVE_CODEGEN_NAME; }

Result<Generate> OpenGenerator() {
  // Another LLVM in the process (OpenCL drivers have one) does not see this one's symbols.
  const std::filesystem::path file = GeneratorPath();
  const Result<void*> library = OpenSharedObject(file);
  if (!library) return Fail("native: the code generator cannot be opened: " + library.error().message);
  return *static_cast<const Generate*>(COLLAGE_TRY(SymbolOf(*library, file, kGenerateSymbol)));
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
