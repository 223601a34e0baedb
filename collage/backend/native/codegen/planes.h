#pragma once

// Operators that slide a window over each plane by itself: pooling and depthwise convolution.

#include <array>
#include <memory>

#include "collage/backend/native/codegen/emitter.h"
#include "collage/op/window.h"

namespace collage::native {

/// NCHW data seen through a window, a channel being one of batch * channels planes. Padding is put around a plane once, in
/// a copy that stays in the cache, so that the loops under the window have no conditions.
class WindowedInput {
 public:
  WindowedInput(Emitter& emitter, size_t value, std::array<int64_t, 2> input, std::array<int64_t, 2> output, const Window& window,
                Halide::Expr fill);

  /// The element under tap (ky, kx) of the window at output position (y, x).
  [[nodiscard]] Halide::Expr At(const Halide::Expr& plane, const Halide::Expr& y, const Halide::Expr& x, int64_t ky, int64_t kx) const;
  /// Makes the copy, if there is one, for one plane at a time.
  void ComputeAt(Halide::Func& host, const std::optional<Halide::Var>& at);

 private:
  [[nodiscard]] Halide::Expr Load(const Halide::Expr& plane, const Halide::Expr& y, const Halide::Expr& x) const;

  Emitter& emitter_;
  size_t value_;
  std::array<int64_t, 2> input_;
  std::array<int64_t, 2> output_;
  Window window_;
  bool padded_ = false;
  Halide::Func copy_{"padded"};
  Halide::Var x_{"x"}, y_{"y"}, plane_{"plane"};
};

/// Makes vectors of a loop of this extent; gives the loop over them where there are several.
std::optional<Halide::Var> VectoriseRow(Halide::Func& func, const Halide::Var& row, int64_t extent, int lanes);

using PlaneBody = std::function<Halide::Expr(const Halide::Expr& plane, const Halide::Expr& y, const Halide::Expr& x)>;

/// Defines a value of shape [batch, channels, height, width] from the elements of its planes. `taps` rules whether threads
/// are worth it.
void DefinePlanes(Emitter& emitter, size_t output, const std::shared_ptr<WindowedInput>& input, std::array<int64_t, 2> extents, double taps,
                  const PlaneBody& body);

}  // namespace collage::native
