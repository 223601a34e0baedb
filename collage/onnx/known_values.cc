#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"
#include "collage/tensor/narrow.h"
#include "collage/tensor/strings.h"

// Operators whose results have as many elements as the values of their arguments say: they are read where these are known.

namespace collage::onnx_io {
namespace {

Expr Int64s(const Shape& shape, const std::vector<int64_t>& values) {
  return MakeConstant(Tensor::FromVector(TensorType{shape, DType::kInt64}, values));
}

Expr Int64s(const std::vector<int64_t>& values) { return Int64s({static_cast<int64_t>(values.size())}, values); }

/// Which slices of a tensor are the first of their kind, in the order of the result, and of which kind each slice is.
struct Kinds {
  std::vector<int64_t> firsts;
  std::vector<int64_t> kind_of;
  std::vector<int64_t> counts;
};

/// `rows`: slices one behind the other, of `width` elements each.
template <class T>
Kinds KindsOf(const T* rows, int64_t count, int64_t width, bool sorted) {
  const auto compare = [&](int64_t a, int64_t b) {
    return std::lexicographical_compare(rows + a * width, rows + (a + 1) * width, rows + b * width, rows + (b + 1) * width);
  };
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), compare);
  Kinds kinds;
  std::vector<int64_t> first_of(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const bool is_first = i == 0 || compare(order[i - 1], order[i]);
    if (is_first) kinds.firsts.push_back(order[i]);
    first_of[static_cast<size_t>(order[i])] = kinds.firsts.back();
  }
  if (!sorted) std::sort(kinds.firsts.begin(), kinds.firsts.end());
  std::vector<int64_t> place(order.size());
  for (size_t i = 0; i < kinds.firsts.size(); ++i) place[static_cast<size_t>(kinds.firsts[i])] = static_cast<int64_t>(i);
  kinds.counts.assign(kinds.firsts.size(), 0);
  for (const int64_t first : first_of) {
    kinds.kind_of.push_back(place[static_cast<size_t>(first)]);
    ++kinds.counts[static_cast<size_t>(kinds.kind_of.back())];
  }
  return kinds;
}

/// Of each string its place among all of them in order: as different and in the same order as they are.
Tensor Places(const Tensor& strings) {
  std::map<std::string, int64_t> places;
  const std::vector<std::string> texts = StringsOf(strings);
  for (const std::string& text : texts) places.emplace(text, 0);
  int64_t next = 0;
  for (auto& [text, place] : places) place = next++;
  std::vector<int64_t> result;
  for (const std::string& text : texts) result.push_back(places.at(text));
  return Tensor::FromVector(TensorType{strings.shape(), DType::kInt64}, result);
}

Result<std::vector<Expr>> ReadKinds(NodeReader& node, bool sorted) {
  Expr data = COLLAGE_TRY(node.Input(0));
  // Strings are ordered, too.
  const Tensor* known = ConstantValue(data);
  const Tensor value = known ? *known : COLLAGE_TRY(node.ConstantInput(0, "data"));
  int64_t axis = 0;
  if (node.HasAttribute("axis")) {
    axis = COLLAGE_TRY(NormalizeAxis(COLLAGE_TRY(node.Int("axis", 0)), value.shape().size()));
  } else {
    data = COLLAGE_TRY(node.Reshape(data, {value.ElementCount()}));
  }
  std::vector<int64_t> axes(Formula::ShapeOf(data).size());
  std::iota(axes.begin(), axes.end(), 0);
  std::rotate(axes.begin(), axes.begin() + axis, axes.begin() + axis + 1);
  const Expr in_front = COLLAGE_TRY(node.Call("transpose", {data}, {{"axes", axes}}));
  const Tensor* constant = ConstantValue(in_front);
  if (constant == nullptr) return Fail("input 0 (data) is too large to be known while the model is read");
  const Tensor rows = constant->dtype() == DType::kString ? Places(*constant) : Widened(*constant);
  const int64_t count = rows.shape()[0];
  Kinds kinds;
  VisitElementType(rows.dtype(), [&](auto element) {
    kinds = KindsOf(rows.Data<decltype(element)>(), count, count == 0 ? 0 : rows.ElementCount() / count, sorted);
  });
  const Expr firsts = Int64s(kinds.firsts);
  const Expr result = COLLAGE_TRY(node.Call("take", {data, firsts}, {{"axis", axis}, {"mode", "clip"}}));
  return std::vector<Expr>{result, firsts, Int64s(kinds.kind_of), Int64s(kinds.counts)};
}

Result<std::vector<Expr>> ReadUnique(NodeReader& node) { return ReadKinds(node, COLLAGE_TRY(node.Int("sorted", 1)) != 0); }

