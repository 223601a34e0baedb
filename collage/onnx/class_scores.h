#pragma once

#include <array>
#include <string>
#include <string_view>

#include "collage/onnx/formula.h"

// What the operators of ai.onnx.ml that score classes have in common.

namespace collage::onnx_io {

/// In the order of TreeEnsemble's enumeration.
inline constexpr std::array<const char*, 5> kScoreTransforms = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};

/// The place of a value among names; an error names the attribute and lists them.
template <class Names>
Result<size_t> PlaceOf(std::string_view value, const Names& names, const std::string& attribute) {
  std::string listed;
  for (size_t i = 0; i < names.size(); ++i) {
    if (value == names[i]) return i;
    listed += (listed.empty() ? "" : ", ") + std::string(names[i]);
  }
  return Fail("attribute '" + attribute + "' has '" + std::string(value) + "', expected one of " + listed);
}

/// The attribute "post_transform", one of kScoreTransforms.
Result<std::string> ScoreTransform(const NodeReader& node);
/// Scores [N, classes] after that.
Expr Transformed(Formula& formula, const std::string& transform, const Expr& scores);

/// "classlabels_strings", or the integers of the other name; one label at least.
Result<Tensor> ClassLabels(const NodeReader& node, const std::string& integers_name);

}  // namespace collage::onnx_io
