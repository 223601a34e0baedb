#include <cmath>
#include <numbers>

#include "collage/onnx/data_type.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"

namespace collage::onnx_io {
namespace {

Result<double> NumberInput(const NodeReader& node, size_t index, const std::string& meaning) {
  const Tensor value = COLLAGE_TRY(node.ConstantInput(index, meaning));
  if (value.ElementCount() == 1) return value.ToDouble()[0];
  return Fail("input " + std::to_string(index) + " (" + meaning + ") must have one element, not shape " + ToString(value.shape()));
}

Result<int64_t> LengthInput(const NodeReader& node, size_t index, const std::string& meaning) {
  const double value = COLLAGE_TRY(NumberInput(node, index, meaning));
  // A matrix of the transform has so many rows and columns.
  if (value >= 1 && value <= 1 << 20) return static_cast<int64_t>(value);
  return Fail("input " + std::to_string(index) + " (" + meaning + ") is " + std::to_string(value) + "; 1 to 2^20 is right");
}

Result<std::vector<Expr>> ConstantOf(NodeReader& node, Tensor values, int64_t data_type) {
  const std::optional<DType> dtype = DTypeOfOnnx(data_type);
  if (!dtype) return Fail("attribute 'output_datatype' is the data type " + std::to_string(data_type) + ", which is not supported");
  Formula formula(node, *dtype);
  return formula.Done(formula.Cast(MakeConstant(std::move(values)), *dtype));
}

/// a - b cos(2 pi n / N) + c cos(4 pi n / N), where N is one less for a symmetric window.
Result<std::vector<Expr>> Window(NodeReader& node, double a, double b, double c) {
  const int64_t size = COLLAGE_TRY(LengthInput(node, 0, "size"));
  const bool periodic = COLLAGE_TRY(node.Int("periodic", 1)) != 0;
  const double length = static_cast<double>(periodic ? size : size - 1);
  std::vector<double> values;
  for (int64_t n = 0; n < size; ++n) {
    const double angle = length == 0 ? 0 : 2 * std::numbers::pi * static_cast<double>(n) / length;
    values.push_back(a - b * std::cos(angle) + c * std::cos(2 * angle));
  }
  return ConstantOf(node, Tensor::FromVector(TensorType{{size}, DType::kFloat64}, values), COLLAGE_TRY(node.Int("output_datatype", 1)));
}

Result<std::vector<Expr>> ReadHannWindow(NodeReader& node) { return Window(node, 0.5, 0.5, 0); }
Result<std::vector<Expr>> ReadHammingWindow(NodeReader& node) { return Window(node, 25.0 / 46, 1 - 25.0 / 46, 0); }
Result<std::vector<Expr>> ReadBlackmanWindow(NodeReader& node) { return Window(node, 0.42, 0.5, 0.08); }

/// Triangles over the bins of a spectrum whose corners lie at equal distances on the mel scale.
Result<std::vector<Expr>> ReadMelWeightMatrix(NodeReader& node) {
  const int64_t mels = COLLAGE_TRY(LengthInput(node, 0, "num_mel_bins"));
  const int64_t length = COLLAGE_TRY(LengthInput(node, 1, "dft_length"));
  const double rate = COLLAGE_TRY(NumberInput(node, 2, "sample_rate"));
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(COLLAGE_TRY(NumberInput(node, 3, "lower_edge_hertz")));
  const double high = mel(COLLAGE_TRY(NumberInput(node, 4, "upper_edge_hertz")));
  const int64_t bins = length / 2 + 1;
  const TensorType type{{bins, mels}, DType::kFloat64};
  COLLAGE_TRY_STATUS(node.folder().Reserve(static_cast<double>(type.ByteCount())));
  Tensor result(type);
  const auto bin_of = [&](int64_t corner) {
    const double place = low + static_cast<double>(corner) * (high - low) / static_cast<double>(mels + 2);
    const double hertz = 700 * (std::pow(10, place / 2595) - 1);
    return static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / rate));
  };
  for (int64_t m = 0; m < mels; ++m) {
    const int64_t first = bin_of(m);
    const int64_t centre = bin_of(m + 1);
    const int64_t last = bin_of(m + 2);
    const auto set = [&](int64_t bin, double weight) {
      if (bin >= 0 && bin < bins) result.MutableData<double>()[bin * mels + m] = weight;
    };
    if (first == centre) set(centre, 1);
    for (int64_t bin = first; bin <= centre && first != centre; ++bin)
      set(bin, static_cast<double>(bin - first) / static_cast<double>(centre - first));
    for (int64_t bin = centre; bin < last; ++bin) set(bin, static_cast<double>(last - bin) / static_cast<double>(last - centre));
  }
  return ConstantOf(node, std::move(result), COLLAGE_TRY(node.Int("output_datatype", 1)));
}

