#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collage/ir/print.h"
#include "collage/runtime/kernel.h"
#include "collage/runtime/layout_conversion.h"
#include "collage/support/memory.h"
#include "collage/tensor/tensor.h"
#include "tests/backend/kernel_harness.h"

namespace collage::testing_backend {

inline Tensor Converted(const Tensor& tensor, const Layout& from, const Layout& to) {
  Tensor converted(tensor.type());
  LayoutConversion(tensor.type(), from, to, /*threads=*/1).Run(tensor.Bytes(), converted.MutableBytes());
  return converted;
}

/// What a kernel of one output runs on, in the layouts that it wants: none is blocked, so a tensor has its own number of bytes. Each
/// address is aligned as kernels are promised, and no better.
class Place {
 public:
  Place(const Kernel& kernel, const std::vector<Tensor>& tensors) : context_(kernel.context()), output_(kernel.outputs()[0]) {
    for (size_t i = 0; i < tensors.size(); ++i) inputs_.push_back(Filled(Converted(tensors[i], Layout(), kernel.inputs()[i].layout)));
    // No numbers in any floating point type: what a kernel reads before it has written it is seen.
    Tensor nothing(output_.type);
    std::fill_n(nothing.MutableBytes(), nothing.ByteCount(), std::byte{0xff});
    outputs_.push_back(Filled(nothing));
    if (const auto accumulated = kernel.accumulated_input()) outputs_[0] = const_cast<void*>(inputs_[*accumulated]);
    workspace_ = Allocate(kernel.workspace_bytes());
  }

  Status Run(Kernel& kernel) const { return kernel.Run(inputs_, outputs_, workspace_); }

  [[nodiscard]] Tensor Result() const {
    Tensor physical(output_.type);
    EXPECT_TRUE(context_->CopyOut(physical.MutableBytes(), outputs_[0], physical.ByteCount()));
    EXPECT_TRUE(context_->WaitForAll());
    return Converted(physical, output_.layout, Layout());
  }

 private:
  void* Allocate(size_t bytes) {
    return memory_.emplace_back(DeviceMemory::Allocate(context_, bytes + kBufferAlignment).value()).address() + kBufferAlignment;
  }

  void* Filled(const Tensor& tensor) {
    void* address = Allocate(tensor.ByteCount());
    EXPECT_TRUE(context_->CopyIn(address, tensor.Bytes(), tensor.ByteCount()));
    EXPECT_TRUE(context_->WaitForAll());
    return address;
  }

  std::shared_ptr<DeviceContext> context_;
  Port output_;
  std::vector<DeviceMemory> memory_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  void* workspace_ = nullptr;
};

inline Tensor RunOnDevice(Kernel& kernel, const std::vector<Tensor>& inputs) {
  const Place place(kernel, inputs);
  const Status status = place.Run(kernel);
  EXPECT_TRUE(status) << (status ? "" : status.error().message);
  return place.Result();
}

/// Tests of a backend on a device beside the host's CPU; skipped, with the reason, where it is not there.
class DeviceTest : public testing::Test {
 protected:
  DeviceTest(std::string backend, const Device& device) : device_(device), name_(std::move(backend)) {}

  void SetUp() override {
    const Result<const Backend*> found = FindBackend(name_, device_);
    if (!found) GTEST_SKIP() << found.error().message;
    backend_ = *found;
    context_ = backend_->Open(device_).value();
  }

  [[nodiscard]] std::vector<Variant> VariantsOf(const Expr& function) const {
    return backend_->Variants(*function->As<Function>(), device_);
  }
  [[nodiscard]] std::vector<std::string> NamesOf(const Expr& function) const {
    std::vector<std::string> names;
    for (const Variant& variant : VariantsOf(function)) names.push_back(variant.name);
    return names;
  }

  /// Null where that has failed, which fails the test.
  [[nodiscard]] std::unique_ptr<Kernel> Compiled(const Expr& function, const Variant& variant) const {
    Result<std::unique_ptr<Kernel>> kernel = backend_->Compile(*function->As<Function>(), device_, variant);
    EXPECT_TRUE(kernel) << (kernel ? "" : kernel.error().message);
    return kernel ? std::move(*kernel) : nullptr;
  }
  /// The same of the variant of that name.
  [[nodiscard]] std::unique_ptr<Kernel> Compiled(const Expr& function, const std::string& name) const {
    for (const Variant& variant : VariantsOf(function)) {
      if (variant.name == name) return Compiled(function, variant);
    }
    ADD_FAILURE() << context_->name() << " has no variant '" << name << "'";
    return nullptr;
  }

  static void ExpectAgreementOf(Kernel& kernel, const Expr& function, uint64_t seed) {
    const std::vector<Tensor> inputs = RandomInputs(function, seed);
    const Tensor expected = Reference(function, inputs);
    EXPECT_EQ(Objection(Compare(RunOnDevice(kernel, inputs), expected), Tolerance(expected.dtype())), "");
  }

  /// Every variant, at two places, against the reference; there must be some.
  void ExpectAgreement(const Expr& function) const {
    const std::vector<Variant> variants = VariantsOf(function);
    EXPECT_FALSE(variants.empty());
    for (const Variant& variant : variants) {
      SCOPED_TRACE(variant.name + " of " + Print(function));
      const std::unique_ptr<Kernel> kernel = Compiled(function, variant);
      if (!kernel) continue;
      EXPECT_EQ(kernel->outputs()[0].layout, variant.outputs[0]);
      ASSERT_EQ(kernel->inputs().size(), variant.inputs.size());
      for (size_t i = 0; i < variant.inputs.size(); ++i) EXPECT_EQ(kernel->inputs()[i].layout, variant.inputs[i]);
      for (const uint64_t seed : {5, 77}) ExpectAgreementOf(*kernel, function, seed);
    }
  }

  /// Every variant: what it gives to the stream is recorded behind its first run, and given again.
  void ExpectRecordable(const Expr& function) const {
    const std::vector<Tensor> inputs = RandomInputs(function);
    for (const Variant& variant : VariantsOf(function)) {
      SCOPED_TRACE(variant.name);
      const std::unique_ptr<Kernel> kernel = Compiled(function, variant);
      ASSERT_TRUE(kernel);
      const Place place(*kernel, inputs);
      ASSERT_TRUE(place.Run(*kernel));
      const auto recorded = context_->RecordWork({[&] { return place.Run(*kernel); }});
      ASSERT_TRUE(recorded) << recorded.error().message;
      for (int time = 0; time < 2; ++time) {
        ASSERT_TRUE((*recorded)->Give());
        EXPECT_EQ(Objection(Compare(place.Result(), Reference(function, inputs))), "");
      }
    }
  }

  /// A twin takes no memory of its own, and outlives the first.
  void ExpectTwinsShareWeights(const Expr& function) const {
    std::unique_ptr<Kernel> kernel = Compiled(function, VariantsOf(function).at(0));
    ASSERT_TRUE(kernel);
    const size_t allocated = context_->allocated_bytes();
    const std::unique_ptr<Kernel> twin = kernel->Twin();
    ASSERT_TRUE(twin);
    EXPECT_EQ(context_->allocated_bytes(), allocated);
    kernel.reset();
    ExpectAgreementOf(*twin, function, 5);
  }

  const Device device_;
  const Backend* backend_ = nullptr;
  std::shared_ptr<DeviceContext> context_;

 private:
  std::string name_;
};

inline constexpr Device kOpenCl{DeviceKind::kOpenCl, 0, 1};
inline constexpr Device kGpu{DeviceKind::kCuda, 0, 1};

}  // namespace collage::testing_backend
