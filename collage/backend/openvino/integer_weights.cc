#include "collage/backend/openvino/integer_weights.h"

#include "collage/ir/visit.h"
#include "collage/op/integer_weights.h"

namespace collage::openvino {
namespace {

bool Quantises(const Expr& body) {
  bool found = false;
  PostOrder(body, [&](const Expr& expr) { found = found || IsCallOf(expr, "qnn.quantize") || IsCallOf(expr, "qnn.dequantize"); });
  return found;
}

/// Without them pairs of products are added in 16 bits, which saturate. Of processors that have them in vectors of 256 bits alone it is not
/// known that all of the library's code uses them.
bool AddsProductsExactly() { return __builtin_cpu_supports("avx512vnni") != 0; }

}  // namespace

Result<Expr> WithIntegerWeights(const Function& function) {
  return WithQuantisedWeights(function,
                              [is_wanted = AddsProductsExactly() && Quantises(function.body)](
                                  const OpDef&, const Tensor& weights, size_t axis) -> Result<std::optional<QuantisedWeights>> {
                                return is_wanted ? QuantiseExactly(weights, axis) : std::nullopt;
                              });
}

}  // namespace collage::openvino
