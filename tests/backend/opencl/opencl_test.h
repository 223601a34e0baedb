#pragma once

#include <CL/cl.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/backend/device_harness.h"

namespace collage::testing_backend {

/// What tests of the backend share.
class OpenClTest : public DeviceTest {
 public:
  static constexpr const char* kBuffer = "element";
  static constexpr const char* kTexture = "element @texture";

 protected:
  OpenClTest() : DeviceTest("opencl", kOpenCl) {}

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
};

}  // namespace collage::testing_backend
