#pragma once

// Reductions along rows: of an array [outer, extent, inner] along `extent`. What softmax, normalisation and plain reductions
// have in common.

#include "collage/backend/native/codegen/emitter.h"

namespace collage::native {

/// How elements are joined.
struct Combiner {
  std::function<Halide::Expr(const Halide::Expr&, const Halide::Expr&)> join;
  Halide::Expr initial;
  bool is_sum = false;  ///< lanes may be added by one instruction
};

Combiner SumOf(Halide::Type type);
Combiner MaximumOf(Halide::Type type);

/// One number for each (outer, inner), computed where a host stage wants it.
class RowReduction {
 public:
  /// Element at (outer, position, inner), the three being dimensions of an index.
  using Body = std::function<Halide::Expr(const DimensionIndex& outer, const DimensionIndex& position, const DimensionIndex& inner)>;

  /// With `inner` == 1 the row itself is cut into vector lanes, else the loop over `inner` is.
  RowReduction(Emitter& emitter, const std::string& name, int64_t outer, int64_t extent, int64_t inner, Halide::Type type,
               const Combiner& combiner, const Body& body);

  /// The number, `finish`ed.
  [[nodiscard]] Halide::Expr At(const Halide::Expr& outer, const Halide::Expr& inner) const { return result_(inner, outer); }
  /// Estimated nanoseconds of one vector of elements.
  [[nodiscard]] double element_cost() const { return element_cost_; }
  /// Computes it inside a loop of the host, or before everything.
  void ComputeAt(Halide::Func& host, const std::optional<Halide::Var>& at);

 private:
  void AddLanes(Emitter& emitter, const Combiner& combiner, const Body& body);
  void AddSerial(Emitter& emitter, const Combiner& combiner, const Body& body, int64_t begin);

  int64_t outer_;
  int64_t extent_;
  int64_t inner_;
  int lanes_;
  Halide::Var o_{"outer"}, i_{"inner"}, u_{"lane"};
  Halide::Func result_;
  Halide::Func lanes_sum_;  // partial results, one a lane
  bool has_lanes_ = false;
  int updates_ = 0;
  double element_cost_ = 1;
};

/// What is computed for each outer step (and, where inner > 1, for each tile of inner) of a host over [outer, extent, inner].
struct RowHelpers {
  int64_t extent;
  int64_t inner;
  std::vector<RowReduction*> reductions;
  std::vector<Halide::Func> rows;  ///< functions of (inner, position, outer) that are kept while the row is worked on
};

/// Are the host's loops cut at rows?
bool FitsRows(const Stage& host, int64_t extent, int64_t inner);
void ScheduleRows(Emitter& emitter, Stage& host, const RowHelpers& helpers, double cost);

}  // namespace collage::native
