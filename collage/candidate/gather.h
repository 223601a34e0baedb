#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "collage/backend/backend.h"
#include "collage/candidate/rules.h"

namespace collage {

/// A rule tree that a user states, for the compiler of whichever target names it; empty for native code.
using StatedRule = std::function<Rule(const std::string& compiler)>;
/// By the name that "-partition_rule=" gives.
using StatedRules = std::map<std::string, StatedRule>;

struct GatherOptions {
  /// Taken as they are.
  StatedRules stated_rules;
  RegionCutLimits region_cuts;
  /// What native enumeration grows; the groups of the fusion pass are offered beside it.
  CombineLimits native_limits = {.max_depth = 8, .max_operators = 16, .max_exits = 1, .max_per_last_node = 16};
  size_t native_max_operators = 256;
  /// Of libraries that a native target's -libs= names and that are no targets themselves; null where there is none of that name.
  std::function<const BackendRules*(const std::string& library)> library_rules = {};
  /// A library's results have as many bytes where native kernels call it: half of a usual second-level cache.
  size_t least_bytes_of_calls = size_t{1} << 20;
};

/// What a compiler states about itself, by name ("native" for targets without one); null when there is no such compiler.
using RulesOfCompiler = std::function<const BackendRules*(const std::string& compiler)>;

/// Phase 1: one spec a target, in the order given (none for what runs partitions of others side by side), then a native one (when there is
/// a native compiler and no target named it), then the host's. Errors name the target and what is unknown about it.
///
/// Native kernels may call the libraries that "-libs=" names, separated by commas; without it those of all other targets ("-libs=none":
/// no library).
///
/// For operator libraries every match is a candidate; matches of one library are not joined. Joining them ("combine anything")
/// makes the number of candidates explode and gives nothing, because layouts flow between partitions in the search.
Result<std::vector<SpecPointer>> GatherPartitionSpecs(const std::vector<Target>& targets, const RulesOfCompiler& rules_of,
                                                      const GatherOptions& options = {});

/// What every program needs beside kernels: values, names, control flow, and views of their input.
SpecPointer HostSpec();

/// The tree for each style.
Rule RuleForPatterns(const std::string& compiler, const BackendRules& rules);
Rule RuleForRegions(const std::string& compiler, const BackendRules& rules, const RegionCutLimits& limits);
/// `callable`: what kernels may call libraries for. Without a compiler, which "native" stands for, kernels carry none.
Rule RuleForNative(const std::string& compiler, const BackendRules& rules, const GatherOptions& options,
                   std::vector<PatternRule> callable = {});

/// A spec of single calls for a compiler of last resort (the reference), so that a cover always exists.
SpecPointer FallbackSpec(const std::string& compiler);

}  // namespace collage
