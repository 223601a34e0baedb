#pragma once

#include <string>
#include <vector>

#include "collage/candidate/rule.h"
#include "collage/query/program.h"

namespace collage {

/// A target of a query, which needs no device and no library behind it: a Target as the command line knows it ("cpu",
/// "cpu -compiler=dnnl"), or the bare name of a compiler ("dnnl", "native").
struct QueryTarget {
  std::string text;
  /// "native" without a compiler.
  std::string compiler;
  [[nodiscard]] bool IsNative() const { return compiler == "native"; }
};

/// A string, or an object whose "target" or "name" it is.
Result<QueryTarget> TargetFrom(const JsonReader& reader);

/// A candidate as rules find it.
struct NamedCandidate {
  const NamedFunction* function;
  SubGraph sub_graph;
};

/// "inside" and "nested" of each candidate, with "function" where it is not in @main. What differs only by values without names is
/// listed once, what consists of such values alone not at all; calls of operators count with or without names.
Json CandidatesToJson(const std::vector<NamedCandidate>& candidates);

}  // namespace collage
