#pragma once

#include <CL/cl.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/backend/kernel_harness.h"

namespace collage::testing_backend {

/// What tests of the backend share: the first device that the loader finds. Without one they are skipped.
class OpenClTest : public testing::Test {
 public:
  static constexpr const char* kBuffer = "element";
  static constexpr const char* kTexture = "element @texture";

 protected:
  void SetUp() override {
    const Result<const Backend*> found = FindBackend("opencl", device_);
    if (!found) GTEST_SKIP() << found.error().message;
    backend_ = *found;
    context_ = backend_->Open(device_).value();
  }

  /// As the driver says, whatever the backend makes of it.
  static bool HasImages() {
    cl_platform_id platform = nullptr;
    cl_device_id id = nullptr;
    cl_bool has_images = CL_FALSE;
    EXPECT_EQ(clGetPlatformIDs(1, &platform, nullptr), CL_SUCCESS);
    EXPECT_EQ(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, nullptr), CL_SUCCESS);
    EXPECT_EQ(clGetDeviceInfo(id, CL_DEVICE_IMAGE_SUPPORT, sizeof has_images, &has_images, nullptr), CL_SUCCESS);
    return has_images == CL_TRUE;
  }

  [[nodiscard]] std::vector<std::string> VariantsOf(const Expr& function) const {
    std::vector<std::string> names;
    for (const Variant& variant : backend_->Variants(*function->As<Function>(), device_)) names.push_back(variant.name);
    return names;
  }

  /// Null where it cannot be compiled, which fails the test.
  [[nodiscard]] std::unique_ptr<Kernel> Compile(const Expr& function, const std::string& variant) const {
    for (const Variant& one : backend_->Variants(*function->As<Function>(), device_)) {
      if (one.name != variant) continue;
      Result<std::unique_ptr<Kernel>> kernel = backend_->Compile(*function->As<Function>(), device_, one);
      EXPECT_TRUE(kernel) << kernel.error().message;
      return kernel ? std::move(*kernel) : nullptr;
    }
    ADD_FAILURE() << context_->name() << " has no variant '" << variant << "'";
    return nullptr;
  }

  const Device device_{DeviceKind::kOpenCl, 0, 1};
  const Backend* backend_ = nullptr;
  std::shared_ptr<DeviceContext> context_;
};

}  // namespace collage::testing_backend
