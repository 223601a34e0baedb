#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "collage/backend/xsmm/attention.h"
#include "collage/backend/xsmm/kernel.h"
#include "collage/backend/xsmm/operands.h"
#include "collage/backend/xsmm/packing.h"
#include "collage/backend/xsmm/program.h"
#include "collage/backend/xsmm/softmax_loops.h"
#include "collage/backend/xsmm/tile_loops.h"

namespace collage::xsmm {
namespace {

/// The right matrix of a product, for each batch.
struct RightOperand {
  Source source;
  std::vector<int64_t> batches;
  bool transposed = false;
  int64_t stride = 0;  ///< from row to row as it is stored
  int64_t depth = 0;
  std::vector<std::pair<int64_t, int64_t>> panels;  ///< first column and how many
  std::array<std::vector<MicroKernel>, 2> kernels;  ///< for fewer and for more rows, by panel
  [[nodiscard]] int64_t Columns() const { return panels.back().first + panels.back().second; }
};

class AttentionProgram final : public Program {
 public:
  static Result<std::shared_ptr<const Program>> Make(const Attention& attention, const InstructionSet& instructions, int64_t rows,
                                                     int threads) {
    auto program = std::make_shared<AttentionProgram>();
    program->loops_ = SoftmaxLoopsFor(instructions.lanes);
    program->attention_ = attention;
    program->attention_.sequence = nullptr;  // it does not live as long
    const MatrixProduct& scores = attention.scores;
    const MatrixProduct& mixture = attention.mixture;
    program->blocks_ = CutEvenly(scores.rows, std::max<int64_t>(rows, 1), 1);
    Chain chain;
    chain.sequence = attention.sequence;
    program->queries_ = program->operands_.Of(chain, attention.queries.value, {});
    const auto bind = [&](RightOperand& operand, const Attention::Matrices& matrices, const MatrixProduct& product) {
      operand.source = program->operands_.Of(chain, matrices.value, {});
      operand.batches = matrices.batches;
      operand.transposed = matrices.column_stride != 1;
      operand.stride = operand.transposed ? matrices.column_stride : matrices.row_stride;
      operand.depth = product.depth;
      operand.panels = CutEvenly(product.columns, instructions.panel_columns, instructions.lanes);
    };
    bind(program->keys_, attention.keys, scores);
    bind(program->values_, attention.values, mixture);
    for (const Attention::Step& step : attention.steps) program->masks_.push_back(program->MaskOf(step, chain));
    program->batches_ = static_cast<int64_t>(attention.queries.batches.size());
    // An odd number of lines: rows that lie a power of two apart would share few sets of a cache.
    constexpr int64_t kLine = 64 / sizeof(float);
    program->score_row_ = static_cast<int64_t>(WholeLines(scores.columns));
    if (program->score_row_ / kLine % 2 == 0) program->score_row_ += kLine;
    COLLAGE_TRY_STATUS(program->MakeKernels(program->keys_, attention.queries.row_stride, program->score_row_));
    COLLAGE_TRY_STATUS(program->MakeKernels(program->values_, program->score_row_, mixture.columns));
    const double products = static_cast<double>(scores.depth + mixture.columns) * static_cast<double>(scores.columns * scores.rows);
    const auto items = program->batches_ * static_cast<int64_t>(program->blocks_.size());
    program->pieces_ = PiecesWorth(2 * static_cast<double>(program->batches_) * products, static_cast<size_t>(items), threads);
    return program;
  }

  [[nodiscard]] size_t pieces() const override { return pieces_; }
  [[nodiscard]] size_t scratch_bytes() const override {
    return (ScoresSize() + MixtureSize() + ReciprocalsSize() + TransposedSize(keys_) + TransposedSize(values_)) * sizeof(float);
  }

  void Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const override {
    const Memory memory{inputs, result, scratch, scratch + ScoresSize(), scratch + ScoresSize() + MixtureSize()};
    float* keys = memory.reciprocals + ReciprocalsSize();
    float* values = keys + TransposedSize(keys_);
    const auto blocks = static_cast<int64_t>(blocks_.size());
    const auto pieces = static_cast<int64_t>(pieces_);
    const int64_t end = batches_ * blocks * (static_cast<int64_t>(piece) + 1) / pieces;
    int64_t held = -1;  // whose matrices are transposed
    for (int64_t item = batches_ * blocks * static_cast<int64_t>(piece) / pieces; item < end; ++item) {
      const int64_t batch = item / blocks;
      if (batch != held) {
        Transpose(keys_, batch, inputs, keys);
        Transpose(values_, batch, inputs, values);
        held = batch;
      }
      RunBlock(batch, blocks_[static_cast<size_t>(item % blocks)], keys, values, memory);
    }
  }

 private:
  struct Memory {
    std::span<const void* const> inputs;
    float* result;
    float* scores;  // of a thread, as all that follows
    float* mixture;
    float* reciprocals;  // of the sums
  };

  // A constant is read where it is: all layers of a model may have the same mask.
  Source MaskOf(const Attention::Step& step, const Chain& chain) {
    if (step.kind != Attention::Step::Kind::kAdd && step.kind != Attention::Step::Kind::kSelect) return {};
    const std::optional<Tensor>& constant = chain.sequence->values[step.value].constant;
    if (!constant) return operands_.Of(chain, step.value, {});
    constants_.push_back(*constant);
    return {reinterpret_cast<const float*>(constant->Bytes()), 0};
  }

