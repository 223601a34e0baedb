#include "collage/backend/xsmm/strassen.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <string>

namespace collage::xsmm {
namespace {

constexpr int64_t kProducts = 7;        // instead of eight
constexpr size_t kSums = 4;             // of quarters of the left operand
constexpr size_t kStored = 4;           // products that are summed up, one for each quarter of the result: 12, 11, 22, 21
constexpr size_t kMostRowsOfGroup = 8;  // of 8 rows and more, beside the widest panel

int64_t Ceiling(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::vector<std::pair<int64_t, int64_t>> CutPanelPairs(int64_t columns, const InstructionSet& instructions) {
  return CutEvenly(columns, 2 * instructions.panel_columns, 2 * instructions.lanes);
}

}  // namespace

bool IsStrassenWorthwhile(const StrassenProblem& problem, const InstructionSet& instructions) {
  if (problem.depth % 2 != 0 || problem.columns % 2 != 0) return false;
  // While an element comes from memory so much is multiplied and added: 400 GFLOP/s beside 28 GB/s on two cores of Sapphire Rapids, 508
  // beside some 60 on Zen 5. Seven quarters of the weights are read, which goes on beside the products where those take as long.
  constexpr double kReading = 28;
  if (kReading * kProducts / 4 > static_cast<double>(problem.rows)) return false;
  // Counted in vectors: multiplications with additions, loads and stores each as one.
  const auto depth = static_cast<double>(problem.depth);
  const auto vectors = static_cast<double>(Ceiling(problem.columns, instructions.lanes));
  const double usual = static_cast<double>(problem.rows) * depth * vectors;
  double half_vectors = 0;
  for (const auto& [first, count] : CutPanelPairs(problem.columns, instructions))
    half_vectors += static_cast<double>(Ceiling(count / 2, instructions.lanes));
  constexpr double kForSums = 8;       // four quarters are read, four sums are written
  constexpr double kForProducts = 15;  // two passes read five and write three, four products are added to the last, three more are written
  const double of_row =
      kProducts * depth / 2 * half_vectors + kForSums * depth / 2 / static_cast<double>(instructions.lanes) + kForProducts * half_vectors;
  return static_cast<double>(Ceiling(problem.rows, 2)) * of_row < usual;
}

Form StrassenForm(std::string name, Layout data, Layout result, const StrassenProblem& problem, const InstructionSet& instructions) {
  const auto make = [problem, instructions](const Chain& chain, const Form& form, int64_t rows, int threads) {
    return StrassenProgram::Make(chain, form, problem, instructions, rows, threads);
  };
  return {std::move(name), std::move(data), std::move(result), {"tile_rows", {static_cast<int>(kTileRows), 12, 32}}, make};
}

Result<std::shared_ptr<const Program>> StrassenProgram::Make(const Chain& chain, const Form& form, const StrassenProblem& problem,
                                                             const InstructionSet& instructions, int64_t tile_rows, int threads) {
  auto program = std::make_shared<StrassenProgram>();
  program->problem_ = problem;
  program->loops_ = StrassenLoopsFor(instructions.lanes);
  const double operations = 2.0 * static_cast<double>(problem.rows) * static_cast<double>(problem.depth * problem.columns);
  const int64_t parts = Ceiling(problem.rows, 2) * Ceiling(problem.columns, 2 * instructions.lanes);
  program->CutShares(instructions, tile_rows, static_cast<int64_t>(PiecesWorth(operations, static_cast<size_t>(parts), threads)));
  program->data_ = program->operands_.Of(chain, chain.base->inputs[0], form.data);
  COLLAGE_TRY_STATUS(program->PackWeights(chain.sequence->values[chain.base->inputs[1]].constant->Data<float>()));
  program->tail_ = BoundTail(chain, chain.tail, form.result, program->operands_);
  COLLAGE_TRY_STATUS(program->MakeAllKernels());
  program->SetScratch();
  return program;
}

// Tiles are large and few, so each thread has its own rows and columns, which are cut into tiles of its own.
void StrassenProgram::CutShares(const InstructionSet& instructions, int64_t tile_rows, int64_t threads) {
  const int64_t unit = 2 * instructions.lanes;
  const auto rows_by = [&](int64_t shares) { return CutEvenly(problem_.rows, Ceiling(Ceiling(problem_.rows, 2), shares) * 2, 2); };
  const auto columns_by = [&](int64_t shares) {
    return CutEvenly(problem_.columns, Ceiling(Ceiling(problem_.columns, unit), shares) * unit, unit);
  };
  // The work of the thread that has most, and what it reads: rows once, and seven quarters of the weights.
  const auto cost_of = [&](int64_t row_shares) {
    const int64_t rows = rows_by(row_shares).front().second;
    const int64_t columns = columns_by(threads / row_shares).front().second;
    return std::pair(Ceiling(rows, 2) * Ceiling(columns, unit), 4 * rows + kProducts * columns);
  };
  int64_t best = 1;
  for (int64_t row_shares = 2; row_shares <= threads; ++row_shares) {
    if (threads % row_shares == 0 && cost_of(row_shares) < cost_of(best)) best = row_shares;
  }
  const auto cut = [](const std::vector<std::pair<int64_t, int64_t>>& shares, int64_t most, int64_t of, std::vector<Cut>& cuts) {
    std::vector<Share> cut_shares;
    for (const auto& [begin, size] : shares) {
      const size_t before = cuts.size();
      for (const auto& [first, count] : CutEvenly(size, most, of)) cuts.push_back({begin + first, count});
      cut_shares.push_back({before, cuts.size()});
    }
    return cut_shares;
  };
  row_shares_ = cut(rows_by(best), 2 * tile_rows, 2, rows_);
  column_shares_ = cut(columns_by(threads / best), 2 * instructions.panel_columns, unit, columns_);
  // Panels are read again for each group of rows, sums of rows for each panel: with as many rows as a panel has columns, about as often.
  rows_of_group_ = std::min(static_cast<size_t>(Ceiling(instructions.panel_columns, tile_rows)), kMostRowsOfGroup);
}

// In the order of the products.
Status StrassenProgram::PackWeights(const float* weights) {
  const int64_t half_depth = problem_.depth / 2;
  const int64_t down = half_depth * problem_.depth_stride;
  bool is_finite = true;
  for (const Cut& columns : columns_) {
    const int64_t panel = PanelOf(columns);
    const int64_t across = columns.lower() * problem_.column_stride;
    float* packed = operands_.Allocate(kProducts * panel);
    float* rest = operands_.Allocate(panel);
    weights_.push_back({packed, rest});
    for (int64_t d = 0; d < half_depth; ++d) {
      for (int64_t c = 0; c < columns.lower(); ++c, ++packed, ++rest) {
        const float* at = weights + d * problem_.depth_stride + (columns.first + c) * problem_.column_stride;
        const double b11 = at[0];
        const double b12 = at[across];
        const double b21 = at[down];
        const double b22 = at[down + across];
        const std::array<double, kProducts> sums = {b22 - b12 + b11, b11, b12 - b11, b21, b22 - b12, b22, b21 - b22 + b12 - b11};
        for (int64_t product = 0; product < kProducts; ++product) {
          packed[product * panel] = static_cast<float>(sums[static_cast<size_t>(product)]);
          is_finite = is_finite && std::isfinite(packed[product * panel]);
        }
        *rest = at[across];
      }
    }
  }
  return is_finite ? Status() : Fail("libxsmm: sums of the weights, which Strassen's algorithm multiplies, are not finite");
}

Result<StrassenProgram::Kernels> StrassenProgram::MakeKernels(const Cut& rows, int64_t panel) const {
  const auto make = [&](int64_t count, int64_t row_stride, bool adds) {
    MicroShape shape{count, panel, problem_.depth / 2, row_stride, panel, panel};
    shape.adds = adds;
    shape.fetches = true;
    return MicroKernel::Make(shape);
  };
  return Kernels{COLLAGE_TRY(make(rows.upper(), sum_row_, false)),       COLLAGE_TRY(make(rows.upper(), sum_row_, true)),
                 COLLAGE_TRY(make(rows.upper(), problem_.depth, false)), COLLAGE_TRY(make(rows.upper(), problem_.depth, true)),
                 COLLAGE_TRY(make(rows.lower(), problem_.depth, false)), COLLAGE_TRY(make(rows.lower(), problem_.depth, true))};
}

Status StrassenProgram::MakeAllKernels() {
  // An odd number of cache lines, so that rows do not share few sets of the cache.
  constexpr int64_t kLine = 64 / sizeof(float);
  sum_row_ = Ceiling(problem_.depth / 2, kLine) * kLine;
  if (sum_row_ / kLine % 2 == 0) sum_row_ += kLine;
  std::map<std::pair<int64_t, int64_t>, size_t> known;
  for (const Cut& rows : rows_) {
    std::vector<size_t>& kernels = kernel_of_.emplace_back();
    for (const Cut& columns : columns_) {
      const auto [at, is_new] = known.try_emplace({rows.count, columns.lower()}, kernels_.size());
      kernels.push_back(at->second);
      if (is_new) kernels_.push_back(COLLAGE_TRY(MakeKernels(rows, columns.lower())));
    }
  }
  return {};
}

void StrassenProgram::SetScratch() {
  int64_t rows = 0;
  for (const Cut& cut : rows_) rows = std::max(rows, cut.upper());
  int64_t panel = 0;
  for (const Cut& cut : columns_) panel = std::max(panel, cut.lower());
  sum_stride_ = rows * sum_row_;
  slot_ = WholeLines(rows * panel);
  product_ = std::max<size_t>(tail_.slots(), 1) * slot_;
  scratch_ = kStored * product_ + rows_of_group_ * kSums * static_cast<size_t>(sum_stride_);
}

// Row cuts in groups, each by all column cuts.
void StrassenProgram::Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const {
  const Memory memory{inputs, data_.In(inputs), result, scratch};
  float* const sums = scratch + kStored * product_;
  const size_t stride = kSums * static_cast<size_t>(sum_stride_);
  const Share& rows = row_shares_[piece / column_shares_.size()];
  const Share& columns = column_shares_[piece % column_shares_.size()];
  std::array<const float*, kMostRowsOfGroup> sums_of{};
  for (size_t group = rows.begin; group < rows.end; group += rows_of_group_) {
    const size_t count = std::min(rows_of_group_, rows.end - group);
    for (size_t r = 0; r < count; ++r) sums_of[r] = SumRows(rows_[group + r], memory, sums + r * stride) ? sums + r * stride : nullptr;
    for (size_t c = columns.begin; c < columns.end; ++c) {
      for (size_t r = 0; r < count; ++r) Multiply({group + r, c, sums_of[r]}, memory);
    }
  }
}

bool StrassenProgram::SumRows(const Cut& rows, const Memory& memory, float* sums) const {
  const float* upper = RowsOf(memory, rows);
  return loops_.sum_rows({upper, upper + rows.upper() * problem_.depth, problem_.depth, rows.upper(), rows.lower(), problem_.depth / 2,
                          sums, sum_row_, sum_stride_});
}

void StrassenProgram::Multiply(const Tile& tile, const Memory& memory) const {
  const Cut& rows = rows_[tile.row_cut];
  const Cut& columns = columns_[tile.column_cut];
  tail_.Prefetch(TileOf(rows, columns), memory.inputs);
  if (tile.sums) {
    MultiplyByQuarters(tile, memory);
  } else {
    MultiplyAsUsual(tile, memory);
  }
  const Cut above{rows.first, rows.upper()};
  const Cut below{rows.first + rows.upper(), rows.lower()};
  const Cut left{columns.first, columns.lower()};
  const Cut right{columns.first + columns.lower(), columns.lower()};
  Store(above, right, memory.scratch, memory);
  Store(above, left, memory.scratch + product_, memory);
  Store(below, right, memory.scratch + 2 * product_, memory);
  Store(below, left, memory.scratch + 3 * product_, memory);
}

void StrassenProgram::MultiplyByQuarters(const Tile& tile, const Memory& memory) const {
  const Cut& rows = rows_[tile.row_cut];
  const Cut& columns = columns_[tile.column_cut];
  const Kernels& kernels = kernels_[kernel_of_[tile.row_cut][tile.column_cut]];
  const int64_t elements = rows.upper() * columns.lower();
  const float* const a11 = RowsOf(memory, rows);
  const float* const a12 = a11 + problem_.depth / 2;
  const float* const a22 = a12 + rows.upper() * problem_.depth;
  float* const c12 = memory.scratch;
  float* const c11 = c12 + product_;
  float* const c22 = c11 + product_;
  float* const c21 = c22 + product_;
  const float* weights = weights_[tile.column_cut].products;
  const auto multiply = [&, panel = PanelOf(columns)](const MicroKernel& kernel, const float* left_operand, float* product) {
    kernel(left_operand, weights, product, weights + panel);
    weights += panel;
  };
  multiply(kernels.set_of_sum, tile.sums, c12);
  multiply(kernels.set_of_data, a11, c11);
  multiply(kernels.set_of_sum, tile.sums + sum_stride_, c22);
  loops_.sum_products(c12, c11, c22, c21, elements);
  multiply(kernels.add_of_data, a12, c11);
  multiply(kernels.add_of_sum, tile.sums + 2 * sum_stride_, c21);
  loops_.add(c22, c21, elements);
  multiply(kernels.add_of_sum, tile.sums + 3 * sum_stride_, c12);
  multiply(kernels.add_of_lower_data, a22, c21);
}

void StrassenProgram::MultiplyAsUsual(const Tile& tile, const Memory& memory) const {
  const Cut& rows = rows_[tile.row_cut];
  const Kernels& kernels = kernels_[kernel_of_[tile.row_cut][tile.column_cut]];
  const int64_t panel = PanelOf(columns_[tile.column_cut]);
  const auto& [products, b12] = weights_[tile.column_cut];
  const float* const b11 = products + panel;
  const float* const b21 = products + 3 * panel;
  const float* const b22 = products + 5 * panel;
  float* product = memory.scratch;
  for (const bool is_lower : {false, true}) {
    const float* const left = RowsOf(memory, rows) + (is_lower ? rows.upper() * problem_.depth : 0);
    const float* const right = left + problem_.depth / 2;
    const MicroKernel& sets = is_lower ? kernels.set_of_lower_data : kernels.set_of_data;
    const MicroKernel& adds = is_lower ? kernels.add_of_lower_data : kernels.add_of_data;
    for (const auto& [of_left, of_right] : {std::pair(b12, b22), std::pair(b11, b21)}) {
      sets(left, of_left, product, of_right);
      adds(right, of_right, product, of_right);
      product += product_;
    }
  }
}

TailTile StrassenProgram::TileOf(const Cut& rows, const Cut& columns) const {
  return {rows.count, columns.count, rows.first * problem_.columns + columns.first, problem_.columns, columns.first};
}

void StrassenProgram::Store(const Cut& rows, const Cut& columns, float* product, const Memory& memory) const {
  const TailTile tile = TileOf(rows, columns);
  if (!tail_.IsEmpty()) {
    tail_.Run(tile, memory.inputs, memory.result, product, slot_);
    return;
  }
  for (int64_t row = 0; row < rows.count; ++row) {
    std::memcpy(memory.result + tile.result + row * tile.result_stride, product + row * columns.count,
                static_cast<size_t>(columns.count) * sizeof(float));
  }
}

}  // namespace collage::xsmm
