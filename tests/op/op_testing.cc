#include "op_testing.h"

#include <cmath>

#include "collage/ir/expr.h"
#include "collage/op/interpreter.h"
#include "collage/op/table.h"

namespace collage {

TensorType T(Shape shape, DType dtype) { return {std::move(shape), dtype}; }

std::string Infer(const std::string& op, const std::vector<Type>& arguments, const Attributes& attributes) {
  const OpDef* def = Operators().Find(op);
  if (!def) return "no operator " + op;
  std::vector<Expr> variables;
  for (const Type& type : arguments) variables.push_back(MakeVar("x", type));
  const Result<Expr> call = MakeCall(def, variables, attributes);
  return call ? ToString((*call)->type()) : call.error().message;
}

Tensor Random(TensorType type, uint64_t seed) {
  Tensor tensor(std::move(type));
  FillRandom(tensor, seed);
  return tensor;
}

Tensor Floats(Shape shape, const std::vector<float>& values) { return Make<float>(std::move(shape), DType::kFloat32, values); }
Tensor Int64s(Shape shape, const std::vector<int64_t>& values) { return Make<int64_t>(std::move(shape), DType::kInt64, values); }

std::vector<Tensor> ApplyAll(const std::string& op, const std::vector<Tensor>& inputs, const Attributes& attributes, bool tuple) {
  std::vector<Expr> variables;
  for (const Tensor& input : inputs) variables.push_back(MakeVar("x", input.type()));
  std::vector<Expr> arguments = variables;
  if (tuple) arguments = {MakeTuple(variables)};
  const Result<Expr> call = MakeCall(Operators().Find(op), arguments, attributes);
  if (!call) {
    ADD_FAILURE() << call.error().message;
    return {};
  }
  Result<std::vector<Tensor>> outputs = InterpretFunction(*MakeFunction(variables, *call), inputs);
  if (outputs) return *outputs;
  ADD_FAILURE() << outputs.error().message;
  return {};
}

Tensor Apply(const std::string& op, const std::vector<Tensor>& inputs, const Attributes& attributes) {
  const std::vector<Tensor> outputs = ApplyAll(op, inputs, attributes);
  return outputs.empty() ? Tensor() : outputs[0];
}

Tensor ApplyToTuple(const std::string& op, const std::vector<Tensor>& inputs, const Attributes& attributes) {
  const std::vector<Tensor> outputs = ApplyAll(op, inputs, attributes, true);
  return outputs.empty() ? Tensor() : outputs[0];
}

bool Reader::Holds(const Index& index) const {
  bool inside = index.size() == shape_.size();
  for (size_t d = 0; inside && d < index.size(); ++d) inside = index[d] >= 0 && index[d] < shape_[d];
  return inside;
}

double Reader::operator()(const Index& index) const {
  if (!Holds(index)) {
    ADD_FAILURE() << "the formula reads " << ToString(index) << " of a tensor of shape " << ToString(shape_);
    return 0;
  }
  return Or(index, 0);
}

double Reader::Or(const Index& index, double outside) const {
  if (!Holds(index)) return outside;
  int64_t place = 0;
  for (size_t d = 0; d < index.size(); ++d) place = place * shape_[d] + index[d];
  return values_[static_cast<size_t>(place)];
}

void ExpectTensor(const Tensor& actual, const TensorType& type, const std::function<double(const Index&)>& formula, double tolerance) {
  ASSERT_TRUE(actual.Defined());
  ASSERT_EQ(ToString(actual.type()), ToString(type));
  const std::vector<double> values = actual.ToDouble();
  std::vector<double> expected;
  double largest = 1e-30;
  Index index(type.shape.size(), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    expected.push_back(formula(index));
    if (std::isfinite(expected[i])) largest = std::max(largest, std::abs(expected[i]));
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < type.shape[d]) break;
      index[d] = 0;
    }
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const bool same = values[i] == expected[i] || (std::isnan(values[i]) && std::isnan(expected[i]));
    ASSERT_TRUE(same || std::abs(values[i] - expected[i]) <= tolerance * largest)
        << "element " << i << " of " << ToString(type) << " is " << values[i] << ", expected " << expected[i];
  }
}

}  // namespace collage
