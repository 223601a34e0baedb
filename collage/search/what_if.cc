#include "collage/search/what_if.h"

#include <algorithm>
#include <charconv>

#include "collage/search/shortest_path.h"

namespace collage {
namespace {

constexpr size_t kNobody = static_cast<size_t>(-1);

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

class Interpreter {
 public:
  explicit Interpreter(const RecordedProblem& recorded)
      : recorded_(recorded), problem_(recorded.problem), pinned_(problem_.node_count, kNobody) {
    conditions_.forbidden.assign(problem_.candidates.size(), false);
    conditions_.transition = problem_.transition;
  }

  Result<Conditions> Run(const WhatIf& question) {
    for (const std::string& text : question.forbid) COLLAGE_TRY_STATUS(Forbid(text));
    for (const std::string& text : question.pin) COLLAGE_TRY_STATUS(Pin(text));
    COLLAGE_TRY_STATUS(ApplyPins());
    for (const std::string& text : question.penalty) COLLAGE_TRY_STATUS(Penalise(text));
    return std::move(conditions_);
  }

 private:
  Result<size_t> Backend(const std::string& where, const std::string& name) const {
    const auto at = std::find(recorded_.backends.begin(), recorded_.backends.end(), name);
    if (at == recorded_.backends.end())
      return Fail(where + ": there is no backend '" + name + "', expected one of " + Joined(recorded_.backends));
    return static_cast<size_t>(at - recorded_.backends.begin());
  }

  [[nodiscard]] IndexSet Called(const std::string& name) const {
    IndexSet called;
    for (size_t node = 0; node < problem_.node_count; ++node) {
      if (recorded_.IsCalled(node, name)) called.Add(node);
    }
    return called;
  }

  [[nodiscard]] std::string NotCalled(const std::string& name) const {
    const std::string text = "there is no node and no operator '" + name + "'";
    return recorded_.onnx_nodes.empty() && !recorded_.nodes.empty()
               ? text + " (nodes are known by number only, such as " + recorded_.nodes.front() + ")"
               : text;
  }

  Status Forbid(const std::string& text) {
    const size_t colon = text.find(':');
    const std::string where = "--forbid " + text;
    const size_t backend = COLLAGE_TRY(Backend(where, text.substr(0, colon)));
    const bool is_all = colon == std::string::npos;
    const std::string name = is_all ? "" : text.substr(colon + 1);
    const IndexSet called = is_all ? IndexSet() : Called(name);
    if (!is_all && called.Empty()) return Fail(where + ": " + NotCalled(name));
    for (size_t c = 0; c < problem_.candidates.size(); ++c) {
      const SearchCandidate& candidate = problem_.candidates[c];
      if (candidate.backend == backend && candidate.is_partition && (is_all || candidate.inside.Intersects(called)))
        conditions_.forbidden[c] = true;
    }
    for (const RecordedCall& call : recorded_.calls) {
      if (call.library == backend && (is_all || call.nodes.Intersects(called))) conditions_.forbidden[call.candidate] = true;
    }
    return {};
  }

  Status Pin(const std::string& text) {
    const size_t equals = text.rfind('=');
    const std::string where = "--pin " + text;
    if (equals == std::string::npos) return Fail(where + ": expected node=backend");
    const std::string name = text.substr(0, equals);
    const size_t backend = COLLAGE_TRY(Backend(where, text.substr(equals + 1)));
    const IndexSet called = Called(name);
    if (called.Empty()) return Fail(where + ": " + NotCalled(name));
    for (const size_t node : called.ToVector()) {
      if (pinned_[node] != kNobody && pinned_[node] != backend)
        return Fail(where + ": " + recorded_.NameOf(node) + " is pinned to " + recorded_.backends[pinned_[node]] + " already");
      pinned_[node] = backend;
    }
    return {};
  }