  [[nodiscard]] size_t ScoresSize() const { return WholeLines(MostRows() * score_row_); }
  [[nodiscard]] size_t MixtureSize() const { return WholeLines(MostRows() * attention_.mixture.columns); }
  [[nodiscard]] size_t ReciprocalsSize() const { return WholeLines(MostRows()); }
  static size_t TransposedSize(const RightOperand& operand) {
    return operand.transposed ? WholeLines(operand.Columns() * operand.depth) : 0;
  }
  // Blocks differ by one row at most, and the larger ones come first.
  [[nodiscard]] int64_t MostRows() const { return blocks_.front().second; }
  [[nodiscard]] size_t KindOf(int64_t rows) const { return rows == MostRows() ? 0 : 1; }

  Status MakeKernels(RightOperand& operand, int64_t row_stride, int64_t result_stride) const {
    for (const int64_t fewer : {0, 1}) {
      const int64_t rows = MostRows() - fewer;
      if (rows == 0) continue;
      for (const auto& [first, count] : operand.panels) {
        operand.kernels[static_cast<size_t>(fewer)].push_back(COLLAGE_TRY(
            MicroKernel::Make({rows, count, operand.depth, row_stride, operand.transposed ? count : operand.stride, result_stride})));
      }
    }
    return {};
  }

  static void Transpose(const RightOperand& operand, int64_t batch, std::span<const void* const> inputs, float* to) {
    if (!operand.transposed) return;
    const float* from = operand.source.In(inputs) + operand.batches[static_cast<size_t>(batch)];
    for (const auto& [first, count] : operand.panels)
      TransposePanel(from + first * operand.stride, operand.stride, count, operand.depth, to + first * operand.depth);
  }

  static void Multiply(const RightOperand& operand, size_t kind, int64_t batch, const float* rows, const float* transposed,
                       std::span<const void* const> inputs, float* result) {
    const float* stored = operand.source.In(inputs) + operand.batches[static_cast<size_t>(batch)];
    for (size_t p = 0; p < operand.panels.size(); ++p) {
      const int64_t first = operand.panels[p].first;
      operand.kernels[kind][p](rows, operand.transposed ? transposed + first * operand.depth : stored + first, result + first);
    }
  }

  void RunBlock(int64_t batch, const std::pair<int64_t, int64_t>& block, const float* keys, const float* values,
                const Memory& memory) const {
    const auto& [first, rows] = block;
    const MatrixProduct& scores = attention_.scores;
    const int64_t columns = attention_.mixture.columns;
    const size_t kind = KindOf(rows);
    const Attention::Matrices& asking = attention_.queries;
    const float* queries = queries_.In(memory.inputs) + asking.batches[static_cast<size_t>(batch)] + first * asking.row_stride;
    Multiply(keys_, kind, batch, queries, keys, memory.inputs, memory.scores);
    for (int64_t r = 0; r < rows; ++r) {
      float* row = memory.scores + r * score_row_;
      for (size_t s = 0; s < attention_.steps.size(); ++s) TakeStep(attention_.steps[s], masks_[s], batch, first + r, memory.inputs, row);
      memory.reciprocals[r] = 1 / loops_.exponentials(row, scores.columns);
    }
    Multiply(values_, kind, batch, memory.scores, values, memory.inputs, memory.mixture);
    const int64_t heads = attention_.heads_side_by_side;
    const int64_t place = (batch / heads * scores.rows + first) * heads + batch % heads;
    multiply_(
        {rows, columns, {memory.mixture, columns}, {memory.reciprocals, 1, true}, {}, memory.result + place * columns, heads * columns});
  }

  void TakeStep(const Attention::Step& step, const Source& mask, int64_t batch, int64_t row_number, std::span<const void* const> inputs,
                float* row) const {
    using Kind = Attention::Step::Kind;
    const int64_t count = attention_.scores.columns;
    const auto take = [&](TileLoop loop, const TileView& other) { loop({1, count, {row}, other, {}, row}); };
    if (step.kind == Kind::kScale) return take(multiply_, {&step.number, 0, true});
    if (step.kind == Kind::kShift) return take(add_, {&step.number, 0, true});
    const int64_t place = step.batches[static_cast<size_t>(batch)] + row_number * step.row_stride;
    if (step.kind == Kind::kAdd) return take(add_, {mask.In(inputs) + place, 0, step.is_one_a_row});
    const uint8_t* choice = reinterpret_cast<const uint8_t*>(mask.In(inputs)) + place;
    if (!step.is_one_a_row) return loops_.select(row, count, choice, step.replaced, step.number);
    if ((*choice != 0) == step.replaced) std::fill(row, row + count, step.number);
  }

  Attention attention_;
  SoftmaxLoops loops_{};
  TileLoop multiply_ = FindTileLoop("multiply", 2);
  TileLoop add_ = FindTileLoop("add", 2);
  Operands operands_;
  Source queries_;
  RightOperand keys_, values_;
  std::vector<Tensor> constants_;                    // among the masks
  std::vector<Source> masks_;                        // of the steps
  std::vector<std::pair<int64_t, int64_t>> blocks_;  // of rows: first and how many
  int64_t batches_ = 0;
  int64_t score_row_ = 0;  // elements from row to row of scores
  size_t pieces_ = 1;
};

}  // namespace

Result<std::unique_ptr<Kernel>> MakeAttentionKernel(const Attention& attention, int64_t rows, int threads) {
  const InstructionSet instructions = COLLAGE_TRY(DetectInstructionSet());
  const OpSequence& sequence = *attention.sequence;
  std::vector<Port> inputs;
  for (const size_t value : sequence.parameters) inputs.push_back({sequence.values[value].type, {}});
  return MakeProgramKernel(std::move(inputs), {sequence.values[sequence.results[0]].type, {}}, std::nullopt,
                           COLLAGE_TRY(AttentionProgram::Make(attention, instructions, rows, threads)));
}

}  // namespace collage::xsmm
