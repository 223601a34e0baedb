#pragma once

#include <string>
#include <utility>
#include <vector>

#include "collage/support/result.h"
#include "collage/tensor/device_kind.h"

namespace collage {

/// What a program may be compiled for: a device kind and attributes, written "cpu", "cpu -compiler=dnnl",
/// "cuda -compiler=cudnn -host=cpu".
struct Target {
  DeviceKind kind = DeviceKind::kCpu;
  /// In the order given, names without the dash: "compiler", "libs", "partition_rule", "host".
  std::vector<std::pair<std::string, std::string>> attributes;

  /// Errors name the word that is wrong and what is possible in its place. Which compilers exist is not known here.
  static Result<Target> Parse(const std::string& text);
  /// The form that Parse reads.
  [[nodiscard]] std::string ToString() const;
  /// Empty when absent.
  [[nodiscard]] std::string Attribute(const std::string& name) const;
  /// The compiler's name; "native" without one.
  [[nodiscard]] std::string CompilerName() const;

  friend bool operator==(const Target&, const Target&) = default;
};

/// True when `a` adds a compiler or a partition rule to `b` and agrees with it on everything else.
bool Refines(const Target& a, const Target& b);
/// Equal but for the order of attributes, which means nothing.
bool SameTarget(const Target& a, const Target& b);

}  // namespace collage
