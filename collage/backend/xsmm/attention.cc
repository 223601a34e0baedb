#include "collage/backend/xsmm/attention.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "collage/backend/batch_offsets.h"
#include "collage/backend/written_out_activation.h"

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
  // Scores of so many rows are an eighth of a second-level cache of 2 MB, beside keys and values. The library keeps six rows in registers:
  // two such blocks at least read a panel of keys or values twice; from eight on no number was the best of bench_micro_kernels throughout.
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

}  // namespace collage::xsmm
