#include "collage/backend/element_code/loops.h"

#include <cmath>
#include <cstdio>
#include <unordered_map>

#include "collage/op/matrix_product.h"
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
  body.Line("out[i] = sum;");
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
  body.Line(is_largest ? "out[i] = best;" : "out[i] = sum / max(count, 1);");
  return static_cast<size_t>(p.batch * p.channels * p.output[0] * p.output[1]);
}

template <bool is_largest>
Result<size_t> PoolAll(KernelBody& body, const OpSequence& sequence, const Step& step) {
  const Shape& shape = sequence.values[step.inputs[0]].type.shape;
  const int64_t plane = shape[2] * shape[3];
  body.Line(is_largest ? "float all = -INFINITY;" : "float all = 0.0f;");
  body.Begin(Loop("k", plane));
  const std::string element = body.At(step.inputs[0], body.Int("i * " + N(plane) + " + k"));
  body.Line(is_largest ? "all = all < " + element + " || " + element + " != " + element + " ? " + element + " : all;"
                       : "all += " + element + ";");
  body.End();
  body.Line(is_largest ? "out[i] = all;" : "out[i] = all / " + N(plane) + ".0f;");
  return static_cast<size_t>(shape[0] * shape[1]);
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
  body.Line("out[i] = sum;");
  return static_cast<size_t>(ElementCount(p.batch) * p.rows * p.columns);
}

/// A row for each work-item.
Result<size_t> Softmax(KernelBody& body, const OpSequence& sequence, const Step& step) {
  const Shape& shape = sequence.values[step.inputs[0]].type.shape;
  const size_t axis = AxisAttribute(step.attributes, "axis", -1, shape.size());
  int64_t stride = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) stride *= shape[d];
  body.Line("const int first = i / " + N(stride) + " * " + N(shape[axis] * stride) + " + i % " + N(stride) + ";");
  const auto over_row = [&](const std::function<void(const std::string& element, const std::string& place)>& write) {
    body.Begin(Loop("k", shape[axis]));
    const std::string place = body.Int("first + k * " + N(stride));
    write(body.At(step.inputs[0], place), place);
    body.End();
  };
  body.Line("float largest = -INFINITY, sum = 0.0f;");
  over_row([&](const std::string& x, const std::string&) { body.Line("largest = fmax(largest, " + x + ");"); });
  over_row([&](const std::string& x, const std::string&) { body.Line("sum += exp(" + x + " - largest);"); });
  over_row([&](const std::string& x, const std::string& at) { body.Line("out[" + at + "] = exp(" + x + " - largest) / sum;"); });
  return static_cast<size_t>(ElementCount(shape) / shape[axis]);
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

const std::string* KernelBody::Find(size_t value, const std::string& index) const {
  const auto found = named_.elements.find({value, index});
  return found == named_.elements.end() ? nullptr : &found->second;
}

std::string KernelBody::Bind(size_t value, const std::string& index, const std::string& text) {
  std::string& name = named_.elements[{value, index}];
  name = "e" + std::to_string(count_++);
  Line("const float " + name + " = " + text + ";");
  return name;
}

Loops FindLoops(const std::string& name) {
  static const std::unordered_map<std::string, Loops> table = {
      {"nn.conv2d", Convolve},
      {"nn.max_pool2d", Pool<true>},
      {"nn.avg_pool2d", Pool<false>},
      {"nn.global_max_pool2d", PoolAll<true>},
      {"nn.global_avg_pool2d", PoolAll<false>},
      {"nn.dense", Multiply<ReadDense>},
      {"nn.matmul", Multiply<ReadMatmul>},
      {"nn.batch_matmul", Multiply<ReadBatchMatmul>},
      {"nn.softmax", Softmax},
  };
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace collage::element_code
