#include <utility>

#include "collage/c/objects.h"

namespace collage::c_abi {
namespace {

collage_error& OutOfMemory() {
  static collage_error error{COLLAGE_ERROR_RUN, "out of memory"};
  return error;
}
// Made while there is memory.
[[maybe_unused]] const collage_error& made_early = OutOfMemory();

}  // namespace

collage_error* MakeError(collage_error_kind kind, std::string message) noexcept {
  auto* error = new (std::nothrow) collage_error{kind, std::move(message)};
  return error ? error : &OutOfMemory();
}

}  // namespace collage::c_abi

uint32_t collage_abi_version() noexcept { return COLLAGE_ABI_VERSION; }

const char* collage_error_message(const collage_error* error) noexcept { return error ? error->message.c_str() : ""; }

collage_error_kind collage_error_kind_of(const collage_error* error) noexcept { return error ? error->kind : collage_error_kind{}; }

void collage_error_free(collage_error* error) noexcept {
  if (error != &collage::c_abi::OutOfMemory()) delete error;
}
