#include <limits>
#include <type_traits>

#include "collage/op/axis_view.h"
#include "collage/op/binary_kernel.h"
#include "collage/op/kernels.h"
#include "collage/op/reduction.h"
#include "collage/support/check.h"

namespace collage {
namespace {

/// Floating point accumulates in double; integers in uint64_t, which wraps around as the result would.
template <class T>
using Accumulator = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

/// Strides into the result for each dimension of the data (0 along reduced ones), and, for argmax, into the reduced block.
struct ReductionStrides {
  std::vector<int64_t> result;
  std::vector<int64_t> block;
};

ReductionStrides StridesOf(const Shape& shape, const Attributes& attributes, DType dtype) {
  const Result<Reduction> reduction = ReadReduction({shape, dtype}, attributes);
  COLLAGE_CHECK(reduction.has_value());
  ReductionStrides strides{std::vector<int64_t>(shape.size(), 0), std::vector<int64_t>(shape.size(), 0)};
  int64_t result = 1;
  int64_t block = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    const bool reduced = reduction->reduced[d];
    (reduced ? strides.block : strides.result)[d] = reduced ? block : result;
    (reduced ? block : result) *= shape[d];
  }
  return strides;
}

/// Calls `visit(element of data, index in the result, index in the reduced block)` in row-major order of the data.
template <class T, class Visitor>
void VisitReduced(const Tensor& data, const Attributes& attributes, Visitor&& visit) {
  const ReductionStrides strides = StridesOf(data.shape(), attributes, data.dtype());
  const T* elements = data.Data<T>();
  ForEachRow(data.shape(), strides.result, strides.block,
             [&](int64_t first, int64_t result, int64_t block, int64_t count, int64_t result_step, int64_t block_step) {
               for (int64_t i = 0; i < count; ++i) visit(elements[first + i], result + i * result_step, block + i * block_step);
             });
}

/// Folds `combine(accumulator, element)` and stores `finish(accumulator, number of elements)`.
template <class T, class Combine, class Finish>
void Fold(Inputs inputs, const Attributes& attributes, Outputs outputs, Accumulator<T> start, Combine&& combine, Finish&& finish) {
  std::vector<Accumulator<T>> accumulators(static_cast<size_t>(outputs[0].ElementCount()), start);
  VisitReduced<T>(inputs[0], attributes, [&](T x, int64_t result, int64_t) {
    Accumulator<T>& accumulator = accumulators[static_cast<size_t>(result)];
    accumulator = combine(accumulator, static_cast<Accumulator<T>>(x));
  });
  T* target = outputs[0].MutableData<T>();
  const int64_t count = accumulators.empty() ? 1 : inputs[0].ElementCount() / static_cast<int64_t>(accumulators.size());
  for (size_t i = 0; i < accumulators.size(); ++i) target[i] = finish(accumulators[i], count);
}

/// Keeps, for each output, the element that `better(candidate, kept)` prefers, and its index in the reduced block.
template <class T, class Better, class Store>
void Select(Inputs inputs, const Attributes& attributes, Better&& better, Store&& store, size_t count) {
  std::vector<T> kept(count);
  std::vector<int64_t> place(count, -1);
  VisitReduced<T>(inputs[0], attributes, [&](T x, int64_t result, int64_t block) {
    const auto r = static_cast<size_t>(result);
    if (place[r] >= 0 && !better(x, kept[r])) return;
    kept[r] = x;
    place[r] = block;
  });
  for (size_t i = 0; i < count; ++i) store(i, kept[i], place[i]);
}

template <template <class> class Better>
void SelectValue(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  VisitNumberType(inputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    T* target = outputs[0].MutableData<T>();
    // Once NaN is kept nothing compares better, so it stays.
    const auto better = [](T candidate, T kept) { return Better<T>()(candidate, kept) || candidate != candidate; };
    Select<T>(
        inputs, attributes, better, [&](size_t i, T value, int64_t) { target[i] = value; }, static_cast<size_t>(outputs[0].ElementCount()));
  });
}

template <template <class> class Better>
void SelectIndex(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  const bool last = attributes.Bool("select_last_index", false).value();
  VisitNumberType(inputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    int64_t* target = outputs[0].MutableData<int64_t>();
    const auto better = [last](T candidate, T kept) { return Better<T>()(candidate, kept) || (last && candidate == kept); };
    Select<T>(
        inputs, attributes, better, [&](size_t i, T, int64_t place) { target[i] = place; }, static_cast<size_t>(outputs[0].ElementCount()));
  });
}

}  // namespace

void ReferenceSum(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  VisitNumberType(inputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    Fold<T>(inputs, attributes, outputs, 0, std::plus<>{}, [](auto sum, int64_t) { return static_cast<T>(sum); });
  });
}

void ReferenceMean(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  VisitNumberType(inputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    Fold<T>(inputs, attributes, outputs, 0, std::plus<>{}, [](auto sum, int64_t count) {
      if constexpr (std::is_floating_point_v<T>) return static_cast<T>(sum / static_cast<double>(count));
      if constexpr (std::is_signed_v<T>) return static_cast<T>(static_cast<int64_t>(sum) / count);
      return static_cast<T>(sum / static_cast<uint64_t>(count));
    });
  });
}

void ReferenceProduct(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  VisitNumberType(inputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    Fold<T>(inputs, attributes, outputs, 1, std::multiplies<>{}, [](auto product, int64_t) { return static_cast<T>(product); });
  });
}

void ReferenceMax(Inputs inputs, const Attributes& attributes, Outputs outputs) { SelectValue<std::greater>(inputs, attributes, outputs); }
void ReferenceMin(Inputs inputs, const Attributes& attributes, Outputs outputs) { SelectValue<std::less>(inputs, attributes, outputs); }
void ReferenceArgMax(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  SelectIndex<std::greater>(inputs, attributes, outputs);
}
void ReferenceArgMin(Inputs inputs, const Attributes& attributes, Outputs outputs) { SelectIndex<std::less>(inputs, attributes, outputs); }

}  // namespace collage
