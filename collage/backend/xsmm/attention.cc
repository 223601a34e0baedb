#include "collage/backend/xsmm/attention.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "collage/backend/batch_offsets.h"
#include "collage/backend/written_out_activation.h"
#include "collage/backend/xsmm/kernel.h"
#include "collage/backend/xsmm/operands.h"
#include "collage/backend/xsmm/packing.h"
#include "collage/backend/xsmm/program.h"
#include "collage/backend/xsmm/softmax_loops.h"

namespace collage::xsmm {
namespace {

using Step = OpSequence::Step;

bool IsProduct(const std::string& op) { return op == "nn.matmul" || op == "nn.batch_matmul"; }

bool IsProduct(const Expr& call) { return IsProduct(CalledOp(call)->name); }

Result<MatrixProduct> ReadProduct(const OpSequence& sequence, const Step& step) {
  const TensorType& a = sequence.values[step.inputs[0]].type;
  const TensorType& b = sequence.values[step.inputs[1]].type;
  MatrixProduct product =
      COLLAGE_TRY(step.op->name == "nn.matmul" ? ReadMatmul(a, b, step.attributes) : ReadBatchMatmul(a, b, step.attributes));
  if (a.shape.size() < 2 || b.shape.size() < 2) return Fail("libxsmm: matrices are wanted");
  if (product.transpose_a) return Fail("libxsmm: the left matrix is transposed");
  return product;
}

/// Whether heads that are batches become parts of one row: [..., heads, rows, columns] as [..., rows, heads, columns].
bool PutsHeadsSideBySide(const std::vector<int64_t>& axes) {
  const size_t rank = axes.size();
  if (rank < 3) return false;
  for (size_t i = 0; i < rank; ++i) {
    const size_t from = i == rank - 3 ? rank - 2 : i == rank - 2 ? rank - 3 : i;
    if (axes[i] != static_cast<int64_t>(from) && axes[i] + static_cast<int64_t>(rank) != static_cast<int64_t>(from)) return false;
  }
  return true;
}

/// Of a function: two products, what lies between them, and perhaps a transpose.
class Parser {
 public:
  explicit Parser(const OpSequence& sequence) : sequence_(sequence) { attention_.sequence = &sequence; }

  Result<Attention> Parse() {
    const std::vector<Step>& steps = sequence_.steps;
    size_t next = 0;
    if (steps.empty() || !IsProduct(steps[0].op->name)) return Fail("libxsmm: attention begins with a product");
    attention_.scores = COLLAGE_TRY(ReadProduct(sequence_, steps[0]));
    attention_.queries = steps[0].inputs[0];
    attention_.keys = steps[0].inputs[1];
    size_t scores = steps[0].outputs[0];
    for (next = 1; next < steps.size() && steps[next].op->name != "nn.softmax"; ++next) {
      attention_.steps.push_back(COLLAGE_TRY(StepOf(steps[next], scores)));
      scores = steps[next].outputs[0];
    }
    if (next + 1 >= steps.size()) return Fail("libxsmm: attention has a softmax and a product behind it");
    const Step& softmax = steps[next];
    const auto rank = static_cast<int64_t>(ShapeOf(scores).size());
    const int64_t axis = COLLAGE_TRY(softmax.attributes.Int("axis", -1));
    if (softmax.inputs[0] != scores || (axis != -1 && axis != rank - 1))
      return Fail("libxsmm: the softmax is not one of each row of scores");
    const Step& product = steps[++next];
    if (!IsProduct(product.op->name) || product.inputs[0] != softmax.outputs[0] || product.inputs[1] == softmax.outputs[0])
      return Fail("libxsmm: behind the softmax comes no product with values");
    attention_.mixture = COLLAGE_TRY(ReadProduct(sequence_, product));
    attention_.values = product.inputs[1];
    size_t result = product.outputs[0];
    if (++next < steps.size()) {
      COLLAGE_TRY_STATUS(TakeTranspose(steps[next], result));
      result = steps[next++].outputs[0];
    }
    if (next != steps.size() || sequence_.results != std::vector<size_t>{result})
      return Fail("libxsmm: attention ends with a product or a transpose of it");
    for (const size_t value : {attention_.queries, attention_.keys, attention_.values})
      COLLAGE_TRY_STATUS(CheckRead(value, DType::kFloat32));
    if (sequence_.values[result].type.ElementCount() == 0) return Fail("libxsmm: a tensor has no elements");
    if (attention_.mixture.batch != attention_.scores.batch) return Fail("libxsmm: the values have batches that the scores have not");
    if (attention_.scores.columns == 0) return Fail("libxsmm: there are no keys");
    return std::move(attention_);
  }

