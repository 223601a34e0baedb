#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collage/onnx/attribute.h"
#include "collage/onnx/body_reader.h"
#include "collage/onnx/fold.h"

namespace collage::onnx_io {

/// One node of an ONNX graph while it is turned into expressions: its inputs, its attributes with their types checked, and
/// the makers that its operator's row uses. Messages of its errors name attributes and inputs; the caller adds the node.
class NodeReader {
 public:
  /// `inputs` are null where optional ones are absent; trailing absent ones are dropped. `origin` names the node in what it makes.
  NodeReader(std::string op_type, int64_t opset, std::vector<Expr> inputs, std::map<std::string, OnnxAttribute> attributes,
             size_t output_count, ConstantFolder* folder, BodyReader* bodies, Origin origin);

  [[nodiscard]] const std::string& op_type() const { return op_type_; }
  [[nodiscard]] int64_t opset() const { return opset_; }
  [[nodiscard]] const Origin& origin() const { return origin_; }
  [[nodiscard]] size_t output_count() const { return output_count_; }
  [[nodiscard]] size_t input_count() const { return inputs_.size(); }

  [[nodiscard]] bool HasInput(size_t index) const { return index < inputs_.size() && inputs_[index] != nullptr; }
  /// Errors when it is absent.
  [[nodiscard]] Result<Expr> Input(size_t index) const;
  [[nodiscard]] Result<TensorType> InputType(size_t index) const;
  /// All inputs; errors when one is absent.
  [[nodiscard]] Result<std::vector<Expr>> Inputs() const;
  /// The value of an input that must be constant. `meaning` names it in errors.
  [[nodiscard]] Result<Tensor> ConstantInput(size_t index, const std::string& meaning) const;
  /// As ConstantInput, of integers.
  [[nodiscard]] Result<std::vector<int64_t>> IntsInput(size_t index, const std::string& meaning) const;

  [[nodiscard]] bool HasAttribute(const std::string& name) const { return attributes_.contains(name); }
  /// From -2^31 to 2^31, such as axes and counts: products of two of them and sums of those cannot overflow.
  [[nodiscard]] Result<int64_t> Int(const std::string& name, int64_t fallback) const;
  /// Any integer, as an element of a tensor.
  [[nodiscard]] Result<int64_t> Int64(const std::string& name, int64_t fallback) const;
  [[nodiscard]] Result<float> Float(const std::string& name, float fallback) const;
  [[nodiscard]] Result<std::string> String(const std::string& name, std::string fallback) const;
  [[nodiscard]] Result<std::vector<int64_t>> Ints(const std::string& name, std::vector<int64_t> fallback) const;
  [[nodiscard]] Result<std::vector<float>> Floats(const std::string& name, std::vector<float> fallback) const;
  [[nodiscard]] Result<std::vector<std::string>> Strings(const std::string& name, std::vector<std::string> fallback) const;
  [[nodiscard]] Result<Tensor> TensorAttribute(const std::string& name) const;
  /// A body; errors when it is absent.
  [[nodiscard]] Result<std::shared_ptr<const OnnxGraph>> GraphAttribute(const std::string& name) const;
  /// `count` integers from `low` to 2^30, such as strides; absent: `count` times `fallback`.
  [[nodiscard]] Result<std::vector<int64_t>> Extents(const std::string& name, size_t count, int64_t low, int64_t fallback) const;
  /// An attribute that may only have one value here.
  [[nodiscard]] Status RequireInt(const std::string& name, int64_t only, int64_t fallback) const;

  /// A call of one of our operators, computed at once where all arguments are constant.
  Result<Expr> Call(const std::string& op, const std::vector<Expr>& args, const Attributes& attributes = {});
  /// What another operator of the default domain gives for other inputs and the attributes of this node.
  Result<std::vector<Expr>> ReadAs(const std::string& op_type, std::vector<Expr> inputs);
  /// A constant scalar of a dtype.
  static Result<Expr> Scalar(double value, DType dtype);
  /// Reshape to a known shape of as many elements; the same expression where nothing changes.
  Result<Expr> Reshape(const Expr& data, const Shape& shape);
  /// Field `index` of a tuple; of a tuple that was computed, the field itself.
  static Result<Expr> Project(const Expr& tuple, size_t index);
  ConstantFolder& folder() { return *folder_; }
  BodyReader& bodies() { return *bodies_; }

 private:
  template <class T>
  Result<T> Attribute(const std::string& name, T fallback, const char* form) const;

  std::string op_type_;
  int64_t opset_;
  std::vector<Expr> inputs_;
  std::map<std::string, OnnxAttribute> attributes_;
  size_t output_count_;
  ConstantFolder* folder_;
  BodyReader* bodies_;
  Origin origin_;
};

/// The tensor type of an expression; an error for tuples.
Result<TensorType> TensorTypeOf(const Expr& expr);
/// An axis in [-rank, rank) as one in [0, rank).
Result<int64_t> NormalizeAxis(int64_t axis, size_t rank);
/// Several axes, each once, ascending.
Result<std::vector<int64_t>> NormalizeAxes(std::vector<int64_t> axes, size_t rank);
}  // namespace collage::onnx_io
