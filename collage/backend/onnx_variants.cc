#include "collage/backend/onnx_variants.h"

#include <algorithm>
#include <optional>
#include <string>

#include "collage/ir/op_sequence.h"
#include "collage/ir/original_model.h"
#include "collage/ir/permitted_precision.h"

namespace collage {

std::vector<Variant> OnnxVariants(const Function& function, const std::function<Verdict(const Expr& call)>& supports) {
  const Result<OpSequence> sequence = ToOpSequence(function);
  if (!sequence || sequence->steps.empty()) return {};
  Variant variant{std::string(kOriginalVariant), std::vector<Layout>(sequence->parameters.size()),
                  std::vector<Layout>(sequence->results.size())};
  if (CallOfOriginal(function)) return {std::move(variant)};
  variant.name = kRewrittenVariant;
  const bool takes_all = std::all_of(sequence->steps.begin(), sequence->steps.end(),
                                     [&](const OpSequence::Step& step) { return supports(step.call).accepted; });
  if (!takes_all) return {};
  return {std::move(variant)};
}

bool IsOriginal(std::string_view variant) { return variant.substr(0, variant.find('/')) == kOriginalVariant; }

std::vector<Variant> WithPermitted(std::vector<Variant> variants, const Function& function) {
  const std::optional<Precision> precision = PermittedPrecision(function);
  for (size_t i = 0, count = variants.size(); precision && i < count; ++i) {
    Variant permitted = variants[i];
    permitted.name += "/" + NameOf(*precision);
    permitted.uses_precision = true;
    variants.push_back(std::move(permitted));
  }
  return variants;
}

}  // namespace collage
