#include "collage/backend/onnx_variants.h"

#include <algorithm>
#include <string>

#include "collage/ir/op_sequence.h"
#include "collage/ir/original_model.h"

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

}  // namespace collage
