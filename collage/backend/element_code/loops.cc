#include "collage/backend/element_code/loops.h"

#include <cmath>
#include <cstdio>
#include <unordered_map>
#include <unordered_set>

#include "collage/backend/element_code/types.h"
#include "collage/op/matrix_product.h"
#include "collage/op/reduction.h"
#include "collage/op/rules.h"
#include "collage/op/window.h"

namespace collage::element_code {
namespace {

using Step = OpSequence::Step;

std::string N(int64_t number) { return std::to_string(number); }
std::string Loop(const std::string& variable, int64_t extent) {
  return "for (int " + variable + " = 0; " + variable + " < " + N(extent) + "; ++" + variable + ") {";
}

/// Opens loops over the window of output place y, x whose body sees only what lies in the input, at iy, ix.
void BeginWindow(KernelBody& body, const Window& window, const std::array<int64_t, 2>& input) {
  const auto place = [&](const char* out, const char* tap, size_t d) {
    return std::string(out) + " * " + N(window.stride[d]) + " - " + N(window.pad_begin[d]) + " + " + tap + " * " + N(window.dilation[d]);
  };
  body.Begin(Loop("ky", window.kernel[0]));
  body.Line("const int iy = " + place("y", "ky", 0) + ";");
  body.Line("if (iy < 0 || iy >= " + N(input[0]) + ") continue;");
  body.Begin(Loop("kx", window.kernel[1]));
  body.Line("const int ix = " + place("x", "kx", 1) + ";");
  body.Line("if (ix < 0 || ix >= " + N(input[1]) + ") continue;");
}

void SplitPlace(KernelBody& body, const std::array<int64_t, 2>& output) {
  body.Line("const int x = i % " + N(output[1]) + ", y = i / " + N(output[1]) + " % " + N(output[0]) + ";");
  body.Line("const int plane = i / " + N(output[0] * output[1]) + ";");
}

Result<size_t> Convolve(KernelBody& body, const OpSequence& sequence, const Step& step) {
  const auto type = [&](size_t input) -> const TensorType& { return sequence.values[step.inputs[input]].type; };
  const Convolution c = COLLAGE_TRY(ReadConvolution(type(0), type(1), step.attributes));
  const int64_t channels = c.input_channels / c.groups;
  SplitPlace(body, c.output);
  body.Line("const int o = plane % " + N(c.output_channels) + ", n = plane / " + N(c.output_channels) + ";");
  body.Line("const int first = n * " + N(c.input_channels) + " + o / " + N(c.output_channels / c.groups) + " * " + N(channels) + ";");
  body.Line("float sum = 0.0f;");
  body.Begin(Loop("k", channels));
  BeginWindow(body, c.window, c.input);
  const std::string data = body.Int("((first + k) * " + N(c.input[0]) + " + iy) * " + N(c.input[1]) + " + ix");
  const std::string weight =
      body.Int("((o * " + N(channels) + " + k) * " + N(c.window.kernel[0]) + " + ky) * " + N(c.window.kernel[1]) + " + kx");
  body.Line("sum += " + body.At(step.inputs[0], data) + " * " + body.At(step.inputs[1], weight) + ";");
  for (int loop = 0; loop < 3; ++loop) body.End();
  body.Store("i", "sum");
  return static_cast<size_t>(c.batch * c.output_channels * c.output[0] * c.output[1]);
}

template <bool is_largest>
Result<size_t> Pool(KernelBody& body, const OpSequence& sequence, const Step& step) {
  const Pooling p = COLLAGE_TRY(ReadPooling(sequence.values[step.inputs[0]].type, step.attributes));
  SplitPlace(body, p.output);
  body.Line(is_largest ? "float best = -INFINITY;" : "float sum = 0.0f; int count = 0;");
  BeginWindow(body, p.window, p.input);
  const std::string at = body.Int("(plane * " + N(p.input[0]) + " + iy) * " + N(p.input[1]) + " + ix");
  const std::string element = body.At(step.inputs[0], at);
  if (is_largest) {
    body.Line("best = best < " + element + " || " + element + " != " + element + " ? " + element + " : best;");
  } else {
    body.Line("sum += " + element + "; ++count;");
  }
  body.End();
  body.End();
  if (!is_largest && p.count_include_pad) {
    // What a window of ceil mode has beyond the padding counts no more.
    const auto taps = [&](const char* place, size_t d) {
      const std::string start = std::string(place) + " * " + N(p.window.stride[d]) + " - " + N(p.window.pad_begin[d]);
      const int64_t end = p.input[d] + p.window.pad_end[d];
      return "min(" + N(p.window.kernel[d]) + ", (" + N(end + p.window.dilation[d] - 1) + " - (" + start + ")) / " +
             N(p.window.dilation[d]) + ")";
    };
    body.Line("count = " + taps("y", 0) + " * " + taps("x", 1) + ";");
  }
  body.Store("i", is_largest ? "best" : "sum / max(count, 1)");
  return static_cast<size_t>(p.batch * p.channels * p.output[0] * p.output[1]);
}

/// Nothing where the axes are not neighbours, extents of 1 aside.
std::optional<Rows> RowsAlong(const Shape& shape, const std::vector<bool>& axes) {
  Rows rows{1, 1, 1};
  enum { kBefore, kAlong, kBehind } place = kBefore;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    if (axes[d] && place == kBehind) return std::nullopt;
    if (axes[d]) place = kAlong;
    if (!axes[d] && place == kAlong) place = kBehind;
    (place == kBefore ? rows.outer : place == kAlong ? rows.length : rows.stride) *= shape[d];
  }
  return rows;
}

/// Writes where the row of item i begins, and reads its elements.
class RowBody {
 public:
  RowBody(KernelBody& body, const Rows& rows, size_t value) : body_(body), rows_(rows), value_(value) {
    body_.Line("const int first = i / " + N(rows.stride) + " * " + N(rows.length * rows.stride) + " + i % " + N(rows.stride) + ";");
  }

