#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "collage/tensor/precision.h"
#include "tests/conformance/kernel_check.h"
#include "tests/conformance/partitions.h"

namespace collage::conformance {

/// What one program has shown of a backend.
struct CaseResult {
  /// What a kernel did and must not do, a line each, with the part of the program, the variant and the number of threads.
  std::vector<std::string> problems;
  /// Why the backend takes nothing of it, where it takes nothing.
  std::string refusal;
  size_t partitions = 0;
  size_t kernels = 0;
};

/// Parts of programs that a backend takes by its own rules must compile in every variant and give what the operators define: on two sets
/// of data, at other addresses, and after another kernel of the same backend has run, which must still be right as well. It runs where
/// DeviceFor says, with one thread and with two. The same is asked of the variants that the backend has for each permit
/// (tensor/precision.h), to the tolerance of that; the others must be those that it has without.
///
/// Programs share parts, such as the convolution that several tails follow, or differ in data only. What was compiled for one is not
/// compiled again for the next, which takes far longer than running it, but runs on its data.
class CaseChecker {
 public:
  explicit CaseChecker(const Backend& backend) : backend_(backend) {}
  CaseResult Check(const ProgramCase& one);

 private:
  using Runner = std::shared_ptr<KernelRunner>;
  /// A kernel that has run before, with data to run it on.
  struct Earlier {
    Runner runner;
    Sample sample;
  };
  struct Compiled {
    uint64_t hash;  ///< of what decides its code
    Runner runner;
  };
  [[nodiscard]] Device On(int threads) const;
  [[nodiscard]] Result<Runner> KernelOf(const Expr& function, const Device& device, const Variant& variant);
  void CheckPartition(const Partition& partition, const std::vector<Sample>& samples, int threads, CaseResult& result);
  void CheckPermitted(const Partition& partition, const Precision& precision, const std::vector<Variant>& usual, const Device& device,
                      std::vector<Sample> samples, CaseResult& result);
  void CheckVariant(const Partition& partition, const Device& device, const Variant& variant, const std::vector<Sample>& samples,
                    CaseResult& result);

  const Backend& backend_;
  Earlier earlier_;
  std::deque<Compiled> compiled_;  ///< the last ones
};

}  // namespace collage::conformance