/// What a transform does: `rows` frequencies (or samples) from `length` samples (or frequencies).
struct Transform {
  int64_t length;
  int64_t rows;
  bool inverse;
};

/// cos or sin of the angles of the transform, (length, rows), divided by the length where it is an inverse one.
Expr TransformMatrix(Formula& formula, const Transform& transform, bool sine) {
  Tensor matrix(TensorType{{transform.length, transform.rows}, DType::kFloat64});
  double* place = matrix.MutableData<double>();
  const double scale = transform.inverse ? 1 / static_cast<double>(transform.length) : 1;
  const double sign = transform.inverse ? 1 : -1;
  for (int64_t n = 0; n < transform.length; ++n) {
    for (int64_t k = 0; k < transform.rows; ++k) {
      // The remainder is exact, the angle of a large product is not.
      const double angle = 2 * std::numbers::pi * static_cast<double>(n * k % transform.length) / static_cast<double>(transform.length);
      *place++ = scale * (sine ? sign * std::sin(angle) : std::cos(angle));
    }
  }
  return formula.Cast(MakeConstant(std::move(matrix)), formula.dtype());
}

/// (.., length, 1 or 2) -> (.., rows, 2), real and imaginary parts last: products with the matrices of cosines and sines.
Expr ApplyTransform(Formula& formula, const Expr& signal, const Transform& transform) {
  Shape shape = Formula::ShapeOf(signal);
  if (!formula.ok()) return nullptr;
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  const bool is_complex = shape.back() == 2;
  shape.pop_back();
  const Expr cosine = TransformMatrix(formula, transform, false);
  const Expr sine = TransformMatrix(formula, transform, true);
  const Expr real = formula.Reshape(formula.Slice(signal, last, 0, 1), shape);
  Expr real_part = formula.Apply("nn.matmul", {real, cosine});
  Expr imaginary_part = formula.Apply("nn.matmul", {real, sine});
  if (is_complex) {
    const Expr imaginary = formula.Reshape(formula.Slice(signal, last, 1, 2), shape);
    real_part = formula.Call("subtract", real_part, formula.Apply("nn.matmul", {imaginary, sine}));
    imaginary_part = formula.Call("add", imaginary_part, formula.Apply("nn.matmul", {imaginary, cosine}));
  }
  return formula.Stack({real_part, imaginary_part}, last);
}

/// Cut, or filled up with zeros, along an axis.
Expr Resized(Formula& formula, const Expr& data, int64_t axis, int64_t extent) {
  Shape shape = Formula::ShapeOf(data);
  if (!formula.ok() || shape[static_cast<size_t>(axis)] == extent) return data;
  const int64_t missing = extent - shape[static_cast<size_t>(axis)];
  if (missing < 0) return formula.Slice(data, axis, 0, extent);
  AttributeValue::List widths;
  for (size_t i = 0; i < shape.size(); ++i) widths.emplace_back(std::vector<int64_t>{0, static_cast<int64_t>(i) == axis ? missing : 0});
  return formula.Apply("nn.pad", {data, formula.Number(0)}, {{"pad_width", widths}, {"pad_mode", "constant"}});
}

/// Matrices of cosines and sines; beyond this they are no way to compute a transform.
constexpr int64_t kLongestTransform = 1 << 13;

Status CheckLength(NodeReader& node, const Transform& transform) {
  if (transform.length < 1 || transform.length > kLongestTransform) {
    return Fail("has a transform of length " + std::to_string(transform.length) + "; 1 to " + std::to_string(kLongestTransform) +
                " is supported");
  }
  return node.folder().Reserve(32.0 * static_cast<double>(transform.length) * static_cast<double>(transform.rows));
}

/// The axis: an attribute until opset 19, an input from 20 on. It is not the last one, which holds real and imaginary parts.
Result<int64_t> TransformAxis(const NodeReader& node, size_t rank) {
  int64_t axis = node.opset() < 20 ? COLLAGE_TRY(node.Int("axis", 1)) : -2;
  if (node.opset() >= 20 && node.HasInput(2)) axis = static_cast<int64_t>(COLLAGE_TRY(NumberInput(node, 2, "axis")));
  axis = COLLAGE_TRY(NormalizeAxis(axis, rank));
  if (axis + 1 == static_cast<int64_t>(rank)) return Fail("axis " + std::to_string(axis) + " is the one of real and imaginary parts");
  return axis;
}

/// The places of a full spectrum that a one-sided one leaves out are its conjugates in reverse.
Expr FullSpectrum(Formula& formula, const Expr& half, int64_t axis, int64_t length) {
  const int64_t given = Formula::ShapeOf(half)[static_cast<size_t>(axis)];
  const int64_t missing = length - given;
  if (!formula.ok() || missing <= 0) return half;
  const auto last = static_cast<int64_t>(Formula::ShapeOf(half).size()) - 1;
  const Expr mirrored = formula.Reverse(formula.Slice(half, axis, 1, 1 + missing), axis);
  const Expr conjugate =
      formula.Concatenate({formula.Slice(mirrored, last, 0, 1), formula.Call("negative", formula.Slice(mirrored, last, 1, 2))}, last);
  return formula.Concatenate({half, conjugate}, axis);
}

