#include "collage/lower/open_remainder.h"

#include <filesystem>

#include "collage/support/shared_object.h"

namespace collage {
namespace {

// As onnx/remainder.h has it, which must not be included here: what includes it, links it.
constexpr const char* kCreate = "collage_create_remainder";
using Create = Result<std::shared_ptr<const Remainder>>(Remainder::Parts parts);

}  // namespace

Result<std::shared_ptr<const Remainder>> OpenRemainder(Remainder::Parts parts) {
  const std::filesystem::path file = SharedObjectOf(&OpenRemainder).parent_path() / "libcollage_cpp_onnx.so";
  const Result<Create*> create = OpenFunction<Create>(file, kCreate);
  if (!create) return Fail("what lies behind extents that depend on data cannot be read: " + create.error().message);
  return (*create)(std::move(parts));
}

}  // namespace collage
