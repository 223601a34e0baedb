#include "collage/search/exact.h"

#include <algorithm>
#include <limits>
#include <map>

#include "collage/search/integer_program.h"
#include "collage/support/clock.h"

namespace collage {
namespace {

using Terms = std::vector<std::pair<size_t, double>>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Formulation {
 public:
  explicit Formulation(const SearchProblem& problem) : problem_(problem) {
    AddChoices();
    AddConversions();
    if (!problem.transition.empty()) AddTransitions();
  }

  [[nodiscard]] const IntegerProgram& program() const { return program_; }

  [[nodiscard]] std::vector<SearchChoice> ChoicesOf(const IntegerSolution& solution) const {
    std::vector<SearchChoice> choices;
    for (size_t i = 0; i < choices_.size(); ++i) {
      if (solution.values[i] > 0.5) choices.push_back(choices_[i]);
    }
    std::sort(choices.begin(), choices.end(), [&](const SearchChoice& a, const SearchChoice& b) {
      return problem_.candidates[a.candidate].inside.First() < problem_.candidates[b.candidate].inside.First();
    });
    return choices;
  }

  /// Not all of these candidates at once, whichever their variants.
  void Forbid(const std::vector<SearchChoice>& cycle) {
    Terms terms;
    for (size_t i = 0; i < choices_.size(); ++i) {
      const bool on_cycle =
          std::any_of(cycle.begin(), cycle.end(), [&](const SearchChoice& member) { return member.candidate == choices_[i].candidate; });
      if (on_cycle) terms.emplace_back(i, 1);
    }
    program_.rows.push_back({-kInfinity, static_cast<double>(cycle.size()) - 1, std::move(terms)});
  }

 private:
  // Choice variables come first, in the order of choices_.
  void AddChoices() {
    std::vector<Terms> covering(problem_.node_count);
    for (size_t c = 0; c < problem_.candidates.size(); ++c) {
      const SearchCandidate& candidate = problem_.candidates[c];
      for (size_t v = 0; v < candidate.variants.size(); ++v) {
        if (!candidate.variants[v].cost.IsKnown() || candidate.inside.Empty()) continue;
        const size_t variable = program_.AddVariable(candidate.variants[v].cost.ToMicroseconds(), true);
        choices_.push_back({c, v});
        candidate.inside.ForEach([&](size_t node) { covering[node].emplace_back(variable, 1); });
      }
    }
    for (Terms& terms : covering) program_.rows.push_back({1, 1, std::move(terms)});
  }

  void AddConversions() {
    const size_t layouts = problem_.layout_count;
    std::vector<std::vector<Terms>> made(problem_.tensors.size(), std::vector<Terms>(layouts));
    // Wanted by consumer node: at most one candidate covers a node, so those that want a layout there exclude each other.
    std::vector<std::map<std::pair<size_t, size_t>, Terms>> wanted(problem_.tensors.size());
    for (size_t i = 0; i < choices_.size(); ++i) {
      const SearchCandidate& candidate = problem_.candidates[choices_[i].candidate];
      const SearchVariant& variant = candidate.variants[choices_[i].variant];
      for (size_t k = 0; k < candidate.outputs.size(); ++k) made[candidate.outputs[k]][variant.output_layouts[k]].emplace_back(i, 1);
      for (size_t k = 0; k < candidate.inputs.size(); ++k) {
        const size_t tensor = candidate.inputs[k];
        bool is_read = false;
        for (const size_t consumer : problem_.tensors[tensor].consumers) {
          if (!candidate.inside.Contains(consumer)) continue;
          wanted[tensor][{consumer, variant.input_layouts[k]}].emplace_back(i, 1);
          is_read = true;
        }
        if (!is_read) wanted[tensor][{problem_.node_count + i, variant.input_layouts[k]}].emplace_back(i, 1);
      }
    }
    for (size_t t = 0; t < problem_.tensors.size(); ++t) {
      // A tensor without a word about its layout is plain: those of the function, and what no chosen candidate gives.
      Terms plain;
      for (size_t layout = 1; layout < layouts; ++layout) {
        for (const auto& [variable, one] : made[t][layout]) plain.emplace_back(variable, -1);
      }
      AddConversionsOf(t, made[t], plain, wanted[t]);
    }
  }

  /// exists(t, l) = 1 where t is produced in l; converted(t, l, m) <= exists(t, l); wanted(t, m) <= exists(t, m) + sum of converted(t, .,
  /// m).
  void AddConversionsOf(size_t tensor, const std::vector<Terms>& made, const Terms& plain,
                        const std::map<std::pair<size_t, size_t>, Terms>& wanted) {
    const size_t layouts = problem_.layout_count;
    // Plain: one minus what is made otherwise.
    const auto exists = [&](size_t layout) { return layout == 0 ? plain : made[layout]; };
    const auto constant = [](size_t layout) { return layout == 0 ? 1.0 : 0.0; };
    for (size_t to = 0; to < layouts; ++to) {
      std::vector<Terms> demands;
      for (const auto& [place, terms] : wanted) {
        if (place.second == to) demands.push_back(terms);
      }
      const bool is_result = problem_.tensors[tensor].is_result && to == 0;
      if (demands.empty() && !is_result) continue;
      Terms supply = exists(to);
      for (size_t from = 0; from < layouts; ++from) {
        const bool possible = from == 0 || !made[from].empty();
        if (from == to || !possible) continue;
        const Cost price = problem_.conversion ? problem_.conversion(tensor, from, to) : Cost();
        if (!price.IsKnown()) continue;
        const size_t converted = program_.AddVariable(price.ToMicroseconds(), true);
        supply.emplace_back(converted, 1);
        Terms limit = exists(from);
        for (auto& [variable, coefficient] : limit) coefficient = -coefficient;
        limit.emplace_back(converted, 1);
        program_.rows.push_back({-kInfinity, constant(from), std::move(limit)});
      }
      if (is_result) program_.rows.push_back({1 - constant(to), kInfinity, supply});
      for (const Terms& demand : demands) {
        std::map<size_t, double> row;
        for (const auto& [variable, coefficient] : supply) row[variable] += coefficient;
        for (const auto& [variable, coefficient] : demand) row[variable] -= coefficient;
        program_.rows.push_back({-constant(to), kInfinity, {row.begin(), row.end()}});
      }
    }
  }

  /// One unit flows from node to node through "the backend that ran last"; where a partition of backend b starts, it moves to b
  /// and pays.
  void AddTransitions() {
    const size_t backends = problem_.backend_count;
    std::vector<std::vector<Terms>> starting(problem_.node_count, std::vector<Terms>(backends));
    for (size_t i = 0; i < choices_.size(); ++i) {
      const SearchCandidate& candidate = problem_.candidates[choices_[i].candidate];
      if (candidate.is_partition) starting[candidate.inside.First()][candidate.backend].emplace_back(i, 1);
    }
    std::vector<Terms> last(backends + 1);  // the flow that enters a node, by the backend that ran last; the last entry: none ran
    bool is_first = true;
    for (size_t node = 0; node < problem_.node_count; ++node) {
      std::vector<Terms> next(backends + 1);
      std::vector<Terms> moved = starting[node];
      for (size_t from = 0; from <= backends; ++from) {
        Terms leaving;
        for (size_t to = 0; to < backends; ++to) {
          if (starting[node][to].empty()) continue;
          const Cost price = from == backends ? Cost() : problem_.transition[from][to];
          const size_t move = program_.AddVariable(price.IsKnown() ? price.ToMicroseconds() : 0, false, price.IsKnown() ? 1 : 0);
          leaving.emplace_back(move, 1);
          next[to].emplace_back(move, -1);
          moved[to].emplace_back(move, -1);
        }
        const size_t stay = program_.AddVariable(0, false);
        leaving.emplace_back(stay, 1);
        next[from].emplace_back(stay, -1);
        const double enters = is_first && from == backends ? 1 : 0;
        leaving.insert(leaving.end(), last[from].begin(), last[from].end());
        program_.rows.push_back({enters, enters, std::move(leaving)});
      }
      for (size_t to = 0; to < backends; ++to) {
        if (!moved[to].empty()) program_.rows.push_back({0, 0, std::move(moved[to])});
      }
      last = std::move(next);
      is_first = false;
    }
  }

  const SearchProblem& problem_;
  IntegerProgram program_;
  std::vector<SearchChoice> choices_;
};

}  // namespace

Result<SearchResult> SearchExactly(const SearchProblem& problem, const ExactOptions& options) {
  const Clock::time_point start = Clock::now();
  Formulation formulation(problem);
  while (true) {
    const double left = options.most_seconds - Clock::SecondsSince(start);
    if (left <= 0) return Fail("the integer program found no acyclic cover in time");
    const IntegerSolution solution = COLLAGE_TRY(Solve(formulation.program(), left));
    if (solution.is_infeasible) return Fail("no acyclic cover by the valid candidates exists");
    if (!solution.is_feasible) return Fail("the integer program found no cover in time");
    SearchResult result;
    result.choices = formulation.ChoicesOf(solution);
    if (const std::vector<SearchChoice> cycle = FindCycle(problem, result.choices); !cycle.empty()) {
      formulation.Forbid(cycle);
      continue;
    }
    result.cost = PriceOfCover(problem, result.choices);
    result.lower_bound = std::min(result.cost, Cost::Microseconds(std::max(0.0, solution.lower_bound * (1 - 1e-6))));
    for (const SearchChoice& choice : result.choices) result.partitions += problem.candidates[choice.candidate].is_partition ? 1 : 0;
    return result;
  }
}

}  // namespace collage
