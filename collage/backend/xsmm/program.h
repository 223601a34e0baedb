#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace collage::xsmm {

/// All that a kernel runs, with its constants packed. Nothing in it changes, so kernels in several threads share one.
class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  virtual ~Program() = default;

  /// Parts of the work that threads take; each needs scratch memory of its own.
  [[nodiscard]] virtual size_t pieces() const = 0;
  [[nodiscard]] virtual size_t scratch_bytes() const = 0;

  /// One of the pieces, by the calling thread. `scratch` is its own, 64-byte aligned.
  virtual void Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const = 0;
};

/// How many threads work of so many operations (multiplications and additions) is worth, of `threads` and of `parts` into which it may be
/// cut: one at least.
size_t PiecesWorth(double operations, size_t parts, int threads);

/// Elements, rounded up to whole cache lines, so that threads write none of each other's.
size_t WholeLines(int64_t elements);

}  // namespace collage::xsmm
