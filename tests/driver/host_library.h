#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/driver/timed_kernel.h"

namespace collage {

/// Runs single operators on the host, each as fast as the test says.
class HostLibrary : public Backend {
 public:
  explicit HostLibrary(double seconds) : seconds_(seconds) {}
  [[nodiscard]] std::string_view Name() const override { return "library"; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override {
    BackendRules rules;
    for (const char* op : {"nn.relu", "sigmoid", "tanh", "nn.max_pool2d"})
      rules.patterns.push_back({std::string("library.") + op, pattern::CallOf(op, {pattern::Wildcard()}), {}});
    for (const char* op : {"add", "nn.conv2d", "nn.dense", "nn.matmul"})
      rules.patterns.push_back({std::string("library.") + op, pattern::CallOf(op, {pattern::Wildcard(), pattern::Wildcard()}), {}});
    return rules;
  }
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override {
    std::vector<Variant> variants = InterpreterBackend("inner", false).Variants(function, device);
    variants.resize(1);
    return variants;
  }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override {
    return CompileTimed(function, device, variant, [seconds = seconds_] { return seconds; });
  }

 private:
  double seconds_;
};

}  // namespace collage
