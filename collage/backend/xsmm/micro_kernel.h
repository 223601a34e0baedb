#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collage/support/result.h"

namespace collage::xsmm {

/// What the library generates code for on this processor.
struct InstructionSet {
  int64_t lanes;  ///< float32 elements of a vector register
  /// Columns of a panel: of what the library keeps in registers, whole blocks.
  int64_t panel_columns;
};
/// Fails where it generates code for none of them.
Result<InstructionSet> DetectInstructionSet();

/// "1.17".
std::string LibraryVersion();

/// Of one tile. Numbers are elements; a sum of several products has where each of them begins in both operands.
struct MicroShape {
  int64_t rows, columns, depth;
  int64_t row_stride, panel_stride, result_stride;
  std::vector<int64_t> row_terms = {0};
  std::vector<int64_t> panel_terms = {0};
  bool adds = false;     ///< to what the result holds
  bool fetches = false;  ///< the next panel into the second-level cache; of one term
};

/// Generated code for result = sum over terms of rows x panel, or +=. Copies share the code, which lives as long as the process.
class MicroKernel {
 public:
  /// Fails where the library declines.
  static Result<MicroKernel> Make(const MicroShape& shape);

  void operator()(const float* rows, const float* panel, float* result) const { (*this)(rows, panel, result, panel); }
  /// `next` is the panel that a shape which fetches fetches.
  void operator()(const float* rows, const float* panel, float* result, const float* next) const;

 private:
  using Plain = void (*)(const float* panel, const float* rows, float* result, const float* next_panel, const float* next_rows,
                         const float* next_result);
  using Sum = void (*)(const float* panel, const float* rows, float* result, const unsigned long long* terms,
                       const unsigned long long* panel_terms, const unsigned long long* row_terms, ...);

  Plain plain_ = nullptr;  // where there is one term, which begins there:
  int64_t panel_begin_ = 0;
  int64_t row_begin_ = 0;
  Sum sum_ = nullptr;                            // where there are several terms
  std::vector<unsigned long long> panel_terms_;  // bytes
  std::vector<unsigned long long> row_terms_;
};

}  // namespace collage::xsmm
