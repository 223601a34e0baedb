#pragma once

#include <string>
#include <vector>

#include "collage/driver/compile.h"

namespace collage {

struct BlockReport {
  std::string block;
  CompileReport report;
};

/// Sums both up in `whole`.
void AddCounts(const CandidateCounts& part, CandidateCounts& whole);

/// Adds what a block runs to `whole`, and how it was decided: partitions and operators go by their block. Estimates stay as they are.
void AddPlan(const BlockReport& block, CompileReport& whole);

/// The report of a program with control flow: partitions and operators go by their block, "block_1:collage_dnnl_conv2d" and "block_1:%3".
/// Estimates and bounds are sums over blocks, each run once; how often one runs is a matter of data. It has no race of whole programs.
CompileReport ReportOfControl(const std::string& model, const CompileOptions& options, const std::vector<BlockReport>& blocks);

}  // namespace collage
