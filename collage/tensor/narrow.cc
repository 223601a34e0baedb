#include "collage/tensor/narrow.h"

#include <algorithm>

#include "collage/tensor/float16.h"

namespace collage {

bool IsSixteenBitFloat(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

Tensor Widened(const Tensor& tensor) {
  COLLAGE_CHECK(IsSixteenBitFloat(tensor.dtype()));
  Tensor wide(TensorType{tensor.shape(), DType::kFloat32});
  const uint16_t* bits = tensor.Data<uint16_t>();
  std::transform(bits, bits + tensor.ElementCount(), wide.MutableData<float>(),
                 tensor.dtype() == DType::kFloat16 ? FromFloat16 : FromBFloat16);
  return wide;
}

void Narrow(const Tensor& wide, Tensor& result) {
  COLLAGE_CHECK(IsSixteenBitFloat(result.dtype()) && wide.shape() == result.shape());
  const float* values = wide.Data<float>();
  std::transform(values, values + wide.ElementCount(), result.MutableData<uint16_t>(),
                 result.dtype() == DType::kFloat16 ? ToFloat16 : ToBFloat16);
}

Tensor ScalarOf(double value, DType dtype) {
  if (!IsSixteenBitFloat(dtype)) return Tensor::Scalar(value, dtype);
  Tensor result(TensorType{{}, dtype});
  Narrow(Tensor::Scalar(value, DType::kFloat32), result);
  return result;
}

}  // namespace collage
