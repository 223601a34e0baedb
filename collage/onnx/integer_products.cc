#include "collage/onnx/integer_products.h"

#include <algorithm>
#include <variant>

#include "collage/onnx/data_type.h"
#include "collage/onnx/window.h"
#include "collage/onnx/writer.h"
#include "collage/support/check.h"

namespace collage::onnx_io {
namespace {

/// Names of a tensor of uint8, and of the scalar that stands for 0 in it. Both operands are unsigned: on processors without dot products of
/// bytes ONNX Runtime's sums of products of unsigned and signed ones saturate.
struct Bytes {
  std::string values;
  std::string zero;
};

constexpr int64_t kBytes = 256;

std::string ZeroOf(NodeWriter& writer, int64_t zero) {
  return writer.Initializer(Tensor::Scalar(static_cast<uint8_t>(zero), DType::kUInt8));
}

std::optional<Bytes> BytesOfConstant(NodeWriter& writer, const Tensor& constant) {
  if (constant.ElementCount() == 0) return std::nullopt;
  const std::vector<int64_t> values = constant.ToInt64();
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const int64_t zero = -std::min<int64_t>(*low, 0);
  if (zero >= kBytes || *high + zero >= kBytes) return std::nullopt;
  Tensor bytes(TensorType{constant.shape(), DType::kUInt8});
  auto* to = bytes.MutableData<uint8_t>();
  for (const int64_t value : values) *to++ = static_cast<uint8_t>(value + zero);
  return Bytes{writer.Weight(bytes), ZeroOf(writer, zero)};
}

/// The input of a cast from bytes, which stand for 0 by `zero`.
std::optional<Bytes> BytesOfCast(NodeWriter& writer, const NodeWriter& cast, int64_t zero) {
  const DType dtype = cast.InputType(0).dtype;
  const bool is_signed = dtype == DType::kInt8;
  const int64_t shift = is_signed ? kBytes / 2 : 0;
  if (cast.step().op->name != "cast" || (!is_signed && dtype != DType::kUInt8)) return std::nullopt;
  if (zero + shift < 0 || zero + shift >= kBytes) return std::nullopt;
  std::string values = cast.Input(0);
  if (is_signed) {
    const std::string wide = writer.EmitIntermediate("Cast", {values}, {{"to", OnnxDataType(DType::kInt32)}});
    const std::string moved = writer.EmitIntermediate("Add", {wide, writer.Scalar(static_cast<double>(shift), DType::kInt32)});
    values = writer.EmitIntermediate("Cast", {moved}, {{"to", OnnxDataType(DType::kUInt8)}});
  }
  return Bytes{values, ZeroOf(writer, zero + shift)};
}

/// Of an input of the step; nothing where it is not known to be bytes.
std::optional<Bytes> BytesOf(NodeWriter& writer, size_t input) {
  if (writer.InputType(input).dtype != DType::kInt32) return std::nullopt;
  if (const Tensor* constant = writer.InputConstant(input)) return BytesOfConstant(writer, *constant);
  const std::optional<NodeWriter> producer = writer.Producer(input);
  if (!producer) return std::nullopt;
  if (producer->step().op->name != "subtract") return BytesOfCast(writer, *producer, 0);
  const Tensor* zero = producer->InputConstant(1);
  const std::optional<NodeWriter> cast = producer->Producer(0);
  const bool is_scalar = zero != nullptr && zero->ElementCount() == 1;
  return is_scalar && cast ? BytesOfCast(writer, *cast, zero->ToInt64()[0]) : std::nullopt;
}

std::vector<int64_t> IntsOf(const OnnxAttributes& attributes, const std::string& name) {
  for (const auto& [key, value] : attributes) {
    if (key == name) return std::get<std::vector<int64_t>>(value);
  }
  return {};
}

int64_t GroupsOf(const OnnxAttributes& attributes) {
  for (const auto& [key, value] : attributes) {
    if (key == "group") return std::get<int64_t>(value);
  }
  return 1;
}

/// For each place of the window the data below it, times the weights of that place; the sum of all.
class WindowSum {
 public:
  WindowSum(NodeWriter& writer, const OnnxAttributes& attributes)
      : writer_(writer),
        kernel_(writer.InputType(1).shape.begin() + 2, writer.InputType(1).shape.end()),
        strides_(IntsOf(attributes, "strides")),
        dilations_(IntsOf(attributes, "dilations")),
        padding_(IntsOf(attributes, "pads")),
        groups_(GroupsOf(attributes)) {}

