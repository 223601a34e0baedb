#pragma once

#include <string>
#include <utility>
#include <vector>

#include "collage/backend/backend.h"

namespace collage {

/// Computes an operator sequence on logical tensors with the reference kernels.
std::vector<Tensor> Interpret(const Function& function, const std::vector<Tensor>& inputs);

/// A backend for tests: runs any function with the reference kernels, but in layouts, by accumulation and with artifacts as real
/// backends do. Variants: "plain"; "acdb" and "aBcd16b" (every four-dimensional port); "accumulate" for the sum of two parameters
/// (in "aBcd16b").
class InterpreterBackend : public Backend {
 public:
  /// With `artifacts` its kernels are saved as artifacts and loaded from them.
  InterpreterBackend(std::string name, bool artifacts, std::string version = "1.0")
      : name_(std::move(name)), version_(std::move(version)), artifacts_(artifacts) {}

  [[nodiscard]] std::string_view Name() const override { return name_; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version(version_); }
  [[nodiscard]] BackendRules Rules() const override { return {}; }
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override;
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override;
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Load(std::string_view artifact, const Device& device) const override;

  [[nodiscard]] bool ArtifactsHoldSource() const override { return artifacts_hold_source; }

  bool artifacts_hold_source = false;
  mutable size_t compiled = 0;
  mutable size_t loaded = 0;

 private:
  std::string name_;
  std::string version_;
  bool artifacts_;
};

}  // namespace collage
