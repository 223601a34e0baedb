#include "collage/backend/dnnl/views.h"

#include <algorithm>
#include <vector>

#include "collage/backend/dnnl/layouts.h"

namespace collage::dnnl_backend {
namespace {

using Step = OpSequence::Step;

std::vector<size_t> AxesOf(const OpSequence& sequence, const Step& step) {
  const auto rank = static_cast<int64_t>(sequence.values[step.inputs[0]].type.shape.size());
  std::vector<int64_t> reversed;
  for (int64_t i = rank; i-- > 0;) reversed.push_back(i);
  std::vector<size_t> axes;
  for (const int64_t axis : step.attributes.Ints("axes", reversed).value_or(reversed))
    axes.push_back(static_cast<size_t>(axis < 0 ? axis + rank : axis));
  return axes;
}

StridedView RowMajor(const OpSequence& sequence, size_t value) {
  const dnnl::memory::dims dims = Dims(sequence.values[value].type.shape);
  return {value, dims, RowMajorStrides(dims)};
}

// Only a row-major view can be reshaped at will; that is the case of heads that are split off or merged.
bool Reshape(StridedView& view, const Shape& shape) {
  if (view.strides != RowMajorStrides(view.dims)) return false;
  view.dims = Dims(shape);
  view.strides = RowMajorStrides(view.dims);
  return true;
}

}  // namespace

bool IsViewStep(const Step& step) { return step.op->name == "reshape" || step.op->name == "transpose"; }

std::optional<StridedView> ViewBehind(const OpSequence& sequence, std::span<const Step> steps, size_t value) {
  std::vector<const Step*> chain;
  size_t source = value;
  for (size_t i = steps.size(); i-- > 0;) {
    if (steps[i].outputs[0] != source) continue;
    chain.push_back(&steps[i]);
    source = steps[i].inputs[0];
  }
  StridedView view = RowMajor(sequence, source);
  for (auto step = chain.rbegin(); step != chain.rend(); ++step) {
    if ((*step)->op->name == "reshape") {
      if (!Reshape(view, sequence.values[(*step)->outputs[0]].type.shape)) return std::nullopt;
      continue;
    }
    const StridedView before = view;
    const std::vector<size_t> axes = AxesOf(sequence, **step);
    for (size_t i = 0; i < axes.size(); ++i) {
      view.dims[i] = before.dims[axes[i]];
      view.strides[i] = before.strides[axes[i]];
    }
  }
  return view;
}

std::optional<StridedView> ViewAhead(const OpSequence& sequence, std::span<const Step> steps, size_t value) {
  size_t last = value;
  for (const Step& step : steps) {
    if (!IsViewStep(step) || step.inputs[0] != last) return std::nullopt;
    last = step.outputs[0];
  }
  StridedView view = RowMajor(sequence, last);
  for (size_t s = steps.size(); s-- > 0;) {
    if (steps[s].op->name == "reshape") {
      if (!Reshape(view, sequence.values[steps[s].inputs[0]].type.shape)) return std::nullopt;
      continue;
    }
    const StridedView after = view;
    const std::vector<size_t> axes = AxesOf(sequence, steps[s]);
    for (size_t i = 0; i < axes.size(); ++i) {
      view.dims[axes[i]] = after.dims[i];
      view.strides[axes[i]] = after.strides[i];
    }
  }
  return view;
}

}  // namespace collage::dnnl_backend