  void Write() {
    const std::string data = Padded();
    std::vector<int64_t> place(kernel_.size(), 0);
    std::string sum;
    do {
      const std::string product = ProductAt(data, place);
      sum = sum.empty() ? product : writer_.EmitIntermediate("Add", {sum, product});
    } while (Next(place));
    writer_.Emit("Reshape", {sum, writer_.Ints(writer_.OutputType().shape)});
  }

 private:
  bool Next(std::vector<int64_t>& place) const {
    for (size_t d = place.size(); d-- > 0;) {
      if (++place[d] < kernel_[d]) return true;
      place[d] = 0;
    }
    return false;
  }

  std::string Padded() {
    if (std::all_of(padding_.begin(), padding_.end(), [](int64_t pad) { return pad == 0; })) return writer_.Input(0);
    std::vector<int64_t> pads;
    for (size_t side = 0; side < 2; ++side) {
      pads.insert(pads.end(), 2, 0);
      const auto first = padding_.begin() + static_cast<ptrdiff_t>(side * kernel_.size());
      pads.insert(pads.end(), first, first + static_cast<ptrdiff_t>(kernel_.size()));
    }
    return writer_.EmitIntermediate("Pad", {writer_.Input(0), writer_.Ints(pads)});
  }

  std::string Sliced(const std::string& tensor, const std::vector<int64_t>& starts, const std::vector<int64_t>& ends,
                     const std::vector<int64_t>& steps) {
    std::vector<int64_t> axes;
    for (size_t d = 0; d < kernel_.size(); ++d) axes.push_back(static_cast<int64_t>(d) + 2);
    return writer_.EmitIntermediate("Slice", {tensor, writer_.Ints(starts), writer_.Ints(ends), writer_.Ints(axes), writer_.Ints(steps)});
  }

  std::string Reshaped(const std::string& tensor, const Shape& shape) {
    return writer_.EmitIntermediate("Reshape", {tensor, writer_.Ints(shape)});
  }

  std::string ProductAt(const std::string& data, const std::vector<int64_t>& place) {
    const Shape& weight = writer_.InputType(1).shape;
    const Shape& result = writer_.OutputType().shape;
    std::vector<int64_t> starts;
    std::vector<int64_t> ends;
    std::vector<int64_t> behind;
    int64_t points = 1;
    for (size_t d = 0; d < kernel_.size(); ++d) {
      starts.push_back(place[d] * dilations_[d]);
      ends.push_back(starts[d] + (result[d + 2] - 1) * strides_[d] + 1);
      behind.push_back(place[d] + 1);
      points *= result[d + 2];
    }
    const std::string below = Reshaped(Sliced(data, starts, ends, strides_), {result[0], groups_, weight[1], points});
    const std::string weights = Reshaped(Sliced(writer_.Input(1), place, behind, std::vector<int64_t>(kernel_.size(), 1)),
                                         {groups_, weight[0] / groups_, weight[1]});
    return writer_.EmitIntermediate("MatMul", {weights, below});
  }

  NodeWriter& writer_;
  std::vector<int64_t> kernel_;
  std::vector<int64_t> strides_;
  std::vector<int64_t> dilations_;
  std::vector<int64_t> padding_;
  int64_t groups_;
};

}  // namespace

Status WriteIntegerConvolution(NodeWriter& writer, const OnnxAttributes& attributes) {
  const DType dtype = writer.InputType(0).dtype;
  if (dtype != DType::kInt32 && dtype != DType::kInt64)
    return Fail("of " + std::string(Name(dtype)) + " has no form in opset " + std::to_string(writer.opset()));
  const std::optional<Bytes> data = BytesOf(writer, 0);
  const std::optional<Bytes> weights = data ? BytesOf(writer, 1) : std::nullopt;
  if (weights) {
    writer.Emit("ConvInteger", {data->values, weights->values, data->zero, weights->zero}, attributes);
  } else {
    WindowSum(writer, attributes).Write();
  }
  return {};
}

bool WriteIntegerMatMul(NodeWriter& writer) {
  const std::optional<Bytes> a = BytesOf(writer, 0);
  const std::optional<Bytes> b = a ? BytesOf(writer, 1) : std::nullopt;
  if (b) writer.Emit("MatMulInteger", {a->values, b->values, a->zero, b->zero});
  return b.has_value();
}

}  // namespace collage::onnx_io
