#include "collage/backend/cuda_device/driver.h"

#include <string>

#include "collage/backend/cuda_device/library.h"
#include "collage/support/check.h"

namespace collage::cuda {
namespace {

std::string Describe(const Driver& driver, CUresult result) {
  const char* name = nullptr;
  const char* words = nullptr;
  const bool is_known =
      driver.cuGetErrorName(result, &name) == CUDA_SUCCESS && driver.cuGetErrorString(result, &words) == CUDA_SUCCESS && name && words;
  return is_known ? std::string(name) + " (" + words + ")" : "error " + std::to_string(result);
}

Result<Driver> OpenDriver() {
  const Library library = COLLAGE_TRY(Library::Open("libcuda.so.1"));
  Driver driver;
#define COLLAGE_CUDA_FIND_IN_DRIVER(function) COLLAGE_CUDA_FIND(library, driver, function);
  COLLAGE_CUDA_FUNCTIONS(COLLAGE_CUDA_FIND_IN_DRIVER)
#undef COLLAGE_CUDA_FIND_IN_DRIVER
  if (const CUresult result = driver.cuInit(0); result != CUDA_SUCCESS) return Fail("cuda: cuInit: " + Describe(driver, result));
  return driver;
}

}  // namespace

const Result<Driver>& Driver::Get() {
  static const Result<Driver> driver = OpenDriver();
  return driver;
}

const Driver& Driver::Use() {
  COLLAGE_CHECK(Get().has_value());
  return *Get();
}

tl::unexpected<Error> FailOf(const char* call, CUresult result) {
  return Fail("cuda: " + std::string(call) + ": " + Describe(Driver::Use(), result));
}

}  // namespace collage::cuda
