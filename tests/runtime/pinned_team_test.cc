#include "collage/runtime/pinned_team.h"

#include <gtest/gtest.h>

#include "collage/runtime/parallel.h"

namespace collage {
namespace {

/// The processors that each thread of the team may use.
std::vector<cpu_set_t> ProcessorsOfTeam(int threads) {
  std::vector<cpu_set_t> processors(static_cast<size_t>(threads));
  ParallelFor(processors.size(), 1, threads, [&](size_t begin, size_t) { ::sched_getaffinity(0, sizeof(cpu_set_t), &processors[begin]); });
  return processors;
}

int ProcessorsHere() { return CPU_COUNT(&ProcessorsOfTeam(1)[0]); }

TEST(PinnedTeamTest, ThreadsShareNoProcessorUntilItEnds) {
  const int threads = ProcessorsHere();
  if (threads < 2) GTEST_SKIP() << "this machine has one processor";
  for (const int team : {2, threads}) {
    const std::vector<cpu_set_t> before = ProcessorsOfTeam(team);
    {
      const PinnedTeam pinned(team);
      cpu_set_t all;
      CPU_ZERO(&all);
      int sum = 0;
      for (const cpu_set_t& processors : ProcessorsOfTeam(team)) {
        EXPECT_GE(CPU_COUNT(&processors), 1);
        sum += CPU_COUNT(&processors);
        CPU_OR(&all, &all, &processors);
      }
      EXPECT_EQ(sum, CPU_COUNT(&all)) << "no processor is counted twice";
      EXPECT_EQ(CPU_COUNT(&all), threads) << "none is left out";
    }
    const std::vector<cpu_set_t> after = ProcessorsOfTeam(team);
    for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(CPU_EQUAL(&before[i], &after[i])) << i;
  }
}

TEST(PinnedTeamTest, OneThreadAndTooManyAreLeftAlone) {
  for (const int threads : {1, ProcessorsHere() + 1}) {
    const PinnedTeam pinned(threads);
    for (const cpu_set_t& processors : ProcessorsOfTeam(threads)) EXPECT_EQ(CPU_COUNT(&processors), ProcessorsHere());
  }
}

}  // namespace
}  // namespace collage
