#include <algorithm>

#include "collage/backend/native/codegen/emitter.h"

namespace collage::native {

using Halide::Expr;
using Halide::Var;

namespace {

// Counts each node of the shared expression once: common sub-expressions are computed once.
class CostVisitor : public Halide::Internal::IRGraphVisitor {
 public:
  double cost = 0;

 private:
  using Halide::Internal::IRGraphVisitor::include;
  void include(const Expr& e) override {
    constexpr double kOperation = 0.2;  // nanoseconds of one vector operation, roughly
    cost += e.as<Halide::Internal::IntImm>() || e.as<Halide::Internal::FloatImm>() || e.as<Halide::Internal::Variable>() ? 0 : kOperation;
    if (const auto* call = e.as<Halide::Internal::Call>(); call && call->call_type != Halide::Internal::Call::Halide) {
      constexpr double kTranscendental = 4;
      cost += call->is_intrinsic() ? kOperation : call->call_type == Halide::Internal::Call::Image ? kOperation : kTranscendental;
    }
    IRGraphVisitor::include(e);
  }
};

}  // namespace

double ExpressionCost(const Expr& expr) {
  CostVisitor visitor;
  expr.accept(&visitor);
  return 0.5 + visitor.cost;
}

std::optional<Var> Emitter::ParallelOuter(Stage& stage, size_t inner, double cost) {
  if (inner == 0) return std::nullopt;
  constexpr double kWorthThreads = 8000;  // handing work to the pool costs about 5 microseconds
  size_t first = 0;
  while (first + 1 < inner && stage.loops[first]->extent == 1) ++first;
  if (!Parallel() || cost < kWorthThreads) return stage.vars[inner - 1];
  const int64_t enough = int64_t{options_.tasks} * options_.threads;
  Var fused = stage.vars[first];
  int64_t extent = stage.loops[first]->extent;
  while (first + 1 < inner && extent < enough) {
    ++first;
    Var both("outer");
    stage.func.fuse(stage.vars[first], fused, both);
    fused = both;
    extent *= stage.loops[first]->extent;
  }
  if (extent == 1) return first + 1 == inner ? fused : stage.vars[inner - 1];
  const bool innermost = first + 1 == inner;
  const int64_t many = int64_t{64} * options_.threads;
  if (extent > many) {
    // Few long tasks: a task is a call through a pointer, which matters when one row takes nanoseconds.
    Var task("task");
    stage.func
        .split(fused, task, fused, static_cast<int>(extent / (int64_t{4} * options_.tasks * options_.threads)),
               Halide::TailStrategy::GuardWithIf)
        .parallel(task);
  } else {
    stage.func.parallel(fused);
  }
  return innermost ? fused : stage.vars[inner - 1];
}

void Emitter::SchedulePointwise(Stage& stage) {
  const int lanes = VectorLanes(stage.func.types()[0]);
  const int64_t extent = stage.loops.back()->extent;
  Var innermost = stage.vars.back();
  Var vector("vector");
  if (stage.loops.size() > 1) ParallelOuter(stage, stage.loops.size() - 1, stage.cost);
  if (extent < lanes) {
    if (extent > 1) stage.func.vectorize(innermost);
    return;
  }
  const bool parallel = stage.loops.size() == 1 && Parallel() && stage.cost > 8000 && extent >= int64_t{4} * lanes * options_.threads;
  if (parallel) {
    Var chunk("chunk");
    const int64_t per_thread = (extent / options_.threads + lanes - 1) / lanes * lanes;
    stage.func.split(innermost, chunk, innermost, static_cast<int>(per_thread), Halide::TailStrategy::ShiftInwards).parallel(chunk);
  }
  const bool whole = extent % lanes == 0;
  stage.func
      .split(innermost, innermost, vector, lanes, whole && !parallel ? Halide::TailStrategy::Auto : Halide::TailStrategy::ShiftInwards)
      .vectorize(vector);
  if (options_.unroll > 1 && extent >= int64_t{2} * options_.unroll * lanes)
    stage.func.unroll(innermost, options_.unroll, Halide::TailStrategy::GuardWithIf);
}

}  // namespace collage::native
