#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

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

/// In place of a pattern, how matches grow: for a library that takes an operator and whatever chain follows it, of which a list would
/// name every length and order. A match begins with one call; step by step a call that takes something of it joins, and every set on
/// the way that has one exit, is convex and has no taps is a match, its constants inside.
struct FusionRule {
  std::function<bool(const Expr& call)> begins;
  /// May `next`, which takes a value of `inside`, join? `inside` are the calls so far in dataflow order, the first one in front.
  std::function<bool(const std::vector<Expr>& inside, const Expr& next)> joins;
  size_t max_operators = 16;
  /// What has more exits does not grow on: an activation that uses its input twice leaves two open on the way.
  size_t max_exits = 2;
  /// May a match end with `inside`, though `could_join` might join? Unset: any may. Keeps long chains from becoming a candidate at each
  /// operator on the way.
  std::function<bool(const std::vector<Expr>& inside, const std::vector<Expr>& could_join)> ends = {};
  /// May `call`, whose results nobody takes but a match, stand in front of it? Unset: none may. A match with all that may stand there is
  /// one more match; it never begins with less of it.
  std::function<bool(const Expr& call)> stands_in_front = {};
};

/// What a pattern-based backend supports: `label` (for instance "dnnl.conv2d_bias_relu") names the Composite function that a
/// match becomes; `check` refuses matches that the library cannot run.
struct PatternRule {
  std::string label;
  Pattern pattern;
  std::function<Verdict(const Match&)> check;
  /// When set, matches grow so, and `pattern` says nothing. The label is followed by the names of the operators that joined. A match
  /// captures what it takes from outside, constants apart, as "outside0", "outside1" and so on.
  std::shared_ptr<const FusionRule> fusion = nullptr;

  static PatternRule Growing(std::string label, FusionRule fusion, std::function<Verdict(const Match&)> check = {}) {
    return {std::move(label), pattern::Wildcard(), std::move(check), std::make_shared<const FusionRule>(std::move(fusion))};
  }
};

}  // namespace collage
