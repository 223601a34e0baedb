// Every backend against the reference kernels, with no code for any one of them: parts of the programs of the corpus that a
// backend takes by its own rules must compile in every variant and give what the operators define.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/conformance/backends.h"
#include "tests/conformance/corpus.h"
#include "tests/conformance/kernel_check.h"
#include "tests/conformance/partitions.h"

namespace collage {

// The name, where GoogleTest prints a parameter.
void PrintTo(const BackendRecord& backend, std::ostream* stream) { *stream << backend.name; }

}  // namespace collage

namespace collage::conformance {
namespace {

Device Cpu(int threads) {
  Device device;
  device.threads = threads;
  return device;
}

/// A kernel that has run before, with data to run it on.
struct Earlier {
  std::unique_ptr<KernelRunner> runner;
  Sample sample;
};

class ConformanceTest : public testing::TestWithParam<std::tuple<BackendRecord, ProgramCase>> {
 protected:
  static const Backend& backend() { return *std::get<0>(GetParam()).backend; }
  static Device On(int threads) { return DeviceFor(backend(), Cpu(threads)); }

  void CheckVariant(const Partition& partition, const Device& device, const Variant& variant, const std::vector<Sample>& samples) {
    SCOPED_TRACE("variant " + variant.name + ", threads " + std::to_string(device.threads));
    auto kernel = backend().Compile(*partition.function->As<Function>(), device, variant);
    ASSERT_TRUE(kernel) << kernel.error().message;
    CheckLayouts(**kernel, variant);
    auto runner = std::make_unique<KernelRunner>(std::move(*kernel), device.threads);
    for (const Sample& sample : samples) EXPECT_EQ(runner->Check(sample.inputs, sample.expected, sample.steps), "");
    runner->ChangeBuffers();
    EXPECT_EQ(runner->Check(samples[0].inputs, samples[0].expected, samples[0].steps), "") << "at other addresses";
    Earlier& earlier = earlier_[std::string(backend().Name())];
    if (earlier.runner) {
      EXPECT_EQ(earlier.runner->Check(earlier.sample.inputs, earlier.sample.expected, earlier.sample.steps), "")
          << "an earlier kernel, run again";
      EXPECT_EQ(runner->Check(samples[0].inputs, samples[0].expected, samples[0].steps), "") << "after another kernel";
    }
    earlier = {std::move(runner), samples[0]};
  }

  static void CheckLayouts(const Kernel& kernel, const Variant& variant) {
    ASSERT_EQ(kernel.inputs().size(), variant.inputs.size());
    ASSERT_EQ(kernel.outputs().size(), variant.outputs.size());
    for (size_t i = 0; i < variant.inputs.size(); ++i) EXPECT_EQ(kernel.inputs()[i].layout, variant.inputs[i]) << "input " << i;
    for (size_t i = 0; i < variant.outputs.size(); ++i) EXPECT_EQ(kernel.outputs()[i].layout, variant.outputs[i]) << "output " << i;
  }

  void CheckPartition(const Program& program, const Partition& partition, int threads) {
    SCOPED_TRACE(partition.name);
    const std::vector<Variant> variants = backend().Variants(*partition.function->As<Function>(), On(threads));
    EXPECT_FALSE(variants.empty()) << "it was accepted, but there is no way to run it";
    std::set<std::string> names;
    const std::vector<Sample> samples = {MakeSample(program, partition, 1), MakeSample(program, partition, 2)};
    for (const Variant& variant : variants) {
      EXPECT_TRUE(names.insert(variant.name).second) << "two variants named " << variant.name;
      CheckVariant(partition, On(threads), variant, samples);
    }
  }

 private:
  static std::map<std::string, Earlier> earlier_;
};

std::map<std::string, Earlier> ConformanceTest::earlier_;

TEST_P(ConformanceTest, WhatItTakesComputesWhatTheReferenceComputes) {
  const Program program = std::get<1>(GetParam()).make();
  const Partitions partitions = PartitionsOf(program, backend(), On(1));
  for (const Partition& partition : partitions.taken) {
    for (int threads : {1, 2}) CheckPartition(program, partition, threads);
  }
  if (partitions.taken.empty()) GTEST_SKIP() << partitions.reason;
}

std::string NameOf(const testing::TestParamInfo<std::tuple<BackendRecord, ProgramCase>>& info) {
  std::string name = std::get<0>(info.param).name + "_" + std::get<1>(info.param).name;
  for (char& letter : name) letter = std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Corpus, ConformanceTest, testing::Combine(testing::ValuesIn(TestedBackends(Cpu(2))), testing::ValuesIn(Corpus())),
                         NameOf);

TEST(PresenceTest, KernelsThatCallALibraryAreTested) {
  const Result<const Backend*> native = FindBackend("native", Cpu(1));
  if (!native || !FindBackend("dnnl", Cpu(1))) GTEST_SKIP() << "native or the library that it calls is absent";
  std::string calling;
  for (const ProgramCase& one : BlockCases()) {
    for (const Partition& partition : PartitionsOf(one.make(), **native, Cpu(1)).taken) {
      if (partition.name.find("dnnl") != std::string::npos) calling += one.name + ": " + partition.name + "\n";
    }
  }
  for (const char* program : {"feed_forward", "attention"})
    EXPECT_NE(calling.find(program), std::string::npos) << program << "\n" << calling;
}

TEST(PresenceTest, MergedRegionsOfLibrariesAreTested) {
  for (const char* library : {"dnnl", "openblas"}) {
    const Result<const Backend*> backend = FindBackend(library, Cpu(1));
    if (!backend) continue;
    size_t merged = 0;
    for (const ProgramCase& one : Corpus()) {
      for (const Partition& partition : PartitionsOf(one.make(), **backend, Cpu(1)).taken) {
        const std::vector<Variant> variants = (*backend)->Variants(*partition.function->As<Function>(), Cpu(1));
        merged += variants.size() == 1 && variants[0].name.starts_with("merged/");
      }
    }
    EXPECT_GE(merged, 3U) << library;
  }
}

TEST(PresenceTest, AbsentBackendsSayWhy) {
  std::string absent;
  for (const BackendRecord& backend : AllBackends(Cpu(2))) {
    const bool is_elsewhere = backend.backend && !(DeviceFor(*backend.backend, Cpu(2)) == Cpu(2));
    if (is_elsewhere) continue;
    if (backend.presence.present) {
      EXPECT_NE(backend.backend, nullptr) << backend.name;
      EXPECT_FALSE(backend.presence.version.empty()) << backend.name;
    } else {
      EXPECT_FALSE(backend.presence.reason.empty()) << backend.name;
      absent += "\n  " + backend.name + ": " + backend.presence.reason;
    }
  }
  if (!absent.empty()) GTEST_SKIP() << "not tested, because absent:" << absent;
}

}  // namespace
}  // namespace collage::conformance