  void ForEach(const std::function<void(const std::string& element, const std::string& place)>& write) {
    body_.BeginRow(rows_.length);
    const std::string place = body_.Int("first + k * " + N(rows_.stride));
    write(body_.At(value_, place), place);
    body_.End();
  }

  /// Names the sum of what `text` says of each element.
  void Sum(const std::string& name, const std::function<std::string(const std::string& element)>& text) {
    body_.Line("float " + name + " = 0.0f;");
    ForEach([&](const std::string& x, const std::string&) { body_.Line(name + " += " + text(x) + ";"); });
    body_.Across("sum", name);
  }

 private:
  KernelBody& body_;
  Rows rows_;
  size_t value_;
};

enum class Reduced { kSum, kMean, kLargest, kSmallest };

template <Reduced what>
Result<size_t> ReduceRows(KernelBody& body, size_t value, const Rows& rows) {
  RowBody row(body, rows, value);
  if constexpr (what == Reduced::kSum || what == Reduced::kMean) {
    row.Sum("all", [](const std::string& x) { return x; });
    body.StoreOnce("i", what == Reduced::kSum ? "all" : "all / " + N(rows.length) + ".0f");
  } else {
    constexpr bool is_largest = what == Reduced::kLargest;
    body.Line(is_largest ? "float all = -INFINITY;" : "float all = INFINITY;");
    row.ForEach([&](const std::string& x, const std::string&) {
      const std::string is_better = is_largest ? "all < " + x : x + " < all";
      body.Line("all = " + is_better + " || " + x + " != " + x + " ? " + x + " : all;");
    });
    body.Across(is_largest ? "max" : "min", "all");
    body.StoreOnce("i", "all");
  }
  return rows.Count();
}

template <Reduced what>
Result<size_t> PoolAll(KernelBody& body, const OpSequence& sequence, const Step& step) {
  const Shape& shape = sequence.values[step.inputs[0]].type.shape;
  return ReduceRows<what>(body, step.inputs[0], {shape[0] * shape[1], shape[2] * shape[3], 1});
}

template <Reduced what>
Result<size_t> Reduce(KernelBody& body, const OpSequence&, const Step& step) {
  const std::optional<Rows> rows = RowsOfReduction(*step.call->As<Call>());
  if (!rows) return Fail("reduces axes that are not neighbours");
  return ReduceRows<what>(body, step.inputs[0], *rows);
}

Rows RowsOfAxis(const Shape& shape, const Attributes& attributes) {
  std::vector<bool> axes(shape.size(), false);
  axes[AxisAttribute(attributes, "axis", -1, shape.size())] = true;
  return *RowsAlong(shape, axes);
}

/// By the mean, and then the mean of squares around it, so that no large mean takes the variance's digits.
Result<size_t> NormaliseLayer(KernelBody& body, const OpSequence& sequence, const Step& step) {
  const Rows rows = RowsOfAxis(sequence.values[step.inputs[0]].type.shape, step.attributes);
  RowBody row(body, rows, step.inputs[0]);
  row.Sum("sum", [](const std::string& x) { return x; });
  body.Line("const float mean = sum / " + N(rows.length) + ".0f;");
  row.Sum("squares", [](const std::string& x) { return "(" + x + " - mean) * (" + x + " - mean)"; });
  const std::string epsilon = FloatText(DoubleAttribute(step.attributes, "epsilon", 1e-5));
  body.Line("const float scale = 1.0f / sqrt(squares / " + N(rows.length) + ".0f + " + epsilon + ");");
  row.ForEach([&](const std::string& x, const std::string& at) {
    std::string text = "(" + x + " - mean) * scale";
    if (BoolAttribute(step.attributes, "scale", true)) text += " * " + body.At(step.inputs[1], "k");
    if (BoolAttribute(step.attributes, "center", true)) text += " + " + body.At(step.inputs[2], "k");
    body.Store(at, text);
  });
  return rows.Count();
}

using ReadProduct = Result<MatrixProduct> (*)(const TensorType&, const TensorType&, const Attributes&);

template <ReadProduct read>
Result<size_t> Multiply(KernelBody& body, const OpSequence& sequence, const Step& step) {
  const MatrixProduct p = COLLAGE_TRY(read(sequence.values[step.inputs[0]].type, sequence.values[step.inputs[1]].type, step.attributes));
  body.Line("const int column = i % " + N(p.columns) + ", row = i / " + N(p.columns) + " % " + N(p.rows) + ";");
  body.Line("const int batch = i / " + N(p.rows * p.columns) + ";");
  // Which matrix of a batch that may be broadcast.
  const auto matrix = [&](const Shape& of) {
    std::string text = "0";
    int64_t stride = 1;
    int64_t inside = 1;
    for (size_t d = p.batch.size(); d-- > 0; inside *= p.batch[d]) {
      const size_t missing = p.batch.size() - of.size();
      const int64_t extent = d < missing ? 1 : of[d - missing];
      if (extent > 1) text += " + batch / " + N(inside) + " % " + N(p.batch[d]) + " * " + N(stride);
      stride *= extent;
    }
    return "(" + text + ")";
  };
  body.Line("const int a = " + matrix(p.batch_a) + " * " + N(p.rows * p.depth) + ";");
  body.Line("const int b = " + matrix(p.batch_b) + " * " + N(p.depth * p.columns) + ";");
  body.Line("float sum = 0.0f;");
  body.Begin(Loop("k", p.depth));
  const std::string left = body.Int(p.transpose_a ? "a + k * " + N(p.rows) + " + row" : "a + row * " + N(p.depth) + " + k");
  const std::string right = body.Int(p.transpose_b ? "b + column * " + N(p.depth) + " + k" : "b + k * " + N(p.columns) + " + column");
  body.Line("sum += " + body.At(step.inputs[0], left) + " * " + body.At(step.inputs[1], right) + ";");
  body.End();
  body.Store("i", "sum");
  return static_cast<size_t>(ElementCount(p.batch) * p.rows * p.columns);
}

Result<size_t> Softmax(KernelBody& body, const OpSequence& sequence, const Step& step) {
  const Rows rows = RowsOfAxis(sequence.values[step.inputs[0]].type.shape, step.attributes);
  RowBody row(body, rows, step.inputs[0]);
  body.Line("float largest = -INFINITY;");
  row.ForEach([&](const std::string& x, const std::string&) { body.Line("largest = fmax(largest, " + x + ");"); });
  body.Across("max", "largest");
  row.Sum("sum", [](const std::string& x) { return "exp(" + x + " - largest)"; });
  row.ForEach([&](const std::string& x, const std::string& at) { body.Store(at, "exp(" + x + " - largest) / sum"); });
  return rows.Count();
}

}  // namespace