 private:
  [[nodiscard]] const Shape& ShapeOf(size_t value) const { return sequence_.values[value].type.shape; }

  // What is read from memory is an input or a constant: scores never get there.
  [[nodiscard]] Status CheckRead(size_t value, DType dtype) const {
    const TensorType& type = sequence_.values[value].type;
    if (type.dtype != dtype)
      return Fail("libxsmm: in attention a tensor of " + std::string(Name(type.dtype)) + " stands for one of " + std::string(Name(dtype)));
    const auto makes = [&](const Step& step) { return std::find(step.outputs.begin(), step.outputs.end(), value) != step.outputs.end(); };
    if (std::any_of(sequence_.steps.begin(), sequence_.steps.end(), makes)) return Fail("libxsmm: attention's scores are read elsewhere");
    return {};
  }

  Status TakeTranspose(const Step& step, size_t result) {
    if (step.op->name != "transpose" || step.inputs[0] != result) return Fail("libxsmm: no transpose follows attention");
    std::vector<int64_t> axes = COLLAGE_TRY(step.attributes.Ints("axes", {}));
    const Shape& shape = ShapeOf(result);
    for (size_t i = 0; axes.size() < shape.size(); ++i) axes.push_back(static_cast<int64_t>(shape.size() - 1 - i));
    if (!PutsHeadsSideBySide(axes)) return Fail("libxsmm: a transpose behind attention does not put heads side by side");
    attention_.heads_side_by_side = shape[shape.size() - 3];
    return {};
  }

  Result<Attention::Step> StepOf(const Step& step, size_t scores) {
    using Kind = Attention::Step::Kind;
    const std::string& op = step.op->name;
    if (step.outputs.size() != 1 || ShapeOf(step.outputs[0]) != ShapeOf(scores))
      return Fail("libxsmm: " + op + " changes the shape of scores");
    if (op == "where") return Choice(step, scores);
    const bool is_first = step.inputs.size() == 2 && step.inputs[0] == scores;
    const bool is_second = step.inputs.size() == 2 && step.inputs[1] == scores;
    if (is_first == is_second) return Fail("libxsmm: scores are scaled, shifted or masked before a softmax, not " + op);
    const size_t other = step.inputs[is_first ? 1 : 0];
    const std::optional<double> number = ScalarOf(sequence_, other);
    Attention::Step taken;
    if (number) {
      taken.number = static_cast<float>(*number);
      taken.kind = op == "add" || op == "subtract" ? Kind::kShift : Kind::kScale;
      if (op == "multiply" || op == "add") return taken;
      if (op == "divide" && is_first && taken.number != 0) {
        taken.number = 1 / taken.number;
        return taken;
      }
      if (op == "subtract" && is_first) {
        taken.number = -taken.number;
        return taken;
      }
    }
    if (op != "add") return Fail("libxsmm: scores are scaled, shifted or masked before a softmax, not " + op);
    taken.kind = Kind::kAdd;
    COLLAGE_TRY_STATUS(SetTensor(taken, other, DType::kFloat32));
    return taken;
  }

  Result<Attention::Step> Choice(const Step& step, size_t scores) {
    Attention::Step taken;
    taken.kind = Attention::Step::Kind::kSelect;
    taken.replaced = step.inputs[2] == scores;
    const size_t other = step.inputs[taken.replaced ? 1 : 2];
    const std::optional<double> number = ScalarOf(sequence_, other);
    if (other == scores || step.inputs[taken.replaced ? 2 : 1] != scores || !number)
      return Fail("libxsmm: of attention's scores some are replaced by one number, or none");
    taken.number = static_cast<float>(*number);
    COLLAGE_TRY_STATUS(SetTensor(taken, step.inputs[0], DType::kBool));
    return taken;
  }

  // What is broadcast to the scores' shape.
  Status SetTensor(Attention::Step& step, size_t value, DType dtype) {
    COLLAGE_TRY_STATUS(CheckRead(value, dtype));
    Shape shape = ShapeOf(value);
    while (shape.size() < 2) shape.insert(shape.begin(), 1);
    const int64_t columns = shape.back();
    const int64_t rows = shape[shape.size() - 2];
    step.value = value;
    step.batches = BatchOffsets(shape, attention_.scores.batch);
    step.row_stride = rows == 1 ? 0 : columns;
    step.is_one_a_row = columns == 1 && attention_.scores.columns > 1;
    return {};
  }

