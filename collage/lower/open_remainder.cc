#include "collage/lower/open_remainder.h"

#include <dlfcn.h>

#include <filesystem>

#include "collage/support/check.h"

namespace collage {
namespace {

// As onnx/remainder.h has it, which must not be included here: what includes it, links it.
constexpr const char* kCreate = "collage_create_remainder";
using Create = Result<std::shared_ptr<const Remainder>>(Remainder::Parts parts);

}  // namespace

Result<std::shared_ptr<const Remainder>> OpenRemainder(Remainder::Parts parts) {
  Dl_info self{};
  COLLAGE_CHECK(::dladdr(reinterpret_cast<const void*>(&OpenRemainder), &self) != 0);
  const std::filesystem::path file = std::filesystem::path(self.dli_fname).parent_path() / "libcollage_cpp_onnx.so";
  // For ever: it would be loaded again for the next program.
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return Fail(std::string("what lies behind extents that depend on data cannot be read: ") + ::dlerror());
  auto* create = reinterpret_cast<Create*>(::dlsym(library, kCreate));
  if (!create) return Fail(file.string() + ": is of another version of Collage");
  return create(std::move(parts));
}

}  // namespace collage
