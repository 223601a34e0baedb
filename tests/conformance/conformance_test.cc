// Every backend against the reference kernels, with no code for any one of them: parts of the programs of the corpus that a
// backend takes by its own rules must compile in every variant and give what the operators define.

#include <gtest/gtest.h>

#include <map>

#include "tests/conformance/backends.h"
#include "tests/conformance/case_check.h"
#include "tests/conformance/corpus.h"
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

class ConformanceTest : public testing::TestWithParam<std::tuple<BackendRecord, ProgramCase>> {
 protected:
  /// Of one backend, in all its tests: each has kernels of the tests before.
  static CaseChecker& Checker(const BackendRecord& record) {
    static std::map<std::string, CaseChecker> checkers;
    return checkers.try_emplace(record.name, *record.backend).first->second;
  }
};

TEST_P(ConformanceTest, WhatItTakesComputesWhatTheReferenceComputes) {
  const auto& [backend, program] = GetParam();
  const CaseResult result = Checker(backend).Check(program);
  for (const std::string& problem : result.problems) ADD_FAILURE() << problem;
  if (!result.refusal.empty()) GTEST_SKIP() << result.refusal;
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

TEST(PresenceTest, OperatorsOfAllKindsAreTestedInFloat16) {
  for (const char* name : {"conv_3x3_bias_relu", "matmul", "dense_odd", "max_pool_3x3_same", "layer_norm", "layer_norm_odd", "softmax"})
    EXPECT_TRUE(CasesNamed(std::string(name) + "_float16")) << name;
}

TEST(PresenceTest, MergedRegionsOfLibrariesAreTested) {
  for (const char* library : {"dnnl", "openblas", "xsmm", "xnnpack"}) {
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
  for (const BackendRecord& backend : AvailableBackends(Cpu(2))) {
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
