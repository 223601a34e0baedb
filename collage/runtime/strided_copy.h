#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage {

/// One loop of a copy nest; strides in elements.
struct StridedLoop {
  int64_t extent = 1;
  int64_t source_stride = 0;
  int64_t target_stride = 0;
};

/// What becomes of elements of float32 on their way.
enum class ElementChange { kNone, kToBFloat16, kFromBFloat16 };

/// Copies (or clears) the elements of a perfect loop nest. Built once: loops that are contiguous in both tensors are merged, and
/// the innermost two become a row copy, a blocked transposition, or, where neither fits, a plain strided loop. The work is cut
/// into units of about equal size that may run in any order and on any thread.
class StridedCopy {
 public:
  /// `loops` in any order; `element_bytes` are of the source. The offsets (in elements) are added to the pointers given to Run.
  StridedCopy(std::vector<StridedLoop> loops, size_t element_bytes, int64_t source_offset, int64_t target_offset,
              ElementChange change = ElementChange::kNone);
  /// Writes zero instead of copying; source strides are ignored.
  static StridedCopy Zero(std::vector<StridedLoop> loops, size_t element_bytes, int64_t target_offset);

  [[nodiscard]] size_t units() const { return units_; }
  /// Bytes written by one unit (the last of a loop may write fewer).
  [[nodiscard]] size_t unit_bytes() const;
  /// True when it copies one contiguous range, unchanged, to the same offset.
  [[nodiscard]] bool IsContiguous() const;
  /// Does units [begin, end). Allocates nothing.
  void Run(const std::byte* source, std::byte* target, size_t begin, size_t end) const;

 private:
  enum class Form { kZero, kRows, kTranspose, kStrided };

  StridedCopy() = default;
  void Plan(std::vector<StridedLoop> loops);
  void ChooseForm(std::vector<StridedLoop>& loops);
  void ChooseChunk();
  void RunUnit(const std::byte* source, std::byte* target, int64_t middle, int64_t row) const;

  Form form_ = Form::kStrided;
  ElementChange change_ = ElementChange::kNone;
  size_t source_bytes_ = 0;   // of an element
  size_t element_bytes_ = 0;  // of one of the target
  int64_t source_offset_ = 0;
  int64_t target_offset_ = 0;
  std::vector<StridedLoop> outer_;  // outermost first; the chunk loop is one of them
  size_t chunk_position_ = 0;       // which
  int64_t chunk_ = 1;               // extent of the chunked inner loop in one unit
  bool chunk_row_ = false;          // the chunked loop is row_, not middle_
  StridedLoop middle_;
  StridedLoop row_;  // the loop with the smallest target stride
  size_t units_ = 0;
};

}  // namespace collage
