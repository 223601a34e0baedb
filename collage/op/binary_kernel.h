#pragma once

// Element-wise operators over two broadcast tensors: the functions, and the loops that apply them.

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

#include "collage/ir/attributes.h"
#include "collage/tensor/tensor.h"

namespace collage {

// Integers wrap around: arithmetic is done on uint64_t, where C++ defines that.

struct AddFunction {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) return a + b;
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
};

struct SubtractFunction {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) return a - b;
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
};

struct MultiplyFunction {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) return a * b;
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};

struct DivideFunction {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) return a / b;
    if (b == T{}) return T{};
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(a));
    return static_cast<T>(a / b);
  }
};

struct FloorModFunction {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      const T remainder = std::fmod(a, b);
      return remainder != T{} && (remainder < T{}) != (b < T{}) ? remainder + b : remainder;
    } else {
      if (b == T{} || (std::is_signed_v<T> && b == static_cast<T>(-1))) return T{};
      const T remainder = static_cast<T>(a % b);
      return static_cast<T>(remainder != T{} && (remainder < T{}) != (b < T{}) ? remainder + b : remainder);
    }
  }
};

struct PowerFunction {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(std::pow(static_cast<double>(a), static_cast<double>(b)));
    } else {
      if (b < T{}) return a == T{1} || (a == static_cast<T>(-1) && b % 2 == 0) ? T{1} : a == static_cast<T>(-1) ? a : T{};
      uint64_t result = 1;
      auto base = static_cast<uint64_t>(static_cast<int64_t>(a));
      for (auto exponent = static_cast<uint64_t>(static_cast<int64_t>(b)); exponent != 0; exponent >>= 1, base *= base) {
        if (exponent & 1) result *= base;
      }
      return static_cast<T>(result);
    }
  }
};

// Operators on bits, for integers; their type rules admit nothing else.

struct BitwiseAndFunction {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(a & b);
    return a;
  }
};

struct BitwiseOrFunction {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(a | b);
    return a;
  }
};

struct BitwiseXorFunction {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(a ^ b);
    return a;
  }
};

/// Shifts by a negative number of bits, or by all of them, leave 0 (to the right of a negative number -1).
struct LeftShiftFunction {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b < T{} || static_cast<uint64_t>(b) >= 8 * sizeof(T)) return T{};
      return static_cast<T>(static_cast<uint64_t>(a) << static_cast<uint64_t>(b));
    }
    return a;
  }
};

struct RightShiftFunction {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b < T{} || static_cast<uint64_t>(b) >= 8 * sizeof(T)) return a < T{} ? static_cast<T>(-1) : T{};
      return static_cast<T>(a >> b);
    }
    return a;
  }
};

struct MaximumFunction {
  template <class T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

struct MinimumFunction {
  template <class T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

struct PreluFunction {
  template <class T>
  T operator()(T x, T slope) const {
    return x < T{} ? MultiplyFunction()(x, slope) : x;
  }
};

/// Strides in elements with which a tensor of `shape` is read under a broadcast `result` shape: 0 where it is repeated.
std::vector<int64_t> BroadcastStrides(const Shape& shape, const Shape& result);

/// Loops over a shape with two operands: `row(target, a, b, count, step_a, step_b)` for each innermost run, all in elements.
using RowFunction = std::function<void(int64_t target, int64_t a, int64_t b, int64_t count, int64_t step_a, int64_t step_b)>;
void ForEachRow(const Shape& shape, std::vector<int64_t> strides_a, std::vector<int64_t> strides_b, const RowFunction& row);

/// Applies `Function` to elements of a and b, read with strides, whatever their type; the result has its type or is bool.
template <class Function>
void ApplyBinary(const Tensor& a, const std::vector<int64_t>& strides_a, const Tensor& b, const std::vector<int64_t>& strides_b,
                 Tensor& result) {
  VisitElementType(a.dtype(), [&](auto element) {
    using T = decltype(element);
    using R = std::invoke_result_t<Function, T, T>;
    const T* data_a = a.Data<T>();
    const T* data_b = b.Data<T>();
    R* data = result.MutableData<R>();
    ForEachRow(result.shape(), strides_a, strides_b, [&](int64_t target, int64_t x, int64_t y, int64_t count, int64_t dx, int64_t dy) {
      for (int64_t i = 0; i < count; ++i) data[target + i] = Function()(data_a[x + i * dx], data_b[y + i * dy]);
    });
  });
}

template <class Function>
void BinaryKernel(std::span<const Tensor> inputs, const Attributes&, std::span<Tensor> outputs) {
  const Shape& shape = outputs[0].shape();
  ApplyBinary<Function>(inputs[0], BroadcastStrides(inputs[0].shape(), shape), inputs[1], BroadcastStrides(inputs[1].shape(), shape),
                        outputs[0]);
}

/// Strides of a vector that lies along the attribute "axis" (default 1) of data.
std::vector<int64_t> AlongAxisStrides(const Shape& data, const Attributes& attributes);

template <class Function>
void AlongAxisKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  const Shape& shape = outputs[0].shape();
  ApplyBinary<Function>(inputs[0], RowMajorStrides(shape), inputs[1], AlongAxisStrides(shape, attributes), outputs[0]);
}

}  // namespace collage
