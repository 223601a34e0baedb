#include "collage/backend/strided_view.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_set>

#include "collage/op/slice.h"

namespace collage {
namespace {

using Step = OpSequence::Step;

const TensorType& TypeOf(const OpSequence& sequence, size_t value) { return sequence.values[value].type; }

StridedView RowMajor(const OpSequence& sequence, size_t value) {
  const Shape& shape = TypeOf(sequence, value).shape;
  return {value, shape, RowMajorStrides(shape)};
}

bool IsReshape(const Step& step) { return step.op->is_view; }

/// Dimensions of several elements that follow one another without a gap are one; into such a run the new extents must fit.
bool Reshape(StridedView& view, const Shape& shape) {
  if (ElementCount(shape) == 0) return false;
  std::vector<std::pair<int64_t, int64_t>> runs;  // extent, and stride from element to element
  for (size_t i = 0; i < view.dims.size(); ++i) {
    const int64_t extent = view.dims[i];
    if (extent == 1) continue;
    if (!runs.empty() && runs.back().second == extent * view.strides[i]) {
      runs.back() = {runs.back().first * extent, view.strides[i]};
    } else {
      runs.emplace_back(extent, view.strides[i]);
    }
  }
  std::vector<int64_t> strides(shape.size(), 1);
  size_t run = 0;
  int64_t left = runs.empty() ? 1 : runs[0].first;  // of the run, for what follows
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (left == 1 && ++run < runs.size()) left = runs[run].first;
    if (run >= runs.size() || left % shape[i] != 0) return false;
    left /= shape[i];
    strides[i] = runs[run].second * left;
  }
  // Libraries look at the strides of single elements too, and want them as in a row-major tensor.
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1 && i + 1 < shape.size()) strides[i] = strides[i + 1] * shape[i + 1];
  }
  view.dims = shape;
  view.strides = std::move(strides);
  return true;
}

bool TakeSlice(StridedView& view, const TensorType& data, const Step& step) {
  const Result<Slice> slice = ReadSlice(data, step.attributes);
  if (!slice || std::any_of(slice->stride.begin(), slice->stride.end(), [](int64_t stride) { return stride < 0; })) return false;
  for (size_t i = 0; i < view.dims.size(); ++i) {
    view.offset += slice->begin[i] * view.strides[i];
    view.strides[i] *= slice->stride[i];
  }
  view.dims = slice->result;
  return true;
}

bool TakePart(StridedView& view, const TensorType& data, const Step& step, size_t part) {
  const Result<std::vector<int64_t>> extents = ReadSplit(data, step.attributes);
  const Result<int64_t> axis = step.attributes.Int("axis", 0);
  if (!extents || !axis) return false;
  const auto at = static_cast<size_t>(*axis < 0 ? *axis + static_cast<int64_t>(view.dims.size()) : *axis);
  view.offset += std::accumulate(extents->begin(), extents->begin() + static_cast<std::ptrdiff_t>(part), int64_t{0}) * view.strides[at];
  view.dims[at] = (*extents)[part];
  return true;
}

bool Transpose(StridedView& view, const TensorType& data, const Step& step) {
  const Result<std::vector<size_t>> axes = ReadPermutation(data, step.attributes);
  if (!axes) return false;
  const StridedView before = view;
  for (size_t i = 0; i < axes->size(); ++i) {
    view.dims[i] = before.dims[(*axes)[i]];
    view.strides[i] = before.strides[(*axes)[i]];
  }
  return true;
}

bool Take(StridedView& view, const OpSequence& sequence, const StepTaken& taken) {
  const Step& step = *taken.step;
  const TensorType& data = TypeOf(sequence, step.inputs[0]);
  if (IsReshape(step)) return Reshape(view, TypeOf(sequence, taken.output).shape);
  if (step.op->name == "transpose") return Transpose(view, data, step);
  if (step.op->name == "strided_slice") return TakeSlice(view, data, step);
  const auto part = std::find(step.outputs.begin(), step.outputs.end(), taken.output) - step.outputs.begin();
  return TakePart(view, data, step, static_cast<size_t>(part));
}

}  // namespace

bool MayBeView(const OpDef& op) {
  static const std::unordered_set<std::string_view> movements = {"transpose", "strided_slice", "split"};
  return op.is_view || movements.contains(op.name);
}

std::optional<StridedView> ViewOf(const OpSequence& sequence, size_t value, std::span<const StepTaken> steps) {
  StridedView view = RowMajor(sequence, value);
  for (const StepTaken& taken : steps) {
    if (MayBeView(*taken.step->op) && !Take(view, sequence, taken)) return std::nullopt;
  }
  return view;
}

std::optional<StridedView> ViewBehind(const OpSequence& sequence, std::span<const Step> steps, size_t value) {
  std::vector<StepTaken> chain;
  size_t source = value;
  for (size_t i = steps.size(); i-- > 0;) {
    const std::vector<size_t>& outputs = steps[i].outputs;
    if (!MayBeView(*steps[i].op) || std::find(outputs.begin(), outputs.end(), source) == outputs.end()) continue;
    chain.push_back({&steps[i], source});
    source = steps[i].inputs[0];
  }
  std::reverse(chain.begin(), chain.end());
  return ViewOf(sequence, source, chain);
}

std::optional<StridedView> ViewAhead(const OpSequence& sequence, std::span<const Step> steps, size_t value) {
  size_t last = value;
  for (const Step& step : steps) {
    if ((!IsReshape(step) && step.op->name != "transpose") || step.inputs[0] != last) return std::nullopt;
    last = step.outputs[0];
  }
  StridedView view = RowMajor(sequence, last);
  for (size_t s = steps.size(); s-- > 0;) {
    const TensorType& before = TypeOf(sequence, steps[s].inputs[0]);
    if (IsReshape(steps[s])) {
      if (!Reshape(view, before.shape)) return std::nullopt;
      continue;
    }
    const Result<std::vector<size_t>> axes = ReadPermutation(before, steps[s].attributes);
    if (!axes) return std::nullopt;
    const StridedView after = view;
    for (size_t i = 0; i < axes->size(); ++i) {
      view.dims[(*axes)[i]] = after.dims[i];
      view.strides[(*axes)[i]] = after.strides[i];
    }
  }
  return view;
}

}  // namespace collage