  const OpSequence& sequence_;
  Attention attention_;
};

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
    program->queries_ = program->operands_.Of(chain, attention.queries, {});
    program->query_batches_ = BatchOffsets(chain.ShapeOf(attention.queries), scores.batch);
    const auto bind = [&](RightOperand& operand, size_t value, const MatrixProduct& product) {
      operand.source = program->operands_.Of(chain, value, {});
      operand.batches = BatchOffsets(chain.ShapeOf(value), scores.batch);
      operand.transposed = product.transpose_b;
      operand.stride = product.transpose_b ? product.depth : product.columns;
      operand.depth = product.depth;
      operand.panels = CutEvenly(product.columns, instructions.panel_columns, instructions.lanes);
    };
    bind(program->keys_, attention.keys, scores);
    bind(program->values_, attention.values, mixture);
    for (const Attention::Step& step : attention.steps) program->masks_.push_back(program->MaskOf(step, chain));
    program->batches_ = static_cast<int64_t>(program->query_batches_.size());
    // An odd number of lines: rows that lie a power of two apart would share few sets of a cache.
    constexpr int64_t kLine = 64 / sizeof(float);
    program->score_row_ = static_cast<int64_t>(WholeLines(scores.columns));
    if (program->score_row_ / kLine % 2 == 0) program->score_row_ += kLine;
    COLLAGE_TRY_STATUS(program->MakeKernels(program->keys_, scores.depth, program->score_row_));
    COLLAGE_TRY_STATUS(program->MakeKernels(program->values_, program->score_row_, mixture.columns));
    const double products = static_cast<double>(scores.depth + mixture.columns) * static_cast<double>(scores.columns * scores.rows);
    const auto items = program->batches_ * static_cast<int64_t>(program->blocks_.size());
    program->pieces_ = PiecesWorth(2 * static_cast<double>(program->batches_) * products, static_cast<size_t>(items), threads);
    return program;
  }

  [[nodiscard]] size_t pieces() const override { return pieces_; }
  [[nodiscard]] size_t scratch_bytes() const override {
    return (ScoresSize() + MixtureSize() + SumsSize() + TransposedSize(keys_) + TransposedSize(values_)) * sizeof(float);
  }

  void Run(size_t piece, std::span<const void* const> inputs, float* result, float* scratch) const override {
    const Memory memory{inputs, result, scratch, scratch + ScoresSize(), scratch + ScoresSize() + MixtureSize()};
    float* keys = memory.sums + SumsSize();
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
    float* sums;
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
  [[nodiscard]] size_t SumsSize() const { return WholeLines(MostRows()); }
  static size_t TransposedSize(const RightOperand& operand) {
    return operand.transposed ? WholeLines(operand.Columns() * operand.depth) : 0;
  }
  // Blocks differ by one row at most.
  [[nodiscard]] int64_t MostRows() const {
    return std::max_element(blocks_.begin(), blocks_.end(), [](const auto& a, const auto& b) { return a.second < b.second; })->second;
  }
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
    const float* queries = queries_.In(memory.inputs) + query_batches_[static_cast<size_t>(batch)] + first * scores.depth;
    Multiply(keys_, kind, batch, queries, keys, memory.inputs, memory.scores);
    for (int64_t r = 0; r < rows; ++r) {
      float* row = memory.scores + r * score_row_;
      for (size_t s = 0; s < attention_.steps.size(); ++s) TakeStep(attention_.steps[s], masks_[s], batch, first + r, memory.inputs, row);
      memory.sums[r] = loops_.exponentials(row, scores.columns);
    }
    Multiply(values_, kind, batch, memory.scores, values, memory.inputs, memory.mixture);
    const int64_t heads = attention_.heads_side_by_side;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t place = (batch / heads * scores.rows + first + r) * heads + batch % heads;
      loops_.copy_scaled(memory.mixture + r * columns, columns, 1 / memory.sums[r], memory.result + place * columns);
    }
  }

  void TakeStep(const Attention::Step& step, const Source& mask, int64_t batch, int64_t row_number, std::span<const void* const> inputs,
                float* row) const {
    using Kind = Attention::Step::Kind;
    const int64_t count = attention_.scores.columns;
    // Behind the scores a row has room for whole vectors.
    const auto whole = static_cast<int64_t>(WholeLines(count));
    if (step.kind == Kind::kScale) return loops_.scale(row, whole, step.number);
    if (step.kind == Kind::kShift) return loops_.shift(row, whole, step.number);
    const int64_t place = step.batches[static_cast<size_t>(batch)] + row_number * step.row_stride;
    if (step.kind == Kind::kAdd) {
      const float* addend = mask.In(inputs) + place;
      return step.is_one_a_row ? loops_.shift(row, count, *addend) : loops_.add(row, count, addend);
    }
    const uint8_t* choice = reinterpret_cast<const uint8_t*>(mask.In(inputs)) + place;
    if (!step.is_one_a_row) return loops_.select(row, count, choice, step.replaced, step.number);
    if ((*choice != 0) == step.replaced) std::fill(row, row + count, step.number);
  }

  Attention attention_;
  SoftmaxLoops loops_{};
  Operands operands_;
  Source queries_;
  std::vector<int64_t> query_batches_;
  RightOperand keys_, values_;
  std::vector<Tensor> constants_;                    // among the masks
  std::vector<Source> masks_;                        // of the steps
  std::vector<std::pair<int64_t, int64_t>> blocks_;  // of rows: first and how many
  int64_t batches_ = 0;
  int64_t score_row_ = 0;  // elements from row to row of scores
  size_t pieces_ = 1;
};

}  // namespace

