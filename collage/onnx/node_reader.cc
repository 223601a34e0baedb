#include "collage/onnx/node_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "collage/onnx/rows.h"
#include "collage/op/table.h"
#include "collage/tensor/narrow.h"

namespace collage::onnx_io {
namespace {

// Products of two such values and sums of those cannot overflow.
constexpr int64_t kMaximalAttribute = int64_t{1} << 30;

}  // namespace

NodeReader::NodeReader(std::string op_type, int64_t opset, std::vector<Expr> inputs, std::map<std::string, OnnxAttribute> attributes,
                       size_t output_count, ConstantFolder* folder, BodyReader* bodies, Origin origin)
    : op_type_(std::move(op_type)),
      opset_(opset),
      inputs_(std::move(inputs)),
      attributes_(std::move(attributes)),
      output_count_(output_count),
      folder_(folder),
      bodies_(bodies),
      origin_(std::move(origin)) {
  while (!inputs_.empty() && inputs_.back() == nullptr) inputs_.pop_back();
}

Result<Expr> NodeReader::Input(size_t index) const {
  if (!HasInput(index)) return Fail("input " + std::to_string(index) + " is required and absent");
  return inputs_[index];
}

Result<TensorType> NodeReader::InputType(size_t index) const { return TensorTypeOf(COLLAGE_TRY(Input(index))); }

Result<std::vector<Expr>> NodeReader::Inputs() const {
  for (size_t i = 0; i < inputs_.size(); ++i) COLLAGE_TRY(Input(i));
  return inputs_;
}

Result<Tensor> NodeReader::ConstantInput(size_t index, const std::string& meaning) const {
  const Expr input = COLLAGE_TRY(Input(index));
  const Tensor* value = ConstantValue(input);
  if (value == nullptr) {
    folder_->RequireValue(input);
    return Fail("input " + std::to_string(index) + " (" + meaning + ") must not depend on the model's inputs");
  }
  if (value->dtype() == DType::kString) return Fail("input " + std::to_string(index) + " (" + meaning + ") is of strings, not numbers");
  return *value;
}

Result<std::vector<int64_t>> NodeReader::IntsInput(size_t index, const std::string& meaning) const {
  const Tensor value = COLLAGE_TRY(ConstantInput(index, meaning));
  if (value.dtype() != DType::kInt64 && value.dtype() != DType::kInt32) {
    return Fail("input " + std::to_string(index) + " (" + meaning + ") must be int64, not " + std::string(Name(value.dtype())));
  }
  if (value.shape().size() > 1) return Fail("input " + std::to_string(index) + " (" + meaning + ") must have one dimension");
  return value.ToInt64();
}

template <class T>
Result<T> NodeReader::Attribute(const std::string& name, T fallback, const char* form) const {
  const auto found = attributes_.find(name);
  if (found == attributes_.end()) return fallback;
  if (const T* value = std::get_if<T>(&found->second)) return *value;
  return Fail("attribute '" + name + "' must be " + form);
}

Result<int64_t> NodeReader::Int(const std::string& name, int64_t fallback) const {
  constexpr int64_t kMost = int64_t{1} << 31;
  const int64_t value = COLLAGE_TRY(Int64(name, fallback));
  if (value >= -kMost && value <= kMost) return value;
  return Fail(fmt::format("attribute '{}' is {}; {} to {} is right", name, value, -kMost, kMost));
}
Result<int64_t> NodeReader::Int64(const std::string& name, int64_t fallback) const { return Attribute(name, fallback, "an integer"); }
Result<float> NodeReader::Float(const std::string& name, float fallback) const { return Attribute(name, fallback, "a float"); }
Result<std::string> NodeReader::String(const std::string& name, std::string fallback) const {
  return Attribute(name, std::move(fallback), "a string");
}
Result<std::vector<int64_t>> NodeReader::Ints(const std::string& name, std::vector<int64_t> fallback) const {
  return Attribute(name, std::move(fallback), "a list of integers");
}
Result<std::vector<float>> NodeReader::Floats(const std::string& name, std::vector<float> fallback) const {
  return Attribute(name, std::move(fallback), "a list of floats");
}
Result<std::vector<std::string>> NodeReader::Strings(const std::string& name, std::vector<std::string> fallback) const {
  return Attribute(name, std::move(fallback), "a list of strings");
}

Result<Tensor> NodeReader::TensorAttribute(const std::string& name) const {
  if (!HasAttribute(name)) return Fail("attribute '" + name + "' is required and absent");
  return Attribute(name, Tensor(), "a tensor");
}

Result<std::shared_ptr<const OnnxGraph>> NodeReader::GraphAttribute(const std::string& name) const {
  if (!HasAttribute(name)) return Fail("attribute '" + name + "' is required and absent");
  return Attribute(name, std::shared_ptr<const OnnxGraph>(), "a graph");
}

Result<std::vector<int64_t>> NodeReader::Extents(const std::string& name, size_t count, int64_t low, int64_t fallback) const {
  std::vector<int64_t> values = COLLAGE_TRY(Ints(name, std::vector<int64_t>(count, fallback)));
  if (values.size() != count) {
    return Fail("attribute '" + name + "' has " + std::to_string(values.size()) + " values where " + std::to_string(count) + " are right");
  }
  for (int64_t value : values) {
    if (value < low || value > kMaximalAttribute) {
      return Fail("attribute '" + name + "' has the value " + std::to_string(value) + "; " + std::to_string(low) + " to " +
                  std::to_string(kMaximalAttribute) + " is right");
    }
  }
  return values;
}

Status NodeReader::RequireInt(const std::string& name, int64_t only, int64_t fallback) const {
  const int64_t value = COLLAGE_TRY(Int(name, fallback));
  if (value == only) return {};
  return Fail("attribute '" + name + "' is " + std::to_string(value) + "; only " + std::to_string(only) + " is supported");
}

Result<Expr> NodeReader::Call(const std::string& op, const std::vector<Expr>& args, const Attributes& attributes) {
  const OpDef* def = Operators().Find(op);
  if (def == nullptr) return Fail("needs the operator " + op + ", which the operator table lacks");
  return folder_->Call(def, args, attributes, origin_);
}

Result<std::vector<Expr>> NodeReader::ReadAs(const std::string& op_type, std::vector<Expr> inputs) {
  const ReadRow* row = FindReadRow(op_type);
  COLLAGE_CHECK(row != nullptr);
  NodeReader reader(op_type, opset_, std::move(inputs), attributes_, output_count_, folder_, bodies_, origin_);
  return row->read(reader);
}

Result<Expr> NodeReader::Scalar(double value, DType dtype) {
  if (dtype == DType::kString) return Fail("strings take part in no arithmetic");
  if (!IsFloatingPoint(dtype) && dtype != DType::kBool) {
    const auto [least, most] = LimitsOfInteger(dtype);
    const double whole = std::trunc(value);
    // One more than the greatest is a power of two, which a double holds.
    const bool fits = whole >= static_cast<double>(least) && whole < std::exp2(std::bit_width(most));
    if (!fits) return Fail(fmt::format("data of type {} is not supported: {} is computed with, which it cannot hold", Name(dtype), value));
  }
  return MakeConstant(ScalarOf(value, dtype));
}

Result<Expr> NodeReader::Reshape(const Expr& data, const Shape& shape) {
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  if (type.shape == shape) return data;
  COLLAGE_TRY_STATUS(CheckExtents(shape));
  if (type.ElementCount() != ElementCount(shape)) {
    return Fail("cannot view " + ToString(type.shape) + " as " + ToString(shape) + ": the element counts differ");
  }
  // A 0 in newshape means "as before"; all tensors without elements are alike.
  if (ElementCount(shape) == 0) return MakeConstant(Tensor(TensorType{shape, type.dtype}));
  return Call("reshape", {data}, {{"newshape", shape}});
}

Result<Expr> NodeReader::Project(const Expr& tuple, size_t index) {
  if (const Tuple* fields = tuple->As<Tuple>(); fields != nullptr && index < fields->fields.size()) return fields->fields[index];
  return MakeTupleGetItem(tuple, index);
}

Result<TensorType> TensorTypeOf(const Expr& expr) {
  if (const TensorType* type = expr->type().AsTensor()) return *type;
  return Fail("takes tensors, not " + ToString(expr->type()));
}

Result<int64_t> NormalizeAxis(int64_t axis, size_t rank) {
  const int64_t dimensions = static_cast<int64_t>(rank);
  if (axis < -dimensions || axis >= dimensions) {
    return Fail("axis " + std::to_string(axis) + " is outside a tensor of " + std::to_string(rank) + " dimensions");
  }
  return axis < 0 ? axis + dimensions : axis;
}

Result<std::vector<int64_t>> NormalizeAxes(std::vector<int64_t> axes, size_t rank) {
  for (int64_t& axis : axes) axis = COLLAGE_TRY(NormalizeAxis(axis, rank));
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) return Fail("an axis is named twice");
  return axes;
}

}  // namespace collage::onnx_io
