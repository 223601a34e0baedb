#pragma once

#include <filesystem>

#include "collage/support/result.h"

namespace collage {

/// The file of the shared object, or of the program, in which this code lies: what is installed with it is found from there.
std::filesystem::path SharedObjectOf(const void* code);

template <class Function>
std::filesystem::path SharedObjectOf(Function* function) {
  return SharedObjectOf(reinterpret_cast<const void*>(function));
}

/// Opens a shared object privately (RTLD_LOCAL: two LLVMs or two OpenMPs must not see each other) and for ever (RTLD_NODELETE: its threads
/// and thread-local state outlive a close). The error says why the loader could not, and names the file.
Result<void*> OpenSharedObject(const std::filesystem::path& file);

/// What an opened shared object exports by that name. Errors: it exports no such thing.
Result<void*> SymbolOf(void* library, const std::filesystem::path& file, const char* name);

/// The same as a function, of a file that was built with the caller.
template <class Function>
Result<Function*> OpenFunction(const std::filesystem::path& file, const char* name) {
  void* library = COLLAGE_TRY(OpenSharedObject(file));
  return reinterpret_cast<Function*>(COLLAGE_TRY(SymbolOf(library, file, name)));
}

}  // namespace collage
