#include "collage/backend/xsmm/attention.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "collage/backend/batch_offsets.h"
#include "collage/backend/strided_view.h"
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

/// A factor of one constant element, on either side, or such a divisor; its value as a factor. `data` is the other side.
std::optional<double> FactorOf(const OpSequence& sequence, const Step& step, size_t* data) {
  const bool multiplies = step.op->name == "multiply";
  if (!multiplies && step.op->name != "divide") return std::nullopt;
  for (const size_t side : {size_t{1}, size_t{0}}) {
    const std::optional<double> number = ScalarOf(sequence, step.inputs[side]);
    if (!number || (!multiplies && (side == 0 || *number == 0))) continue;
    *data = step.inputs[1 - side];
    return multiplies ? *number : 1 / *number;
  }
  return std::nullopt;
}

/// Of a function: two products, what lies between them, and perhaps a transpose; in front of them their operands as views.
class Parser {
 public:
  explicit Parser(const OpSequence& sequence) : sequence_(sequence) { attention_.sequence = &sequence; }

  Result<Attention> Parse() {
    // What stands in front of values comes behind the first product where it is evaluated last.
    std::vector<const Step*> steps;
    for (const Step& step : sequence_.steps) {
      const bool takes_another =
          std::any_of(step.inputs.begin(), step.inputs.end(), [&](size_t input) { return IsComputed(steps, input); });
      (takes_another || IsProduct(step.op->name) ? steps : front_).push_back(&step);
    }
    if (steps.empty() || !IsProduct(steps[0]->op->name)) return Fail("libxsmm: attention begins with a product");
    attention_.scores = COLLAGE_TRY(ReadProduct(sequence_, *steps[0]));
    size_t scores = steps[0]->outputs[0];
    double factor = 1;
    attention_.queries = COLLAGE_TRY(Operand(steps[0]->inputs[0], /*is_transposed=*/false, factor));
    attention_.keys = COLLAGE_TRY(Operand(steps[0]->inputs[1], attention_.scores.transpose_b, factor));
    if (attention_.queries.column_stride != 1) return Fail("libxsmm: the channels of queries do not lie side by side");
    if (factor != 1) attention_.steps.push_back({Attention::Step::Kind::kScale, static_cast<float>(factor)});
    size_t next = 1;
    for (; next < steps.size() && steps[next]->op->name != "nn.softmax"; ++next) {
      attention_.steps.push_back(COLLAGE_TRY(StepOf(*steps[next], scores)));
      scores = steps[next]->outputs[0];
    }
    if (next + 1 >= steps.size()) return Fail("libxsmm: attention has a softmax and a product behind it");
    const Step& softmax = *steps[next];
    const auto rank = static_cast<int64_t>(ShapeOf(scores).size());
    const int64_t axis = COLLAGE_TRY(softmax.attributes.Int("axis", -1));
    if (softmax.inputs[0] != scores || (axis != -1 && axis != rank - 1))
      return Fail("libxsmm: the softmax is not one of each row of scores");
    const Step& product = *steps[++next];
    if (!IsProduct(product.op->name) || product.inputs[0] != softmax.outputs[0] || product.inputs[1] == softmax.outputs[0])
      return Fail("libxsmm: behind the softmax comes no product with values");
    attention_.mixture = COLLAGE_TRY(ReadProduct(sequence_, product));
    if (attention_.mixture.batch != attention_.scores.batch) return Fail("libxsmm: the values have batches that the scores have not");
    double of_values = 1;
    attention_.values = COLLAGE_TRY(Operand(product.inputs[1], attention_.mixture.transpose_b, of_values));
    if (of_values != 1) return Fail("libxsmm: values are scaled in front of attention");
    size_t result = product.outputs[0];
    if (++next < steps.size()) {
      COLLAGE_TRY_STATUS(TakeTranspose(*steps[next], result));
      result = steps[next++]->outputs[0];
    }
    if (next != steps.size() || sequence_.results != std::vector<size_t>{result})
      return Fail("libxsmm: attention ends with a product or a transpose of it");
    if (seen_.size() != front_.size()) return Fail("libxsmm: in front of attention stands what is none of its operands");
    if (sequence_.values[result].type.ElementCount() == 0) return Fail("libxsmm: a tensor has no elements");
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
    for (const Step& step : sequence_.steps) {
      if (Makes(step, value)) return Fail("libxsmm: attention reads what " + step.op->name + " gives");
    }
    return {};
  }