  /// A node's pin leaves only that backend's candidates over it, and of these no kernel that has another library compute it.
  Status ApplyPins() {
    std::vector<bool> runs(problem_.node_count, false);
    std::vector<bool> runs_unless_forbidden(problem_.node_count, false);
    std::vector<bool> calls_elsewhere(problem_.candidates.size(), false);
    for (const RecordedCall& call : recorded_.calls) {
      call.nodes.ForEach([&](size_t node) {
        if (pinned_[node] != kNobody && pinned_[node] != call.library) calls_elsewhere[call.candidate] = true;
      });
    }
    for (size_t c = 0; c < problem_.candidates.size(); ++c) {
      const SearchCandidate& candidate = problem_.candidates[c];
      const bool usable =
          std::any_of(candidate.variants.begin(), candidate.variants.end(), [](const auto& v) { return !v.cost.IsInvalid(); });
      bool is_against = calls_elsewhere[c];
      candidate.inside.ForEach([&](size_t node) {
        const bool other = pinned_[node] != kNobody && (pinned_[node] != candidate.backend || !candidate.is_partition);
        is_against = is_against || other;
      });
      if (usable && !is_against) {
        candidate.inside.ForEach([&](size_t node) {
          runs_unless_forbidden[node] = true;
          if (!conditions_.forbidden[c]) runs[node] = true;
        });
      }
      if (is_against) conditions_.forbidden[c] = true;
    }
    for (size_t node = 0; node < problem_.node_count; ++node) {
      if (runs[node] || pinned_[node] == kNobody) continue;
      const std::string& backend = recorded_.backends[pinned_[node]];
      return Fail(recorded_.NameOf(node) + " is pinned to " + backend +
                  (runs_unless_forbidden[node] ? ", which is forbidden there"
                                               : ", which has no valid candidate there that keeps to the other pins"));
    }
    return {};
  }

  Status Penalise(const std::string& text) {
    const std::string where = "--penalty " + text;
    const size_t colon = text.find(':');
    const size_t equals = text.rfind('=');
    if (colon == std::string::npos || equals == std::string::npos || equals < colon)
      return Fail(where + ": expected backend:backend=microseconds");
    const size_t from = COLLAGE_TRY(Backend(where, text.substr(0, colon)));
    const size_t to = COLLAGE_TRY(Backend(where, text.substr(colon + 1, equals - colon - 1)));
    double microseconds = 0;
    const char* end = text.data() + text.size();
    const auto [parsed, error] = std::from_chars(text.data() + equals + 1, end, microseconds);
    if (error != std::errc() || parsed != end || !(microseconds >= 0) || microseconds > 1e12)
      return Fail(where + ": '" + text.substr(equals + 1) + "' is no number of microseconds, expected one from 0 to 1e12");
    if (conditions_.transition.empty()) conditions_.transition.assign(problem_.backend_count, std::vector<Cost>(problem_.backend_count));
    conditions_.transition[from][to] = Cost::Microseconds(microseconds);
    return {};
  }

  const RecordedProblem& recorded_;
  const SearchProblem& problem_;
  std::vector<size_t> pinned_;
  Conditions conditions_;
};

/// "no valid candidate covers node 7" with the node's name.
Error NameNode(const RecordedProblem& recorded, const Error& error) {
  const size_t at = error.message.rfind(' ') + 1;
  size_t node = recorded.nodes.size();
  std::from_chars(error.message.data() + at, error.message.data() + error.message.size(), node);
  if (error.message.find(" node ") == std::string::npos || node >= recorded.nodes.size()) return error;
  return {error.message.substr(0, at) + recorded.NameOf(node)};
}

}  // namespace

Result<Conditions> Interpret(const RecordedProblem& recorded, const WhatIf& question) { return Interpreter(recorded).Run(question); }

Result<WhatIfAnswer> Answer(const RecordedProblem& recorded, const WhatIf& question) {
  Conditions conditions = COLLAGE_TRY(Interpret(recorded, question));
  WhatIfAnswer answer;
  answer.before = COLLAGE_TRY(SearchShortestPath(recorded.problem));
  SearchProblem problem = recorded.problem;
  problem.transition = conditions.transition;
  Result<SearchResult> after = SearchShortestPath(problem, conditions.forbidden);
  if (!after) return Fail(NameNode(recorded, after.error()).At("under these conditions"));
  answer.after = std::move(*after);
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    for (size_t v = 0; v < problem.candidates[c].variants.size(); ++v) problem.candidates[c].variants[v].cost = recorded.bounds[c][v];
  }
  if (!recorded.chosen.empty()) answer.chosen_cost = PriceOfCover(recorded.problem, recorded.chosen);
  answer.lower_bound = COLLAGE_TRY(SearchShortestPath(problem, conditions.forbidden)).lower_bound;
  return answer;
}

}  // namespace collage
