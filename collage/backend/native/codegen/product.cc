#include "collage/backend/native/codegen/product.h"

#include <algorithm>
#include <limits>
#include <map>

namespace collage::native {

using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::RVar;
using Halide::TailStrategy;
using Halide::Var;

int64_t ProductSpec::Depth() const {
  int64_t depth = 1;
  for (int64_t extent : reduction) depth *= extent;
  return depth;
}

ProductTile PickTile(const ProductSpec& spec, int lanes) {
  // AVX-512 has 32 registers of 16 floats, AVX2 16 of 8: some must stay free for the operands.
  const int64_t accumulators = lanes >= 16 ? 24 : 12;
  const int64_t group = spec.row_group > 0 ? spec.row_group : spec.rows;
  int64_t rows = std::min<int64_t>(group, 8);
  const auto good = [&](int64_t candidate) { return group % candidate == 0; };
  for (int64_t candidate : {8, 6, 12, 7, 5, 4}) {
    if (candidate <= group && good(candidate)) {
      rows = candidate;
      break;
    }
  }
  while (spec.row_group > 0 && !good(rows)) --rows;
  if (spec.row_group == 0 && rows > 1 && spec.rows % rows != 0 && spec.rows < 8) rows = spec.rows;
  if (spec.tile_rows > 0 && (spec.row_group > 0 ? good(spec.tile_rows) : spec.tile_rows <= spec.rows)) rows = spec.tile_rows;
  // Operands that are not packed must not be read beyond their end.
  if (spec.columns < lanes && !spec.packed_columns) return {rows, spec.columns};
  const int64_t most = std::clamp<int64_t>(std::min(accumulators / rows, spec.columns / lanes), 1, 4);
  if (spec.tile_vectors > 0 && spec.tile_vectors * lanes <= spec.columns) return {rows, spec.tile_vectors * lanes};
  int64_t best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t vectors = 1; vectors <= most; ++vectors) {
    // Vectors computed, the last tile's surplus included; a scalar that serves one vector only costs a quarter of it.
    const int64_t tiles = (spec.columns + vectors * lanes - 1) / (vectors * lanes);
    const double cost = static_cast<double>(tiles * vectors) * (1 + 0.25 / static_cast<double>(vectors));
    if (cost > least) continue;
    least = cost;
    best = vectors;
  }
  return {rows, best * lanes};
}

namespace {

// The accumulators of one tile; loops over rows and columns vanish into registers.
struct Accumulator {
  Func func{"product"};
  Var column{"column"}, row{"row"}, outer{"outer"};
  RDom reduction;