Result<std::vector<Expr>> ReadDft(NodeReader& node) {
  const Expr data = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
  const auto rank = static_cast<int64_t>(type.shape.size());
  if (rank < 2 || (type.shape.back() != 1 && type.shape.back() != 2)) return Fail("data " + ToString(type.shape) + " must end with 1 or 2");
  const int64_t axis = COLLAGE_TRY(TransformAxis(node, type.shape.size()));
  const bool inverse = COLLAGE_TRY(node.Int("inverse", 0)) != 0;
  const bool onesided = COLLAGE_TRY(node.Int("onesided", 0)) != 0;
  int64_t length = type.shape[static_cast<size_t>(axis)];
  if (inverse && onesided) length = 2 * (length - 1);
  if (node.HasInput(1)) length = COLLAGE_TRY(LengthInput(node, 1, "dft_length"));
  const Transform transform{length, onesided && !inverse ? length / 2 + 1 : length, inverse};
  COLLAGE_TRY_STATUS(CheckLength(node, transform));
  Formula formula(node, type.dtype);
  Expr signal = data;
  if (inverse && onesided) signal = FullSpectrum(formula, Resized(formula, data, axis, length / 2 + 1), axis, length);
  signal = Resized(formula, signal, axis, length);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rank; ++i) order.push_back(i);
  std::swap(order[static_cast<size_t>(axis)], order[static_cast<size_t>(rank - 2)]);
  Expr result = formula.Transpose(ApplyTransform(formula, formula.Transpose(signal, order), transform), order);
  if (inverse && onesided) result = formula.Slice(result, rank - 1, 0, 1);
  return formula.Done(result);
}

/// Frames of the signal, (batch, frames, length, 1 or 2), times a window, transformed. PyTorch leaves the last dimension of a real one out.
Result<std::vector<Expr>> ReadStft(NodeReader& node) {
  Expr signal = COLLAGE_TRY(node.Input(0));
  TensorType type = COLLAGE_TRY(TensorTypeOf(signal));
  if (type.shape.size() == 2) {
    type.shape.push_back(1);
    signal = COLLAGE_TRY(node.Reshape(signal, type.shape));
  }
  if (type.shape.size() != 3 || (type.shape[2] != 1 && type.shape[2] != 2))
    return Fail("signal " + ToString(type.shape) + " must be (batch, length, 1 or 2)");
  const int64_t step = COLLAGE_TRY(LengthInput(node, 1, "frame_step"));
  int64_t length = type.shape[1];
  if (node.HasInput(2)) length = COLLAGE_TRY(node.InputType(2)).ElementCount();
  if (node.HasInput(3)) length = COLLAGE_TRY(LengthInput(node, 3, "frame_length"));
  if (length < 1 || length > type.shape[1]) return Fail("has frames of " + std::to_string(length) + " of a signal " + ToString(type.shape));
  const int64_t frames = 1 + (type.shape[1] - length) / step;
  const bool onesided = COLLAGE_TRY(node.Int("onesided", 1)) != 0;
  const Transform transform{length, onesided ? length / 2 + 1 : length, false};
  COLLAGE_TRY_STATUS(CheckLength(node, transform));
  COLLAGE_TRY_STATUS(node.folder().Reserve(8.0 * static_cast<double>(frames) * static_cast<double>(length)));
  std::vector<int64_t> places;
  for (int64_t frame = 0; frame < frames; ++frame) {
    for (int64_t i = 0; i < length; ++i) places.push_back(frame * step + i);
  }
  Formula formula(node, type.dtype);
  const Expr indices = MakeConstant(Tensor::FromVector(TensorType{{frames, length}, DType::kInt64}, places));
  Expr framed = formula.Apply("take", {signal, indices}, {{"axis", 1}, {"mode", "clip"}});
  if (node.HasInput(2)) framed = formula.Call("multiply", framed, formula.Reshape(COLLAGE_TRY(node.Input(2)), {length, 1}));
  return formula.Done(ApplyTransform(formula, framed, transform));
}

}  // namespace

OperatorFamily SignalFamily() {
  static constexpr ReadRow kRead[] = {{"HannWindow", ReadHannWindow},
                                      {"HammingWindow", ReadHammingWindow},
                                      {"BlackmanWindow", ReadBlackmanWindow},
                                      {"MelWeightMatrix", ReadMelWeightMatrix},
                                      {"DFT", ReadDft},
                                      {"STFT", ReadStft}};
  return {kRead, {}};
}

}  // namespace collage::onnx_io
