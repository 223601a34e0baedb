#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "collage/runtime/kernel.h"
#include "collage/tensor/tensor.h"

namespace collage::testing_backend {

/// Runs a kernel of plain layouts and one output on its device.
inline Tensor RunOnDevice(Kernel& kernel, const std::vector<Tensor>& inputs) {
  const std::shared_ptr<DeviceContext>& context = kernel.context();
  std::vector<DeviceMemory> memory;
  const auto place = [&](size_t bytes) { return memory.emplace_back(DeviceMemory::Allocate(context, bytes).value()).address(); };
  std::vector<const void*> from;
  for (const Tensor& input : inputs) {
    void* address = place(input.ByteCount());
    EXPECT_TRUE(context->CopyIn(address, input.Bytes(), input.ByteCount()));
    from.push_back(address);
  }
  Tensor output(kernel.outputs()[0].type);
  void* to[] = {place(output.ByteCount())};
  // What a kernel reads before it has written it is seen.
  std::fill_n(output.MutableData<float>(), output.ByteCount() / sizeof(float), std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(context->CopyIn(to[0], output.Bytes(), output.ByteCount()));
  if (const auto accumulated = kernel.accumulated_input()) {
    EXPECT_TRUE(context->CopyWithin(to[0], from[*accumulated], output.ByteCount()));
    from[*accumulated] = to[0];
  }
  const Status status = kernel.Run(from, to, place(std::max<size_t>(kernel.workspace_bytes(), 1)));
  EXPECT_TRUE(status) << (status ? "" : status.error().message);
  EXPECT_TRUE(context->CopyOut(output.MutableBytes(), to[0], output.ByteCount()));
  EXPECT_TRUE(context->WaitForAll());
  return output;
}

}  // namespace collage::testing_backend