std::string FloatText(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "(-INFINITY)";
  char text[40];
  std::snprintf(text, sizeof text, "(%.9ef)", value);
  return text;
}

void KernelBody::Begin(const std::string& head) {
  Line(head);
  outside_.push_back(named_);
  ++depth_;
}

void KernelBody::BeginRow(int64_t extent) {
  has_rows_ = true;
  Begin(lanes_ == 1 ? Loop("k", extent) : "for (int k = lane; k < " + N(extent) + "; k += " + N(lanes_) + ") {");
}

void KernelBody::Across(const std::string& combination, const std::string& name) {
  if (lanes_ > 1) Line(name + " = across_" + combination + "(" + name + ");");
}

std::string KernelBody::Stored(const std::string& index, const std::string& text) const {
  return "out[" + index + "] = " + ToStored(written_, text) + ";";
}

void KernelBody::StoreOnce(const std::string& index, const std::string& text) {
  Line((lanes_ > 1 && has_rows_ ? "if (lane == 0) " : "") + Stored(index, text));
}

void KernelBody::End() {
  --depth_;
  named_ = std::move(outside_.back());
  outside_.pop_back();
  Line("}");
}

std::string KernelBody::Int(const std::string& text) {
  const bool is_name = text.find_first_of(" %*+/") == std::string::npos;
  if (is_name) return text;
  const auto [at, is_new] = named_.indices.try_emplace(text);
  if (is_new) {
    at->second = "j" + std::to_string(count_++);
    Line("const int " + at->second + " = " + text + ";");
  }
  return at->second;
}