bool MayBeAttention(const OpSequence& sequence) {
  return sequence.steps.size() > 2 && IsProduct(sequence.steps[0].op->name) &&
         std::any_of(sequence.steps.begin(), sequence.steps.end(), [](const Step& step) { return step.op->name == "nn.softmax"; });
}

Result<Attention> ParseAttention(const OpSequence& sequence) { return Parser(sequence).Parse(); }

FusionRule AttentionRule() {
  const auto is_softmax = [](const Expr& call) { return IsCallOf(call, "nn.softmax"); };
  FusionRule fusion;
  fusion.begins = [](const Expr& call) { return IsProduct(call) && !call->As<Call>()->args[1]->As<Constant>(); };
  fusion.joins = [=](const std::vector<Expr>& inside, const Expr& next) {
    const Expr& last = inside.back();
    const std::string& op = CalledOp(next)->name;
    const std::vector<Expr>& args = next->As<Call>()->args;
    if (std::any_of(inside.begin() + 1, inside.end(), [](const Expr& call) { return IsProduct(call); }))
      return op == "transpose" && args[0] == last && IsProduct(last);
    if (is_softmax(last)) return IsProduct(op) && args[0] == last;
    if (is_softmax(next)) return args[0] == last;
    const bool is_step = op == "multiply" || op == "divide" || op == "add" || op == "subtract" || op == "where";
    return is_step && next->type() == inside.front()->type();
  };
  fusion.ends = [](const std::vector<Expr>& inside, const std::vector<Expr>& /*could_join*/) {
    return std::count_if(inside.begin(), inside.end(), [](const Expr& call) { return IsProduct(call); }) == 2;
  };
  return fusion;
}

TuningParameter AttentionTuning(const Attention& attention) {
  // Scores of so many rows are an eighth of a second-level cache of 2 MB, beside keys and values. Rows enough to read these seldom; more
  // than 64 gain nothing over what a call costs.
  constexpr int64_t kCached = int64_t{256} * 1024 / static_cast<int64_t>(sizeof(float));
  constexpr int64_t kFewest = 12;
  constexpr int64_t kMost = 48;
  const auto usual = static_cast<int>(std::clamp(kCached / attention.scores.columns, kFewest, kMost));
  TuningParameter rows{"rows", {usual}};
  for (const int more : {12, 24, 32, 48, 64, 96}) {
    if (more != usual) rows.values.push_back(more);
  }
  return rows;
}

Result<std::unique_ptr<Kernel>> MakeAttentionKernel(const Attention& attention, int64_t rows, int threads) {
  const InstructionSet instructions = COLLAGE_TRY(DetectInstructionSet());
  const OpSequence& sequence = *attention.sequence;
  std::vector<Port> inputs;
  for (const size_t value : sequence.parameters) inputs.push_back({sequence.values[value].type, {}});
  return MakeProgramKernel(std::move(inputs), {sequence.values[sequence.results[0]].type, {}}, std::nullopt,
                           COLLAGE_TRY(AttentionProgram::Make(attention, instructions, rows, threads)));
}

}  // namespace collage::xsmm