  void ComputeAt(Func& host, const Var& at, const ProductTile& tile, int lanes) {
    const bool sums = func.has_update_definition();
    std::vector<Halide::VarOrRVar> order = {column, row};
    for (int i = 0; i < reduction.dimensions(); ++i) order.emplace_back(RVar(reduction[i]));
    const int width = static_cast<int>(std::min<int64_t>(lanes, tile.columns));
    func.compute_at(host, at).bound_extent(column, static_cast<int>(tile.columns)).bound_extent(row, static_cast<int>(tile.rows));
    func.vectorize(column, width).unroll(column).unroll(row);
    if (sums) func.update(0).reorder(order).vectorize(column, width).unroll(column).unroll(row);
  }
};

// A sum of one product has no loop.
std::map<std::string, Expr> ZeroPositions(const RDom& reduction) {
  std::map<std::string, Expr> zeros;
  for (int i = 0; i < reduction.dimensions(); ++i) zeros[reduction[i].name()] = Expr(0);
  return zeros;
}

bool FitsProduct(const Stage& host, const ProductSpec& spec) {
  const size_t count = host.loops.size();
  const std::optional<size_t> columns_at = host.LoopsOf(spec.columns);
  const std::optional<size_t> rows_at = host.LoopsOf(spec.columns * spec.rows);
  if (!columns_at || !rows_at) return false;
  if (spec.columns > 1 && count - *columns_at != 1) return false;
  return spec.rows == 1 || *columns_at - *rows_at == 1;
}

void ScheduleProduct(Emitter& emitter, Stage& host, const ProductSpec& spec, Accumulator accumulator, const ProductTile& tile) {
  const int lanes = emitter.VectorLanes(spec.type);
  const size_t rows_at = *host.LoopsOf(spec.columns * spec.rows);
  Func& func = host.func;
  Var column_tile("column_tile"), row_tile("row_tile"), column("column_inside"), row("row_inside");
  std::vector<Halide::VarOrRVar> order;
  const bool has_columns = spec.columns > 1;
  const bool has_rows = spec.rows > 1;
  if (has_columns) {
    const bool whole = spec.columns % tile.columns == 0;
    const TailStrategy tail = whole                                                ? TailStrategy::Auto
                              : spec.packed_columns || spec.columns < tile.columns ? TailStrategy::GuardWithIf
                                                                                   : TailStrategy::ShiftInwards;
    func.split(host.vars.back(), column_tile, column, static_cast<int>(tile.columns), tail);
    func.vectorize(column, static_cast<int>(std::min<int64_t>(lanes, tile.columns)));
    order.emplace_back(column);
  }
  if (has_rows) {
    const TailStrategy tail = spec.rows % tile.rows == 0 ? TailStrategy::Auto : TailStrategy::ShiftInwards;
    func.split(host.vars[rows_at], row_tile, row, static_cast<int>(tile.rows), tail);
    order.emplace_back(row);
  }
  std::vector<Var> tiles;
  if (has_columns) tiles.push_back(column_tile);
  if (has_rows) tiles.insert(spec.columns_outermost ? tiles.begin() : tiles.end(), row_tile);
  for (const Var& loop : tiles) order.emplace_back(loop);
  for (size_t i = rows_at; i-- > 0;) order.emplace_back(host.vars[i]);
  if (tiles.empty()) tiles.push_back(host.vars.back());
  if (order.size() > 1) func.reorder(order);
  accumulator.ComputeAt(func, tiles.front(), tile, lanes);

  const double cost = static_cast<double>(spec.outer * spec.rows * spec.columns * spec.Depth()) / 30;  // multiply-adds a nanosecond
  constexpr double kWorthThreads = 8000;
  if (!emitter.Parallel() || cost < kWorthThreads) return;
  // Threads take the outermost loops, as many as give each of them several tiles.
  std::vector<std::pair<Var, int64_t>> candidates;
  for (size_t i = 0; i < rows_at; ++i) candidates.emplace_back(host.vars[i], host.loops[i]->extent);
  for (size_t i = tiles.size(); i-- > 0;) {
    const bool is_row = has_rows && tiles[i].name() == row_tile.name();
    const int64_t extent = is_row ? (spec.rows + tile.rows - 1) / tile.rows : (spec.columns + tile.columns - 1) / tile.columns;
    if (i > 0 || tiles.size() == 1) candidates.emplace_back(tiles[i], extent);
  }
  if (tiles.size() > 1 && candidates.back().second < int64_t{2} * emitter.options().threads && candidates.size() == 1) {
    func.parallel(tiles.front());
    return;
  }
  if (candidates.empty()) return;
  Var fused = candidates[0].first;
  int64_t extent = candidates[0].second;
  for (size_t i = 1; i < candidates.size() && extent < int64_t{emitter.options().tasks} * emitter.options().threads; ++i) {
    if (candidates[i].first.name() == tiles.front().name()) break;
    Var both("outer");
    func.fuse(candidates[i].first, fused, both);
    fused = both;
    extent *= candidates[i].second;
  }
  func.parallel(fused);
}

}  // namespace

Emitter::Anchor MakeProduct(Emitter& emitter, const ProductSpec& spec) {
  const ProductTile tile = PickTile(spec, emitter.VectorLanes(spec.type));
  Accumulator accumulator;
  Halide::Region ranges;
  for (int64_t extent : spec.reduction) ranges.emplace_back(0, static_cast<int>(extent));
  accumulator.reduction = RDom(ranges);
  const Expr left = spec.left(accumulator.outer, accumulator.row, accumulator.column, accumulator.reduction);
  const Expr right = spec.right(accumulator.outer, accumulator.row, accumulator.column, accumulator.reduction);
  if (spec.Depth() == 1) {
    accumulator.func(accumulator.column, accumulator.row, accumulator.outer) =
        Halide::Internal::substitute(ZeroPositions(accumulator.reduction), left * right);
  } else {
    accumulator.func(accumulator.column, accumulator.row, accumulator.outer) = Halide::Internal::make_zero(spec.type);
    accumulator.func(accumulator.column, accumulator.row, accumulator.outer) += left * right;
  }
  Emitter::Anchor anchor;
  anchor.cuts = {spec.columns, spec.columns * spec.rows};
  anchor.result = emitter.MakeStage(
      "products", {spec.outer, spec.rows, spec.columns},
      [&](const Index& index) { return accumulator.func(ToExpr(index[2]), ToExpr(index[1]), ToExpr(index[0])); }, anchor.cuts);
  anchor.fits = [spec](const Stage& host) { return FitsProduct(host, spec); };
  anchor.schedule = [&emitter, spec, accumulator, tile](Stage& host) { ScheduleProduct(emitter, host, spec, accumulator, tile); };
  return anchor;
}

}  // namespace collage::native
