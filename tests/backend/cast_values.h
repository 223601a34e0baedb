#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "collage/tensor/float16.h"
#include "tests/backend/kernel_harness.h"

namespace collage::testing_backend {

inline constexpr std::array kCastTypes = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt32, DType::kInt64, DType::kBool};

/// The ends of all types, and the middle between neighbours of 16 bits with what lies just beside it.
inline std::vector<float> NumbersThatAreRounded() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0,        -0.0f,     kInfinity, -kInfinity, std::nanf(""), 3e38f,     std::numeric_limits<float>::max(),
                               65504.0f, 65519.99f, 65520.0f,  -65520.0f,  1e30f,         -1e30f,    2147483520.0f,
                               0x1p31f,  -0x1p31f,  0x1p63f,   -0x1p63f,   0.5f,          -0.99999f, 1e-40f};
  for (const auto from : {FromFloat16, FromBFloat16}) {
    for (int bits = 0; bits < 0xffff; bits += 37) {
      const float low = from(static_cast<uint16_t>(bits));
      const float high = from(static_cast<uint16_t>(bits + 1));
      if (!std::isfinite(low) || !std::isfinite(high)) continue;
      const auto middle = static_cast<float>((static_cast<double>(low) + static_cast<double>(high)) / 2);
      for (const float value : {middle, std::nextafter(middle, kInfinity), std::nextafter(middle, -kInfinity)}) values.push_back(value);
    }
  }
  return values;
}

template <class T>
Tensor VectorOf(const std::vector<T>& values, DType dtype) {
  Tensor tensor(TensorType{{static_cast<int64_t>(values.size())}, dtype});
  std::copy(values.begin(), values.end(), tensor.MutableData<T>());
  return tensor;
}

/// Of every type that is cast from: all numbers of 16 bits, and what is difficult of the others.
inline std::vector<Tensor> ValuesToCast() {
  std::vector<uint16_t> all(size_t{1} << 16);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  const std::vector<int64_t> wide = {
      0,   1,     -1,    2047,  2049,     2051, -2051, 4098,   4102,     257,      65519,
      -65, 65520, 70000, -7000, 16777217, 1000, 70001, -70000, 16777219, 33554435, std::numeric_limits<int32_t>::min()};
  return {VectorOf(all, DType::kFloat16), VectorOf(all, DType::kBFloat16), VectorOf(NumbersThatAreRounded(), DType::kFloat32),
          VectorOf(wide, DType::kInt64), VectorOf(std::vector<int32_t>(wide.begin(), wide.end()), DType::kInt32)};
}

/// Calls `check(function, values)` for a cast of each of these to each type.
template <class Check>
void ForEachCast(const Check& check) {
  for (const Tensor& values : ValuesToCast()) {
    for (const DType to : kCastTypes) {
      SCOPED_TRACE(std::string(Name(values.dtype())) + " to " + std::string(Name(to)));
      const Expr x = MakeVar("x", values.type());
      check(FunctionOf({x}, CallOp("cast", {x}, {{"dtype", std::string(Name(to))}})), values);
    }
  }
}

/// Bit for bit what the reference gives, but that NaN is any.
inline void ExpectBits(const Tensor& found, const Expr& function, const Tensor& values) {
  const Tensor expected = Reference(function, {values});
  ASSERT_EQ(found.type(), expected.type());
  const std::vector<double> found_values = found.ToDouble();
  const std::vector<double> expected_values = expected.ToDouble();
  const size_t size = ByteSize(found.dtype());
  for (size_t i = 0; i < expected_values.size(); ++i) {
    const bool is_same = std::memcmp(found.Bytes() + i * size, expected.Bytes() + i * size, size) == 0;
    EXPECT_TRUE(is_same || (std::isnan(found_values[i]) && std::isnan(expected_values[i])))
        << values.ToDouble()[i] << " became " << found_values[i] << " instead of " << expected_values[i];
  }
}

}  // namespace collage::testing_backend
