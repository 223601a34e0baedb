#include "collage/backend/native/row_split.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_set>

#include "collage/op/reduction.h"
#include "collage/op/rules.h"

namespace collage::native {
namespace {

using Step = OpSequence::Step;

bool IsProduct(const OpDef& op) {
  static const std::unordered_set<std::string_view> names = {"nn.dense", "nn.matmul", "nn.batch_matmul"};
  return names.contains(op.name);
}

// Operators that give each element from the elements at its place, operands broadcast as NumPy does.
bool KeepsPlaces(const OpDef& op) {
  static const std::unordered_set<std::string_view> others = {"expand_dims", "broadcast_to", "nn.batch_norm"};
  return (op.kind == OpKind::kElementwise || op.kind == OpKind::kBroadcast) && !others.contains(op.name);
}

// Operators along one axis whose other operands are vectors over an axis.
bool IsAlongAxis(const OpDef& op) {
  static const std::unordered_set<std::string_view> names = {"nn.softmax", "nn.log_softmax", "nn.layer_norm", "nn.bias_add", "nn.prelu"};
  return names.contains(op.name);
}

bool IsReduction(const OpDef& op) {
  static const std::unordered_set<std::string_view> names = {"sum", "mean", "max", "min", "prod"};
  return names.contains(op.name);
}

int64_t FirstAxis(const Step& step) {
  const int64_t last = step.op->name == "nn.bias_add" || step.op->name == "nn.prelu" ? 1 : -1;
  const auto rank = step.argument_types[0].AsTensor()->shape.size();
  return static_cast<int64_t>(AxisAttribute(step.attributes, "axis", last, rank));
}

class Splitting {
 public:
  explicit Splitting(const OpSequence& sequence) : sequence_(sequence), inner_(sequence.values.size()) {
    for (size_t i = 0; i < inner_.size(); ++i) {
      if (sequence.values[i].constant) inner_[i] = RowSplit::kShared;
    }
  }

  void Begin(size_t value, int64_t rows, int inner) {
    inner_[value] = inner;
    split_.rows = rows;
  }

  Result<RowSplit> Run() {
    for (const Step& step : sequence_.steps) {
      const Status taken = Take(step);
      if (!taken) return Fail(taken.error().At(step.op->name));
    }
    if (split_.rows < 1) return Fail("there are no rows");
    for (const size_t result : sequence_.results) {
      if (!inner_[result] || *inner_[result] == RowSplit::kShared) return Fail("a result does not lie along the rows");
    }
    for (const std::optional<int>& inner : inner_) split_.inner.push_back(inner.value_or(RowSplit::kShared));
    return std::move(split_);
  }

 private:
  [[nodiscard]] const Shape& ShapeOf(size_t value) const { return sequence_.values[value].type.shape; }
  [[nodiscard]] bool HasRows(size_t value) const { return inner_[value].has_value() && *inner_[value] != RowSplit::kShared; }

  Status Set(size_t value, int inner) {
    if (inner_[value] && *inner_[value] != inner) return Fail("an operand is used along the rows and across them");
    inner_[value] = inner;
    return {};
  }

  [[nodiscard]] int64_t RowsOf(size_t value, int inner) const {
    const Shape& shape = ShapeOf(value);
    return ElementCount(Shape(shape.begin(), shape.end() - std::min<std::ptrdiff_t>(inner, std::ssize(shape))));
  }

  Status SetResult(size_t value, int inner) {
    if (RowsOf(value, inner) != split_.rows) return Fail("its result has other rows");
    return Set(value, inner);
  }

  Status Take(const Step& step) {
    if (step.outputs.size() != 1) return Fail("it has several results");
    if (IsProduct(*step.op)) return TakeProduct(step);
    const bool follows = std::any_of(step.inputs.begin(), step.inputs.end(), [&](size_t input) { return HasRows(input); });
    if (!follows) return Fail("it does not follow the product");
    if (IsAlongAxis(*step.op)) return TakeAlongAxis(step);
    if (IsReduction(*step.op)) return TakeReduction(step);
    return KeepsPlaces(*step.op) ? TakeInPlaces(step) : Fail("it may join rows");
  }

  Status TakeProduct(const Step& step) {
    const bool follows =
        std::any_of(inner_.begin(), inner_.end(), [](const auto& inner) { return inner.value_or(RowSplit::kShared) != RowSplit::kShared; });
    if (follows) return Fail("there is a product in front of it");
    const auto [data, other, result] = std::tuple(step.inputs[0], step.inputs[1], step.outputs[0]);
    if (inner_[data] || ShapeOf(data).size() < 2 || BoolAttribute(step.attributes, "transpose_a", false))
      return Fail("its rows are not those of its first operand");
    const bool is_batch = ShapeOf(other).size() > 2;
    if (is_batch) {
      const auto batch = [&](size_t value) { return Shape(ShapeOf(value).begin(), ShapeOf(value).end() - 2); };
      if (inner_[other] || data == other || batch(data) != batch(other)) return Fail("its batches differ");
    }
    const int inner = is_batch ? 2 : 1;
    Begin(data, RowsOf(data, inner), inner);
    COLLAGE_TRY_STATUS(Set(other, is_batch ? inner : RowSplit::kShared));
    return SetResult(result, inner);
  }

