#include "collage/backend/native/library_kernels.h"

#include <algorithm>

#include "collage/backend/registry.h"

namespace collage::native {
namespace {

bool IsPlain(const Variant& variant) {
  const auto plain = [](const Layout& layout) { return layout.IsPlain(); };
  return std::all_of(variant.inputs.begin(), variant.inputs.end(), plain) &&
         std::all_of(variant.outputs.begin(), variant.outputs.end(), plain);
}

}  // namespace

Result<LibraryKernels> LibraryKernels::Open(const std::string& library, const OpSequence& sequence, const RowSplit& split,
                                            const Device& device) {
  Device one_thread = device;
  one_thread.threads = 1;
  const Backend* backend = COLLAGE_TRY(FindBackend(library, one_thread));
  return LibraryKernels(backend, &sequence, &split, one_thread);
}

Result<std::vector<Variant>> LibraryKernels::Variants(int64_t rows) const {
  const Expr function = COLLAGE_TRY(OfRows(*sequence_, *split_, rows));
  std::vector<Variant> variants = backend_->Variants(*function->As<Function>(), device_);
  std::erase_if(variants, [](const Variant& variant) { return !IsPlain(variant); });
  return variants;
}

Result<std::unique_ptr<Kernel>> LibraryKernels::Compile(int64_t rows, const std::string& name, bool may_differ) const {
  const Expr function = COLLAGE_TRY(OfRows(*sequence_, *split_, rows));
  const std::vector<Variant> variants = COLLAGE_TRY(Variants(rows));
  auto chosen = std::find_if(variants.begin(), variants.end(), [&](const Variant& variant) { return variant.name == name; });
  if (chosen == variants.end() && may_differ) chosen = variants.begin();
  if (chosen == variants.end()) {
    return Fail("native: " + std::string(backend_->Name()) + " has no variant '" + name + "' for " + std::to_string(rows) +
                " rows; compile the model again");
  }
  return backend_->Compile(*function->As<Function>(), device_, *chosen);
}

}  // namespace collage::native
