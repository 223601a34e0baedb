// Kernels of different backends take turns in one process, as they do in a partitioned program: each brings threads of its own
// (an OpenMP team, a TBB arena), and none may disturb what another computes.

#include <gtest/gtest.h>

#include <atomic>

#include "collage/runtime/parallel.h"
#include "tests/conformance/backends.h"
#include "tests/conformance/corpus.h"
#include "tests/conformance/kernel_check.h"
#include "tests/conformance/partitions.h"

namespace collage::conformance {
namespace {

constexpr int kThreads = 2;

struct Player {
  std::string name;
  std::unique_ptr<KernelRunner> runner;
  Sample sample;
};

Program Layers() {
  ProgramBuilder b;
  const Expr x = b.Input({1, 16, 20, 20});
  const Expr features = ProgramBuilder::Relu(b.Bias(b.Conv2d(ProgramBuilder::Relu(b.Bias(b.Conv2d(x, 32, 3))), 32, 3)));
  const Expr flat = ProgramBuilder::Call("nn.batch_flatten", {features});
  return b.Finish(ProgramBuilder::Call("tanh", {b.Bias(b.Dense(flat, 64), -1)}));
}

/// One kernel of each present backend that takes any part of the program.
std::vector<Player> MakePlayers(const Program& program) {
  const Device device{DeviceKind::kCpu, 0, kThreads};
  const ReferenceRun whole(program.Get(), program.RandomInputs(3));
  std::vector<Player> players;
  for (const BackendRecord& record : PresentBackends(device)) {
    const Partitions partitions = PartitionsOf(program, *record.backend, device);
    if (partitions.taken.empty()) continue;
    const Function& function = *partitions.taken[0].function->As<Function>();
    const std::vector<Variant> variants = record.backend->Variants(function, device);
    auto kernel = record.backend->Compile(function, device, variants.at(0));
    if (!kernel) throw std::runtime_error(record.name + ": " + kernel.error().message);
    players.push_back({record.name, std::make_unique<KernelRunner>(std::move(*kernel), kThreads), MakeSample(whole, partitions.taken[0])});
  }
  return players;
}

void UseSharedTeam() {
  std::atomic<size_t> sum = 0;
  ParallelFor(10000, 1, kThreads, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) sum += i;
  });
  EXPECT_EQ(sum, 49995000u);
}

TEST(InterplayTest, KernelsOfAllBackendsTakeTurns) {
  std::vector<Player> players = MakePlayers(Layers());
  if (players.size() < 2) GTEST_SKIP() << "fewer than two backends are present";
  for (int round = 0; round < 20; ++round) {
    for (Player& first : players) {
      for (Player& second : players) {
        EXPECT_EQ(first.runner->Check(first.sample.inputs, first.sample.expected, first.sample.steps), "")
            << first.name << " before " << second.name;
        UseSharedTeam();
        EXPECT_EQ(second.runner->Check(second.sample.inputs, second.sample.expected, second.sample.steps), "")
            << second.name << " after " << first.name;
      }
    }
  }
}

}  // namespace
}  // namespace collage::conformance