std::string KernelBody::Number(DType dtype) {
  std::string name = "c" + std::to_string(count_++);
  Line(ComputedType(dtype) + " " + name + ";");
  return name;
}

const std::string* KernelBody::Find(size_t value, const std::string& index) const {
  const auto found = named_.elements.find({value, index});
  return found == named_.elements.end() ? nullptr : &found->second;
}

std::string KernelBody::Bind(size_t value, const std::string& index, DType dtype, const std::string& text) {
  std::string& name = named_.elements[{value, index}];
  name = "e" + std::to_string(count_++);
  Line("const " + ComputedType(dtype) + " " + name + " = " + text + ";");
  return name;
}

bool IsReduction(const std::string& name) { return name == "sum" || name == "mean" || name == "max" || name == "min"; }

std::optional<Rows> RowsOfReduction(const Call& call) {
  const TensorType data = FlattenTensors(call.args[0]->type()).at(0);
  const Result<Reduction> reduction = ReadReduction(data, call.attributes);
  return reduction ? RowsAlong(data.shape, reduction->reduced) : std::nullopt;
}

bool LoopsOverRows(const std::string& name) {
  static const std::unordered_set<std::string> others = {"nn.softmax", "nn.layer_norm", "nn.global_max_pool2d", "nn.global_avg_pool2d"};
  return IsReduction(name) || others.contains(name);
}

Loops FindLoops(const std::string& name) {
  static const std::unordered_map<std::string, Loops> table = {
      {"nn.conv2d", Convolve},
      {"nn.max_pool2d", Pool<true>},
      {"nn.avg_pool2d", Pool<false>},
      {"nn.global_max_pool2d", PoolAll<Reduced::kLargest>},
      {"nn.global_avg_pool2d", PoolAll<Reduced::kMean>},
      {"sum", Reduce<Reduced::kSum>},
      {"mean", Reduce<Reduced::kMean>},
      {"max", Reduce<Reduced::kLargest>},
      {"min", Reduce<Reduced::kSmallest>},
      {"nn.layer_norm", NormaliseLayer},
      {"nn.dense", Multiply<ReadDense>},
      {"nn.matmul", Multiply<ReadMatmul>},
      {"nn.batch_matmul", Multiply<ReadBatchMatmul>},
      {"nn.softmax", Softmax},
  };
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace collage::element_code