  Status TakeAlongAxis(const Step& step) {
    const size_t data = step.inputs[0];
    if (!HasRows(data)) return Fail("its first operand does not lie along the rows");
    if (FirstAxis(step) + *inner_[data] < std::ssize(ShapeOf(data))) return Fail("its axis lies across the rows");
    for (size_t i = 1; i < step.inputs.size(); ++i) COLLAGE_TRY_STATUS(Set(step.inputs[i], RowSplit::kShared));
    return SetResult(step.outputs[0], *inner_[data]);
  }

  Status TakeReduction(const Step& step) {
    const size_t data = step.inputs[0];
    const Reduction reduction = COLLAGE_TRY(ReadReduction(sequence_.values[data].type, step.attributes));
    const size_t first = ShapeOf(data).size() - static_cast<size_t>(*inner_[data]);
    for (size_t axis = 0; axis < first; ++axis) {
      if (reduction.reduced[axis]) return Fail("it joins rows");
    }
    const auto gone = static_cast<int>(ShapeOf(data).size() - ShapeOf(step.outputs[0]).size());
    return SetResult(step.outputs[0], *inner_[data] - gone);
  }

  Status TakeInPlaces(const Step& step) {
    int inner = RowSplit::kShared;
    for (const size_t input : step.inputs) {
      if (!HasRows(input)) continue;
      if (inner != RowSplit::kShared && *inner_[input] != inner) return Fail("its operands lie differently along the rows");
      inner = *inner_[input];
    }
    for (const size_t input : step.inputs) {
      const std::optional<int> lies = COLLAGE_TRY(OperandIn(input, ShapeOf(step.outputs[0]), inner));
      if (inner_[input] && *inner_[input] != *lies) return Fail("an operand is one for all rows in one place and one a row in another");
      inner_[input] = lies;
    }
    return SetResult(step.outputs[0], inner);
  }

  // How an operand that is broadcast to `result` lies.
  [[nodiscard]] Result<std::optional<int>> OperandIn(size_t value, const Shape& result, int inner) const {
    const Shape& shape = ShapeOf(value);
    const size_t missing = result.size() - shape.size();
    bool is_shared = true;
    bool has_all = true;
    for (size_t i = 0; i + static_cast<size_t>(inner) < result.size(); ++i) {
      const int64_t extent = i < missing ? 1 : shape[i - missing];
      is_shared = is_shared && extent == 1;
      has_all = has_all && extent == result[i];
    }
    if (HasRows(value) || (has_all && !is_shared)) {
      if (!has_all) return Fail("an operand has other rows");
      return std::optional(inner);
    }
    if (!is_shared) return Fail("an operand is repeated along some of the dimensions of the rows");
    return std::optional(RowSplit::kShared);
  }

  const OpSequence& sequence_;
  std::vector<std::optional<int>> inner_;
  RowSplit split_;
};

TensorType TypeOfRows(const TensorType& type, int inner, int64_t rows) {
  TensorType changed = type;
  const auto leading = std::ssize(type.shape) - inner;
  if (inner == RowSplit::kShared || leading <= 0) return changed;
  std::fill_n(changed.shape.begin(), leading, 1);
  changed.shape[static_cast<size_t>(leading - 1)] = rows;
  return changed;
}

}  // namespace

bool KeepsRows(const Expr& call) {
  const OpDef* op = CalledOp(call);
  return op && (KeepsPlaces(*op) || IsAlongAxis(*op) || IsReduction(*op));
}

Result<RowSplit> SplitAroundProduct(const OpSequence& sequence) { return Splitting(sequence).Run(); }

Result<RowSplit> SplitBehind(const OpSequence& sequence, int64_t rows, int inner) {
  Splitting splitting(sequence);
  splitting.Begin(sequence.parameters[0], rows, inner);
  return splitting.Run();
}

size_t BytesOfRow(const OpSequence& sequence, const RowSplit& split, size_t value) {
  if (split.inner[value] == RowSplit::kShared) return 0;
  return sequence.values[value].type.ByteCount() / static_cast<size_t>(split.rows);
}

Result<Expr> OfRows(const OpSequence& sequence, const RowSplit& split, int64_t rows) {
  std::vector<Expr> values(sequence.values.size());
  std::vector<Expr> parameters;
  const auto type_of = [&](size_t value) { return TypeOfRows(sequence.values[value].type, split.inner[value], rows); };
  for (const size_t value : sequence.parameters) {
    values[value] = MakeVar("x" + std::to_string(parameters.size()), type_of(value));
    parameters.push_back(values[value]);
  }
  for (size_t value = 0; value < values.size(); ++value) {
    if (sequence.values[value].constant) values[value] = MakeConstant(*sequence.values[value].constant);
  }
  for (const Step& step : sequence.steps) {
    std::vector<Expr> arguments;
    for (const size_t input : step.inputs) arguments.push_back(values[input]);
    Expr& result = values[step.outputs[0]];
    result = COLLAGE_TRY(MakeCall(step.op, std::move(arguments), step.attributes));
    const TensorType* type = result->type().AsTensor();
    if (!type || *type != type_of(step.outputs[0])) return Fail(step.op->name + " gives something else for some of the rows");
  }
  std::vector<Expr> results;
  for (const size_t result : sequence.results) results.push_back(values[result]);
  return MakeFunction(std::move(parameters), results.size() == 1 ? results[0] : MakeTuple(std::move(results)));
}

}  // namespace collage::native
