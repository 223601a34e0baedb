#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include "collage/pattern/pattern.h"

namespace collage {

/// A backend's answer to "can you run this": yes, or no with a reason that the report prints.
struct Verdict {
  bool accepted = true;
  std::string reason;

  static Verdict Accept() { return {}; }
  static Verdict Reject(std::string reason) { return {false, std::move(reason)}; }
};

/// One match of a pattern: its root and the captured sub-expressions.
struct Match {
  Expr root;
  std::unordered_map<std::string, Expr> captures;

  /// Null when the pattern captured nothing under that name (an optional part that is absent).
  [[nodiscard]] Expr Find(const std::string& name) const {
    const auto at = captures.find(name);
    return at == captures.end() ? nullptr : at->second;
  }
};

/// What a pattern-based backend supports: `label` (for instance "dnnl.conv2d_bias_relu") names the Composite function that a
/// match becomes; `check` refuses matches that the library cannot run.
struct PatternRule {
  std::string label;
  Pattern pattern;
  std::function<Verdict(const Match&)> check;
};

}  // namespace collage
