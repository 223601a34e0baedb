#pragma once

#include <span>
#include <vector>

#include "collage/op/remainder.h"
#include "collage/runtime/executable.h"

namespace collage {

/// How often each of a region's programs runs, in their order, so that all together take at least `rows` rows and the least time, by what
/// they took when they were compiled.
std::vector<int64_t> RunsOf(const std::vector<Remainder::RowProgram>& programs, int64_t rows);

/// Runs a region of rows on its programs, which are blocks of the executable: some rows at a time, in their order, the last ones filled up
/// with copies of the last row. Nothing where the inputs are not of the types that the programs take with another number of rows. Errors
/// are those of the kernels, and say where a program does not fit its region.
Result<std::optional<std::vector<Tensor>>> RunRows(Executable& executable, const Remainder::Region& region, std::span<const Tensor> inputs);

}  // namespace collage
