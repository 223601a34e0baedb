#pragma once

// What the tests of the operator families share: calling a type rule or a kernel by name, and reading tensors by index, from
// which each test writes its own direct formula.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "collage/ir/attributes.h"
#include "collage/ir/type.h"
#include "collage/tensor/tensor.h"

namespace collage {

using Ints = std::vector<int64_t>;
using Index = std::vector<int64_t>;

/// A tensor type, float32 unless told otherwise.
TensorType T(Shape shape, DType dtype = DType::kFloat32);

/// The result type as text, or the error.
std::string Infer(const std::string& op, const std::vector<Type>& arguments, const Attributes& attributes = {});

/// Seeded values in [-1, 1), small integers or both booleans.
Tensor Random(TensorType type, uint64_t seed = 1);
template <class Element>
Tensor Make(Shape shape, DType dtype, const std::vector<Element>& values) {
  return Tensor::FromVector<Element>({std::move(shape), dtype}, values);
}
Tensor Floats(Shape shape, const std::vector<float>& values);
Tensor Int64s(Shape shape, const std::vector<int64_t>& values);

/// Builds the call (its type rule runs) and evaluates it. `tuple`: the inputs are the fields of one tuple argument.
std::vector<Tensor> ApplyAll(const std::string& op, const std::vector<Tensor>& inputs, const Attributes& attributes = {},
                             bool tuple = false);
Tensor Apply(const std::string& op, const std::vector<Tensor>& inputs, const Attributes& attributes = {});
Tensor ApplyToTuple(const std::string& op, const std::vector<Tensor>& inputs, const Attributes& attributes = {});

/// Elements by index; `Or` gives `outside` where the index is not in the tensor.
class Reader {
 public:
  explicit Reader(const Tensor& tensor) : shape_(tensor.shape()), values_(tensor.ToDouble()) {}
  double operator()(const Index& index) const;
  [[nodiscard]] double Or(const Index& index, double outside) const;

 private:
  [[nodiscard]] bool Holds(const Index& index) const;
  Shape shape_;
  std::vector<double> values_;
};

/// Expects `actual` to have this type and, at each index, the value that `formula` gives: within `tolerance` times the largest.
void ExpectTensor(const Tensor& actual, const TensorType& type, const std::function<double(const Index&)>& formula,
                  double tolerance = 1e-6);

}  // namespace collage
