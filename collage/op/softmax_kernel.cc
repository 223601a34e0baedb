#include <algorithm>
#include <cmath>

#include "collage/op/axis_view.h"
#include "collage/op/kernels.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

// The largest element is subtracted first, so that no exponential overflows.
template <class T>
void Softmax(const Tensor& data_tensor, const Attributes& attributes, bool logarithm, Tensor& output) {
  const AxisView view(data_tensor.shape(), AxisAttribute(attributes, "axis", -1, data_tensor.shape().size()));
  if (view.extent == 0) return;
  const T* data = data_tensor.Data<T>();
  T* result = output.MutableData<T>();
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (int64_t inner = 0; inner < view.inner; ++inner) {
      const int64_t start = outer * view.extent * view.inner + inner;
      const auto at = [&](int64_t i) { return static_cast<double>(data[start + i * view.inner]); };
      double largest = at(0);
      for (int64_t i = 1; i < view.extent; ++i) largest = std::max(largest, at(i));
      double sum = 0;
      for (int64_t i = 0; i < view.extent; ++i) sum += std::exp(at(i) - largest);
      const double log_sum = std::log(sum);
      for (int64_t i = 0; i < view.extent; ++i) {
        const double x = at(i) - largest;
        result[start + i * view.inner] = static_cast<T>(logarithm ? x - log_sum : std::exp(x) / sum);
      }
    }
  }
}

}  // namespace

void ReferenceSoftmax(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  VisitFloatType(inputs[0].dtype(), [&](auto element) { Softmax<decltype(element)>(inputs[0], attributes, false, outputs[0]); });
}

void ReferenceLogSoftmax(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  VisitFloatType(inputs[0].dtype(), [&](auto element) { Softmax<decltype(element)>(inputs[0], attributes, true, outputs[0]); });
}

}  // namespace collage
