#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collage/support/check.h"
#include "collage/tensor/tensor_type.h"

namespace collage {

/// A dense row-major host tensor, 64-byte aligned. Copies share the buffer (a handle, as a NumPy array is): whoever
/// writes must own it alone.
class Tensor {
 public:
  Tensor() = default;
  /// A zero-filled tensor.
  explicit Tensor(TensorType type);

  /// A view of memory that `owner` keeps alive (a mapped file, a protobuf string); not writable.
  static Tensor View(TensorType type, const void* data, std::shared_ptr<const void> owner);
  /// Memory of somebody else, who keeps it alive and lets it be written.
  static Tensor Borrowed(TensorType type, void* data);
  /// This handle of such memory from now on means that at `data`; of the same size.
  void MoveTo(void* data) { data_ = static_cast<std::byte*>(data); }
  /// A one-element tensor without dimensions.
  template <class T>
  static Tensor Scalar(T value, DType dtype) {
    Tensor tensor(TensorType{{}, dtype});
    const bool has_element_type =
        VisitElementType(dtype, [&](auto element) { *tensor.MutableData<decltype(element)>() = static_cast<decltype(element)>(value); });
    COLLAGE_CHECK(has_element_type, "a scalar of a narrow type");
    return tensor;
  }
  template <class T>
  static Tensor FromVector(TensorType type, const std::vector<T>& values) {
    Tensor tensor(std::move(type));
    COLLAGE_CHECK(static_cast<int64_t>(values.size()) == tensor.ElementCount());
    T* data = tensor.MutableData<T>();
    for (size_t i = 0; i < values.size(); ++i) data[i] = values[i];
    return tensor;
  }

  [[nodiscard]] bool Defined() const { return buffer_ != nullptr; }
  [[nodiscard]] const TensorType& type() const { return type_; }
  [[nodiscard]] const Shape& shape() const { return type_.shape; }
  [[nodiscard]] DType dtype() const { return type_.dtype; }
  [[nodiscard]] int64_t ElementCount() const { return type_.ElementCount(); }
  [[nodiscard]] size_t ByteCount() const { return type_.ByteCount(); }

  /// False for a view.
  [[nodiscard]] bool Writable() const { return writable_; }
  [[nodiscard]] const std::byte* Bytes() const { return data_; }
  [[nodiscard]] std::byte* MutableBytes() {
    COLLAGE_CHECK(writable_);
    return const_cast<std::byte*>(data_);
  }
  template <class T>
  [[nodiscard]] const T* Data() const {
    COLLAGE_CHECK(sizeof(T) == ByteSize(type_.dtype));
    return reinterpret_cast<const T*>(data_);
  }
  template <class T>
  [[nodiscard]] T* MutableData() {
    COLLAGE_CHECK(sizeof(T) == ByteSize(type_.dtype));
    return reinterpret_cast<T*>(MutableBytes());
  }
  template <class T>
  [[nodiscard]] std::span<const T> Values() const {
    return {Data<T>(), static_cast<size_t>(ElementCount())};
  }

  /// The same elements under another shape of equal element count; shares the buffer.
  [[nodiscard]] Tensor Reshaped(Shape shape) const;
  /// Elements as int64 (integer and boolean tensors) or double, whatever the dtype (narrow ones included, but not strings).
  [[nodiscard]] std::vector<int64_t> ToInt64() const;
  [[nodiscard]] std::vector<double> ToDouble() const;

 private:
  TensorType type_;
  std::shared_ptr<const void> buffer_;
  const std::byte* data_ = nullptr;
  bool writable_ = false;
};

/// True when type and every byte agree.
bool BitwiseEqual(const Tensor& a, const Tensor& b);

/// Fills with seeded values: floating point tensors uniform in [low, high), integer ones in {0, 1, ..., 7}, booleans both; narrow
/// ones what those of their wide type round to; strings "a" to "h".
/// The sequence depends on seed and element count only (splitmix64).
void FillRandom(Tensor& tensor, uint64_t seed, double low = -1.0, double high = 1.0);

/// Largest |a - b| divided by the largest |b| (by 1 where b is all zero); infinity when the shapes differ, an element is NaN
/// in one only, or infinities disagree.
double RelativeDifference(const Tensor& a, const Tensor& b);

}  // namespace collage
