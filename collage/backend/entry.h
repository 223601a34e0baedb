#pragma once

// What a backend's shared object exports, and by what one that does not fit is refused. Included by the one source of a backend that
// says COLLAGE_BACKEND.

#include "collage/backend/backend.h"
// Generated (collage/backend/CMakeLists.txt): kContractHeaders, which changes with every header that a backend may include.
#include "collage/backend/contract_headers.h"

namespace collage {

/// The version of the contract (backend.h). It changes when a backend's source has to.
inline constexpr int kBackendContract = 1;

struct BackendEntry {
  /// Stays the first field for ever, so that any version can say of another that it is one.
  int contract = kBackendContract;
  /// Classes cross the border, so a shared object fits only the headers that it was built with.
  const char* headers = kContractHeaders;
  const Backend* (*backend)() = nullptr;  ///< the object owns it
};

/// A shared object exports this symbol, a BackendEntry.
inline constexpr const char* kBackendEntrySymbol = "collage_backend_entry";
/// And may export this one, a `const char* const` that changes with its sources (cmake/CollageTargets.cmake makes it). Without it the
/// bytes of the file stand for them.
inline constexpr const char* kBackendSourcesSymbol = "collage_backend_sources";

}  // namespace collage

/// Defines the entry symbol of a backend's shared object.
#define COLLAGE_BACKEND(Type)                                                                                      \
  extern "C" __attribute__((visibility("default"))) const ::collage::BackendEntry collage_backend_entry;           \
  const ::collage::BackendEntry collage_backend_entry = {::collage::kBackendContract, ::collage::kContractHeaders, \
                                                         []() -> const ::collage::Backend* {                       \
                                                           static const Type backend;                              \
                                                           return &backend;                                        \
                                                         }};