/// In the order in which they come; without the places of the first ones.
Result<std::vector<Expr>> ReadUniqueOfMicrosoft(NodeReader& node) {
  std::vector<Expr> outputs = COLLAGE_TRY(ReadKinds(node, false));
  outputs.erase(outputs.begin() + 1);
  return outputs;
}

/// A box by its ends, whichever corners were given.
struct Box {
  double top;
  double left;
  double bottom;
  double right;

  Box(const double* numbers, bool has_center) {
    if (has_center) {  // x, y, width, height
      *this = Box(numbers[1] - numbers[3] / 2, numbers[0] - numbers[2] / 2, numbers[1] + numbers[3] / 2, numbers[0] + numbers[2] / 2);
    } else {
      *this = Box(numbers[0], numbers[1], numbers[2], numbers[3]);
    }
  }
  Box(double y1, double x1, double y2, double x2)
      : top(std::min(y1, y2)), left(std::min(x1, x2)), bottom(std::max(y1, y2)), right(std::max(x1, x2)) {}

  [[nodiscard]] double Area() const { return (bottom - top) * (right - left); }
};

/// The share of both boxes together that both have.
double Overlap(const Box& a, const Box& b) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double both = std::max(0.0, height) * std::max(0.0, width);
  const double all = a.Area() + b.Area() - both;
  return all > 0 ? both / all : 0;
}

struct SuppressionLimits {
  int64_t most;
  double overlap;
  double score;
};

/// Places of the boxes that stay, best first.
std::vector<int64_t> Suppress(const std::vector<Box>& boxes, const double* scores, const SuppressionLimits& limits) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < static_cast<int64_t>(boxes.size()); ++i) {
    if (scores[i] > limits.score) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  std::vector<int64_t> kept;
  for (const int64_t candidate : order) {
    if (static_cast<int64_t>(kept.size()) >= limits.most) break;
    const auto overlaps = [&](int64_t other) {
      return Overlap(boxes[static_cast<size_t>(candidate)], boxes[static_cast<size_t>(other)]) > limits.overlap;
    };
    if (std::none_of(kept.begin(), kept.end(), overlaps)) kept.push_back(candidate);
  }
  return kept;
}

Result<double> NumberInput(const NodeReader& node, size_t input, const char* meaning, double fallback) {
  if (!node.HasInput(input)) return fallback;
  const std::vector<double> values = COLLAGE_TRY(node.ConstantInput(input, meaning)).ToDouble();
  if (values.size() != 1) return Fail("input " + std::to_string(input) + " (" + meaning + ") must be one number");
  return values[0];
}

Result<std::vector<Expr>> ReadNonMaxSuppression(NodeReader& node) {
  const Tensor boxes = COLLAGE_TRY(node.ConstantInput(0, "boxes"));
  const Tensor scores = COLLAGE_TRY(node.ConstantInput(1, "scores"));
  if (boxes.shape().size() != 3 || scores.shape().size() != 3 || boxes.shape() != Shape{scores.shape()[0], scores.shape()[2], 4}) {
    return Fail("boxes " + ToString(boxes.shape()) + " and scores " + ToString(scores.shape()) +
                " do not fit (batch, boxes, 4) and (batch, classes, boxes)");
  }
  const double most = COLLAGE_TRY(NumberInput(node, 2, "max_output_boxes_per_class", 0));
  const SuppressionLimits limits{static_cast<int64_t>(std::clamp(most, 0.0, 1e9)), COLLAGE_TRY(NumberInput(node, 3, "iou_threshold", 0)),
                                 COLLAGE_TRY(NumberInput(node, 4, "score_threshold", -std::numeric_limits<double>::infinity()))};
  const bool has_center = COLLAGE_TRY(node.Int("center_point_box", 0)) != 0;
  const std::vector<double> numbers = boxes.ToDouble();
  const std::vector<double> all_scores = scores.ToDouble();
  const int64_t classes = scores.shape()[1];
  const int64_t count = scores.shape()[2];
  std::vector<int64_t> selected;
  for (int64_t n = 0; n < scores.shape()[0]; ++n) {
    std::vector<Box> of_image;
    for (int64_t i = 0; i < count; ++i) of_image.emplace_back(numbers.data() + (n * count + i) * 4, has_center);
    for (int64_t c = 0; c < classes; ++c) {
      for (const int64_t box : Suppress(of_image, all_scores.data() + (n * classes + c) * count, limits)) {
        selected.insert(selected.end(), {n, c, box});
      }
    }
  }
  return std::vector<Expr>{Int64s({static_cast<int64_t>(selected.size()) / 3, 3}, selected)};
}

}  // namespace

OperatorFamily KnownValuesFamily() {
  static constexpr ReadRow kRead[] = {
      {"Unique", ReadUnique}, {"com.microsoft.Unique", ReadUniqueOfMicrosoft}, {"NonMaxSuppression", ReadNonMaxSuppression}};
  return {kRead, {}};
}

}  // namespace collage::onnx_io
