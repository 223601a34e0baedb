#include "collage/tensor/tensor.h"

#include <cstring>
#include <limits>

#include "collage/support/hash.h"
#include "collage/support/memory.h"
#include "collage/tensor/agreement.h"
#include "collage/tensor/narrow.h"
#include "collage/tensor/strings.h"

namespace collage {
namespace {

template <class T>
std::vector<T> Widen(const Tensor& tensor) {
  std::vector<T> values(static_cast<size_t>(tensor.ElementCount()));
  const bool has_element_type = VisitElementType(tensor.dtype(), [&](auto element) {
    const auto* data = tensor.Data<decltype(element)>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(+data[i]);  // promoted: int8 is a number
  });
  COLLAGE_CHECK(tensor.dtype() != DType::kString, "strings are no numbers");
  return has_element_type ? values : Widen<T>(Widened(tensor));
}

}  // namespace

Tensor::Tensor(TensorType type) : type_(std::move(type)), writable_(true) {
  const std::shared_ptr<std::byte> memory = AllocateBuffer(type_.ByteCount());
  data_ = memory.get();
  buffer_ = memory;
}

Tensor Tensor::View(TensorType type, const void* data, std::shared_ptr<const void> owner) {
  Tensor tensor;
  tensor.type_ = std::move(type);
  tensor.buffer_ = std::move(owner);
  tensor.data_ = static_cast<const std::byte*>(data);
  return tensor;
}

Tensor Tensor::Borrowed(TensorType type, void* data) {
  static const auto nobody = std::make_shared<const int>();
  Tensor tensor = View(std::move(type), data, nobody);
  tensor.writable_ = true;
  return tensor;
}

Tensor Tensor::Reshaped(Shape shape) const {
  COLLAGE_CHECK(collage::ElementCount(shape) == ElementCount());
  Tensor tensor = *this;
  tensor.type_.shape = std::move(shape);
  return tensor;
}

std::vector<int64_t> Tensor::ToInt64() const { return Widen<int64_t>(*this); }
std::vector<double> Tensor::ToDouble() const { return Widen<double>(*this); }

bool BitwiseEqual(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && std::memcmp(a.Bytes(), b.Bytes(), a.ByteCount()) == 0;
}

namespace {

double RandomBetween(double low, double high, uint64_t bits) { return low + (high - low) * (static_cast<double>(bits >> 11) * 0x1.0p-53); }

}  // namespace

void FillRandom(Tensor& tensor, uint64_t seed, double low, double high) {
  const int64_t count = tensor.ElementCount();
  const bool has_element_type = VisitElementType(tensor.dtype(), [&](auto element) {
    using T = decltype(element);
    T* data = tensor.MutableData<T>();
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t bits = HashCombine(seed, static_cast<uint64_t>(i));
      if constexpr (std::is_floating_point_v<T>) {
        data[i] = static_cast<T>(RandomBetween(low, high, bits));
      } else if constexpr (std::is_same_v<T, bool>) {
        data[i] = (bits & 1) != 0;
      } else {
        data[i] = static_cast<T>(bits & 7);
      }
    }
  });
  if (has_element_type) return;
  if (tensor.dtype() == DType::kString) {
    for (int64_t i = 0; i < count; ++i)
      tensor.MutableData<uint64_t>()[i] =
          NumberOfString(std::string(1, static_cast<char>('a' + (HashCombine(seed, static_cast<uint64_t>(i)) & 7))));
    return;
  }
  Tensor wide(TensorType{tensor.shape(), WideType(tensor.dtype())});
  FillRandom(wide, seed, low, high);
  Narrow(wide, tensor);
}

double RelativeDifference(const Tensor& a, const Tensor& b) {
  const Agreement agreement = Compare(a, b);
  return agreement.unequal > 0 ? std::numeric_limits<double>::infinity() : agreement.difference;
}

}  // namespace collage
