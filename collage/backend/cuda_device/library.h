#pragma once

#include <string>

#include "collage/support/result.h"

namespace collage::cuda {

/// A library that is opened when Collage runs, so that nothing of it is needed to build and a machine without it is told the reason.
class Library {
 public:
  /// By its name for the loader: "libcuda.so.1". It stays open for ever. Errors are the loader's.
  static Result<Library> Open(const std::string& name);
  /// Of the toolkit whose headers this was built with, by its major version, which says what is compatible: "nvrtc" is "libnvrtc.so.13".
  static Result<Library> OpenOfToolkit(const std::string& name);

  /// Errors name the function: the library is older than it.
  template <class Function>
  Status Find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(Address(name));
    return function ? Status() : Fail("cuda: " + name_ + " has no function " + name);
  }

 private:
  Library(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}
  [[nodiscard]] void* Address(const char* name) const;

  std::string name_;
  void* handle_;
};

/// "13.1.0", of the number that cuBLAS and cuDNN make of it: 130100.
std::string VersionText(size_t version);

}  // namespace collage::cuda

#define COLLAGE_CUDA_NAME_OF(function) #function
/// Finds a function of a header, under the name of the version that the header means (cuMemAlloc is a macro for cuMemAlloc_v2).
#define COLLAGE_CUDA_FIND(library, table, function) COLLAGE_TRY_STATUS((library).Find(COLLAGE_CUDA_NAME_OF(function), (table).function))
