#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "collage/driver/compile.h"
#include "collage/driver/compile_control.h"
#include "collage/onnx/reader.h"

namespace collage {

/// For how many rows at a time regions of rows are compiled, the most first: by many, of which a product reads each weight once for all,
/// and by few, of which not many are computed for nothing where that many are not there.
std::vector<int64_t> RowCounts();

/// Decides the module of a model, the head where that is cut.
using CompileHead = std::function<Result<CompiledModel>(OnnxModel model, const CompileOptions& options)>;

/// Programs of regions of rows, of all profiles of a model. Most regions take the same types in each profile: equal ones are there once.
struct RowPrograms {
  struct Program {
    uint64_t hash = 0;  ///< of its function, every byte of its weights included
    UserConstraints constraints;
    LoweredModel lowered;
    CompileReport report;
  };
  std::vector<Program> programs;
};

/// Compiles a model that is cut: its head, and each region of rows for each number of rows, as functions of their own with their share of
/// the budget by work. What is pinned or banned in a region is so in its programs. These go to `rows`, unless they are there: the blocks
/// that the remainder names are numbers among those, until AddRowPrograms. Errors name the program.
Result<CompiledModel> CompileRows(OnnxModel model, const CompileOptions& options, const CompileHead& compile_head,
                                  const CompileBlock& compile_block, RowPrograms& rows);

/// The program of all profiles with the programs of their regions as further blocks, by whose numbers its remainders go then.
Result<LoweredModel> AddRowPrograms(LoweredModel model, RowPrograms rows);

}  // namespace collage