  static bool Makes(const Step& step, size_t value) {
    return std::find(step.outputs.begin(), step.outputs.end(), value) != step.outputs.end();
  }
  static bool IsComputed(const std::vector<const Step*>& steps, size_t value) {
    return std::any_of(steps.begin(), steps.end(), [&](const Step* step) { return Makes(*step, value); });
  }

  // Where matrices lie, down through what stands in front of them, by whose factors `factor` is multiplied.
  Result<Attention::Matrices> Stored(size_t value, DType dtype, double& factor) {
    std::vector<StepTaken> chain;
    size_t source = value;
    for (size_t i = front_.size(); i-- > 0;) {
      const Step& step = *front_[i];
      if (!Makes(step, source)) continue;
      size_t data = step.inputs[0];
      if (!MayBeView(*step.op)) {
        const std::optional<double> number = FactorOf(sequence_, step, &data);
        if (!number || ShapeOf(data) != ShapeOf(source)) return Fail("libxsmm: " + step.op->name + " stands in front of attention");
        factor *= *number;
      }
      chain.push_back({&step, source});
      seen_.insert(&step);
      source = data;
    }
    std::reverse(chain.begin(), chain.end());
    COLLAGE_TRY_STATUS(CheckRead(source, dtype));
    std::optional<StridedView> view = ViewOf(sequence_, source, chain);
    if (!view) return Fail("libxsmm: an operand of attention is no view of what it is cut from");
    while (view->dims.size() < 2) {
      view->dims.insert(view->dims.begin(), 1);
      view->strides.insert(view->strides.begin(), 0);
    }
    Attention::Matrices matrices{source, BatchOffsets(view->dims, view->strides, attention_.scores.batch), 0, 0};
    for (int64_t& begin : matrices.batches) begin += view->offset;
    // An only row or column lies beside any other.
    const size_t rank = view->dims.size();
    matrices.column_stride = view->dims[rank - 1] == 1 ? 1 : view->strides[rank - 1];
    matrices.row_stride = view->dims[rank - 2] == 1 ? view->dims[rank - 1] * matrices.column_stride : view->strides[rank - 2];
    return matrices;
  }

  // Of a right operand that is transposed, as it is multiplied.
  Result<Attention::Matrices> Operand(size_t value, bool is_transposed, double& factor) {
    Attention::Matrices matrices = COLLAGE_TRY(Stored(value, DType::kFloat32, factor));
    if (is_transposed) std::swap(matrices.row_stride, matrices.column_stride);
    if (matrices.row_stride != 1 && matrices.column_stride != 1)
      return Fail("libxsmm: neither rows nor columns of an operand lie side by side");
    return matrices;
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
    double factor = 1;
    const Attention::Matrices matrices = COLLAGE_TRY(Stored(value, dtype, factor));
    const Shape& shape = ShapeOf(value);
    const bool has_columns = !shape.empty() && shape.back() > 1;
    const bool has_rows = shape.size() > 1 && shape[shape.size() - 2] > 1;
    if (factor != 1 || matrices.column_stride != 1) return Fail("libxsmm: what is added to attention's scores is scaled, or transposed");
    step.value = matrices.value;
    step.batches = matrices.batches;
    step.row_stride = has_rows ? matrices.row_stride : 0;
    step.is_one_a_row = !has_columns && attention_.scores.columns > 1;
    return {};
  }

  const OpSequence& sequence_;
  Attention attention_;
  std::vector<const Step*> front_;  // what no product is needed for
  std::set<const Step*> seen_;      // of these
};

}  // namespace

bool MayBeAttention(const OpSequence& sequence) {
  const auto has = [&](const auto& is_one) {
    return std::any_of(sequence.steps.begin(), sequence.steps.end(), [&](const Step& step) { return is_one(step.op->name); });
  };
  return has([](const std::string& op) { return op == "nn.softmax"; }) && has([](const std::string& op) { return IsProduct(op); });
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
  fusion.stands_in_front = [](const Expr& call) {
    const std::vector<Expr>& args = call->As<Call>()->args;
    const auto is_number = [](const Expr& arg) { return arg->As<Constant>() && arg->type().AsTensor()->ElementCount() == 1; };
    const std::string& op = CalledOp(call)->name;
    if (op == "divide") return is_number(args[1]);
    return op == "multiply" ? is_number(args[0]) || is_number(args[1]) : MayBeView(*CalledOp(call));
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
