#include "collage/search/alternatives.h"

#include <gtest/gtest.h>

#include "collage/search/shortest_path.h"
#include "tests/search/random_problem.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

std::vector<bool> Only(const SearchProblem& problem, size_t candidate) {
  std::vector<bool> forbidden(problem.candidates.size(), false);
  forbidden[candidate] = true;
  return forbidden;
}

TEST(AlternativesTest, OnSmallGraphsTheyAreThoseOfTheWholeProblem) {
  std::mt19937_64 random(11);
  size_t found = 0;
  size_t none = 0;
  for (size_t round = 0; round < Rounds(1000); ++round) {
    const SearchProblem problem = RandomProblem(random, round % 2 == 0);
    const Result<SearchResult> best = SearchShortestPath(problem);
    if (!best) continue;
    Alternatives alternatives(problem, best->choices);
    for (size_t i = 0; i < best->choices.size(); ++i) {
      const size_t excluded = best->choices[i].candidate;
      const Result<SearchResult> expected = SearchShortestPath(problem, Only(problem, excluded));
      const std::optional<Alternatives::Found> other = alternatives.BestWithout(i, [&](size_t c) { return c == excluded; });
      ASSERT_EQ(other.has_value(), expected.has_value()) << "round " << round;
      if (!other) {
        ++none;
        continue;
      }
      ++found;
      EXPECT_EQ(other->extra, expected->cost - best->cost) << "round " << round;
      EXPECT_EQ(PriceOfCover(problem, other->choices), expected->cost) << "round " << round;
    }
  }
  EXPECT_GT(found, Rounds(500));
  EXPECT_GT(none, Rounds(100));
}

/// The plan with the choices of a stretch taken from elsewhere.
std::vector<SearchChoice> With(const SearchProblem& problem, const std::vector<SearchChoice>& plan, const std::vector<SearchChoice>& part) {
  IndexSet covered;
  for (const SearchChoice& choice : part) covered |= problem.candidates[choice.candidate].inside;
  std::vector<SearchChoice> whole = part;
  for (const SearchChoice& choice : plan) {
    if (!problem.candidates[choice.candidate].inside.Intersects(covered)) whole.push_back(choice);
  }
  std::sort(whole.begin(), whole.end(), [&](const SearchChoice& a, const SearchChoice& b) {
    return problem.candidates[a.candidate].inside.First() < problem.candidates[b.candidate].inside.First();
  });
  return whole;
}

// Whatever is outside of a stretch, what it costs to differ within is what the whole plan says.
TEST(AlternativesTest, AStretchKnowsWhatLiesOutside) {
  std::mt19937_64 random(12);
  size_t found = 0;
  for (int round = 0; round < 20; ++round) {
    const SearchProblem problem = RepeatedBlocks(random, 4, round % 2 == 0);
    const Result<SearchResult> best = SearchShortestPath(problem);
    ASSERT_TRUE(best) << "round " << round;
    Alternatives alternatives(problem, best->choices, {3, 30});
    for (size_t i = 0; i < best->choices.size(); ++i) {
      const size_t excluded = best->choices[i].candidate;
      const std::optional<Alternatives::Found> other = alternatives.BestWithout(i, [&](size_t c) { return c == excluded; });
      if (!other) continue;
      ++found;
      const std::vector<SearchChoice> whole = With(problem, best->choices, other->choices);
      EXPECT_EQ(PriceOfCover(problem, whole) - best->cost, other->extra) << "round " << round << " choice " << i;
      EXPECT_TRUE(FindCycle(problem, whole).empty());
      EXPECT_GE(other->extra, Cost());
    }
  }
  EXPECT_GT(found, 200u);
}

TEST(AlternativesTest, AllDecisionsOfALongPlanTakeTimeByItsLength) {
  std::mt19937_64 random(13);
  const SearchProblem problem = RepeatedBlocks(random, 120, false);
  ASSERT_GE(problem.node_count, 2000u);
  const SearchResult best = SearchShortestPath(problem).value();
  Alternatives alternatives(problem, best.choices);
  size_t searchable = 0;
  for (size_t i = 0; i < best.choices.size(); ++i) {
    const size_t excluded = best.choices[i].candidate;
    searchable += alternatives.IsSearchable(i) ? 1 : 0;
    alternatives.BestWithout(i, [&](size_t c) { return c == excluded; });
  }
  EXPECT_EQ(alternatives.searches(), searchable);
  EXPECT_GT(searchable, best.choices.size() / 2);
  EXPECT_LT(alternatives.searched_nodes(), 200 * best.choices.size());
}

}  // namespace
}  // namespace collage
