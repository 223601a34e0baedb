#pragma once

// Generated kernels that call a library's. A candidate of the native spec may hold a function that a library's label names: that is called,
// the rest is generated around it.

#include <functional>
#include <string>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/candidate/rules.h"

namespace collage {

/// What the rule below asks the code generator and the libraries.
struct LibraryCallOptions {
  /// Matches that can be called (BackendRules::callable of every library).
  std::vector<PatternRule> callable;
  /// May this call of an operator be generated behind a library's call?
  CallPredicate may_follow;
  /// Can one kernel be generated of this function, which holds a labelled one?
  std::function<Verdict(const Function& function)> supports_calls;
  /// What a library gives must have as many bytes: smaller results stay in the cache on the way to a kernel of their own.
  size_t least_bytes = 0;
};

/// A match that a library can be called for, labelled, with what follows it as far as all of that can be generated and has one exit: the
/// largest such sub-graph that the generator takes, with the largest match in it. At most one a match, so that there are few; none that a
/// library could be called for as a whole.
Rule LibraryCallsRule(LibraryCallOptions options);

/// A part of a candidate that is another backend's.
struct LibraryPart {
  std::string library;
  IndexSet inside;
};
/// The functions inside a candidate whose labels name another than its spec's compiler, and partitions of others that it runs side by side.
std::vector<LibraryPart> LibraryParts(const CandidatePartition& candidate);

}  // namespace collage
