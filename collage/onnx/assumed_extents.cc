#include "collage/onnx/assumed_extents.h"

#include <algorithm>
#include <unordered_set>

#include "collage/ir/call_work.h"
#include "collage/ir/visit.h"

namespace collage::onnx_io {
namespace {

using Kind = AssumedValue::Kind;

// Larger than most extents of models that are no powers of two, so that few agree by chance; where one does, the other reading differs.
constexpr int64_t kFirstExtent = 61;

bool IsPrime(int64_t number) {
  for (int64_t factor = 2; factor * factor <= number; ++factor) {
    if (number % factor == 0) return false;
  }
  return true;
}

bool HoldsGraph(const OnnxNode& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(),
                     [](const auto& attribute) { return std::holds_alternative<std::shared_ptr<const OnnxGraph>>(attribute.second); });
}

int64_t IntOf(const OnnxNode& node, const std::string& name, int64_t otherwise) {
  const auto found = node.attributes.find(name);
  const auto* value = found == node.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return value == nullptr ? otherwise : *value;
}

std::string NameAt(const std::vector<std::string>& names, size_t place) { return place < names.size() ? names[place] : ""; }

/// In which attributes extents stand: they show in the type of the result, too.
bool HoldsExtents(const std::string& op, const std::string& attribute) {
  return (op == "reshape" && attribute == "newshape") || (op == "broadcast_to" && attribute == "shape");
}

/// Both readings call the same, but for extents.
bool IsSameCall(const Call& first, const Call& second) {
  const Op* op = first.callee->As<Op>();
  const Op* other = second.callee->As<Op>();
  if (op == nullptr || other == nullptr || op->def != other->def) return false;
  const auto& entries = first.attributes.entries();
  if (entries.size() != second.attributes.entries().size()) return false;
  return std::all_of(entries.begin(), entries.end(), [&](const Attributes::Entry& entry) {
    const AttributeValue* same = second.attributes.Find(entry.first);
    return same != nullptr && (*same == entry.second || HoldsExtents(op->def->name, entry.first));
  });
}

/// The arguments of a call, without its operator.
std::vector<Expr> ArgumentsOf(const Expr& expr) {
  if (const Call* call = expr->As<Call>()) return call->args;
  if (const Tuple* tuple = expr->As<Tuple>()) return tuple->fields;
  if (const TupleGetItem* item = expr->As<TupleGetItem>()) return {item->tuple};
  return {};
}

}  // namespace

AssumedExtents::AssumedExtents(const OnnxGraph& graph, const std::map<std::string, TensorType>& inputs)
    : graph_(graph), first_(graph), second_(graph), rows_(graph.nodes.size()), work_(graph.nodes.size(), 0), last_(kFirstExtent - 1) {
  for (Reading* reading : {&first_, &second_}) (void)reading->reader.DefineInitializers();
  for (const auto& [name, tensor] : graph.initializers) {
    values_[name] = {Kind::kConstant, 0, tensor.type(), tensor.type(), {}, false};
    for (Reading* reading : {&first_, &second_}) reading->uses[reading->reader.Find(name).get()] = {RowUse::kWhole};
  }
  for (const auto& [name, type] : inputs) Assume(name, type, type, std::nullopt);
  for (size_t i = 0; i < graph.nodes.size(); ++i) ReadNode(i);
}

const AssumedValue* AssumedExtents::Find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

size_t AssumedExtents::ExtentOf(std::pair<int64_t, int64_t> pair) {
  const auto found = std::find(extents_.begin(), extents_.end(), pair);
  if (found != extents_.end()) return static_cast<size_t>(found - extents_.begin());
  extents_.push_back(pair);
  return extents_.size() - 1;
}

/// The same for the same key: what comes of the same values has the same extent.
std::pair<int64_t, int64_t> AssumedExtents::NewExtent(const std::string& key) {
  const auto next = [&] {
    do ++last_;
    while (!IsPrime(last_));
    return last_;
  };
  const auto [found, is_new] = by_key_.try_emplace(key);
  if (is_new) found->second.first = next();
  if (is_new) found->second.second = next();
  return found->second;
}

AssumedExtents::Use AssumedExtents::UseOf(const AssumedValue& value) const {
  if (value.kind == Kind::kRows) return {RowUse::kRows, value.extent};
  return {value.kind == Kind::kConstant || value.kind == Kind::kWhole ? RowUse::kWhole : RowUse::kNeither, 0};
}

AssumedValue AssumedExtents::Classify(const Expr& first, const Expr& second) {
  AssumedValue value;
  const TensorType* a = first ? first->type().AsTensor() : nullptr;
  const TensorType* b = second ? second->type().AsTensor() : nullptr;
  if (a == nullptr || b == nullptr || a->dtype != b->dtype || a->shape.size() != b->shape.size()) return value;
  value.first = *a;
  value.second = *b;
  if (*a == *b) {
    const Tensor* x = ConstantValue(first);
    const Tensor* y = ConstantValue(second);
    value.kind = x == nullptr || y == nullptr ? Kind::kWhole : BitwiseEqual(*x, *y) ? Kind::kConstant : Kind::kShape;
    return value;
  }
  const bool is_rows = a->shape[0] != b->shape[0] && std::equal(a->shape.begin() + 1, a->shape.end(), b->shape.begin() + 1);
  value.kind = is_rows ? Kind::kRows : Kind::kOther;
  if (is_rows) value.extent = ExtentOf({a->shape[0], b->shape[0]});
  return value;
}

/// A value of which nothing but its type is known.
void AssumedExtents::Assume(const std::string& name, const TensorType& first, const TensorType& second, std::optional<size_t> node) {
  const Expr a = MakeVar(name, first);
  const Expr b = MakeVar(name, second);
  first_.reader.Redefine(name, a);
  second_.reader.Redefine(name, b);
  AssumedValue value = Classify(a, b);
  value.node = node;
  first_.uses[a.get()] = second_.uses[b.get()] = UseOf(value);
  values_[name] = value;
}

void AssumedExtents::SetUnknown(size_t index) {
  for (const std::string& name : graph_.nodes[index].outputs) {
    if (name.empty()) continue;
    first_.reader.Redefine(name, nullptr);
    second_.reader.Redefine(name, nullptr);
    values_[name] = {};
    values_[name].node = index;
  }
}

/// Results of the operators whose extents only a run tells. False for others.
bool AssumedExtents::AssumeResults(size_t index) {
  const OnnxNode& node = graph_.nodes[index];
  const AssumedValue* data = Find(NameAt(node.inputs, 0));
  if (!node.domain.empty() || data == nullptr || data->kind == Kind::kUnknown) return false;
  const auto rank = static_cast<int64_t>(data->first.shape.size());
  const auto give = [&](size_t output, const TensorType& first, const TensorType& second) {
    const std::string name = NameAt(node.outputs, output);
    if (!name.empty()) Assume(name, first, second, index);
  };
  const auto give_vector = [&](size_t output, DType dtype, std::pair<int64_t, int64_t> extent) {
    give(output, {{extent.first}, dtype}, {{extent.second}, dtype});
  };
  const auto along = [&](const TensorType& type, int64_t axis, int64_t extent, DType dtype) {
    Shape shape = type.shape;
    shape[static_cast<size_t>(axis)] = extent;
    return TensorType{shape, dtype};
  };
  const auto give_along = [&](size_t output, int64_t axis, std::pair<int64_t, int64_t> extent, DType dtype) {
    give(output, along(data->first, axis, extent.first, dtype), along(data->second, axis, extent.second, dtype));
  };
  const auto axis_of = [&](int64_t otherwise) {
    const int64_t axis = IntOf(node, "axis", otherwise);
    return axis < 0 ? axis + rank : axis;
  };
  const auto is_axis = [&](int64_t axis) { return axis >= 0 && axis < rank; };
  const AssumedValue of_data = *data;
  data = &of_data;  // what is assumed may move the values
  if (node.op_type == "NonZero" && rank > 0) {
    const auto extent = NewExtent("NonZero " + node.inputs[0]);
    give(0, {{rank, extent.first}, DType::kInt64}, {{rank, extent.second}, DType::kInt64});
    return true;
  }
  if (node.op_type == "NonMaxSuppression") {
    std::string key = node.op_type;
    for (const std::string& name : node.inputs) key += " " + name;
    const auto extent = NewExtent(key);
    give(0, {{extent.first, 3}, DType::kInt64}, {{extent.second, 3}, DType::kInt64});
    return true;
  }
  if (node.op_type == "Compress") {
    const auto extent = NewExtent("Compress " + NameAt(node.inputs, 1));
    if (!node.attributes.contains("axis")) {
      give_vector(0, data->first.dtype, extent);
      return true;
    }
    const int64_t axis = axis_of(0);
    if (is_axis(axis)) give_along(0, axis, extent, data->first.dtype);
    return is_axis(axis);
  }
  if (node.op_type == "Unique" && node.domain.empty() && !node.attributes.contains("axis")) {
    const auto extent = NewExtent("Unique " + node.inputs[0]);
    give_vector(0, data->first.dtype, extent);
    give_vector(1, DType::kInt64, extent);
    give(2, {{data->first.ElementCount()}, DType::kInt64}, {{data->second.ElementCount()}, DType::kInt64});
    give_vector(3, DType::kInt64, extent);
    return true;
  }
  if (node.op_type == "TopK" && node.inputs.size() == 2 && is_axis(axis_of(-1))) {
    const auto extent = NewExtent("TopK " + node.inputs[1]);
    give_along(0, axis_of(-1), extent, data->first.dtype);
    give_along(1, axis_of(-1), extent, DType::kInt64);
    return true;
  }
  if (node.op_type == "Range") {
    std::string key = node.op_type;
    for (const std::string& name : node.inputs) key += " " + name;
    give_vector(0, data->first.dtype, NewExtent(key));
    return true;
  }
  if (node.op_type == "Slice" && node.inputs.size() >= 3) {
    // Along one dimension, whose number must be known.
    const AssumedValue* starts = Find(node.inputs[1]);
    if (starts == nullptr || starts->kind == Kind::kUnknown || starts->first.shape != Shape{1}) return false;
    int64_t axis = 0;
    if (const std::string axes = NameAt(node.inputs, 3); !axes.empty()) {
      const Expr value = first_.reader.Find(axes);
      const Tensor* tensor = value ? ConstantValue(value) : nullptr;
      if (tensor == nullptr || tensor->ElementCount() != 1) return false;
      axis = tensor->ToInt64()[0];
    }
    if (axis < 0) axis += rank;
    if (!is_axis(axis)) return false;
    std::string key = "Slice";
    for (size_t i = 1; i < node.inputs.size(); ++i) key += " " + node.inputs[i];
    give_along(0, axis, NewExtent(key), data->first.dtype);
    return true;
  }
  return false;
}

bool AssumedExtents::ReadInBoth(size_t index) {
  const OnnxNode& node = graph_.nodes[index];
  if (HoldsGraph(node)) return false;
  // How many are wanted may be bounded, as in min(count, 1000), and the bound is no extent that holds.
  if (node.op_type == "TopK" && node.inputs.size() == 2) {
    const AssumedValue* count = Find(node.inputs[1]);
    if (count == nullptr || count->varies) return false;
  }
  return first_.reader.ReadNode(index) && second_.reader.ReadNode(index);
}

void AssumedExtents::ReadNode(size_t index) {
  if (ReadInBoth(index)) {
    MarkNode(index);
    return;
  }
  SetUnknown(index);
  AssumeResults(index);
}

/// What the node has made, arguments first.
std::vector<Expr> AssumedExtents::NewExpressions(const Reading& reading, const OnnxNode& node) const {
  std::vector<Expr> order;
  std::unordered_set<const ExprNode*> seen;
  std::vector<std::pair<Expr, bool>> pending;  // with whether the arguments are done
  const auto add = [&](const Expr& expr) {
    if (expr != nullptr && !reading.uses.contains(expr.get()) && !seen.contains(expr.get())) pending.emplace_back(expr, false);
  };
  for (const std::string& name : node.outputs) {
    if (!name.empty()) add(reading.reader.Find(name));
    while (!pending.empty()) {
      const auto [expr, is_done] = pending.back();
      pending.pop_back();
      if (is_done) {
        order.push_back(expr);
        continue;
      }
      if (!seen.insert(expr.get()).second) continue;
      pending.emplace_back(expr, true);
      for (const Expr& argument : ArgumentsOf(expr)) add(argument);
    }
  }
  return order;
}

AssumedExtents::Use AssumedExtents::UseOf(const Reading& reading, const Expr& expr, bool is_first) const {
  std::vector<RowUse> uses;
  std::optional<size_t> extent;
  for (const Expr& argument : ArgumentsOf(expr)) {
    const auto found = reading.uses.find(argument.get());
    if (found == reading.uses.end()) return {};
    const Use& use = found->second;
    uses.push_back(use.use);
    if (use.use != RowUse::kRows) continue;
    if (extent && *extent != use.extent) return {};
    extent = use.extent;
  }
  const int64_t rows = !extent ? 0 : is_first ? extents_[*extent].first : extents_[*extent].second;
  return {RowUseOf(expr, uses, rows), extent.value_or(0)};
}

/// False where the readings have made different things.
bool AssumedExtents::MarkNew(const std::vector<Expr>& first, const std::vector<Expr>& second) {
  if (first.size() != second.size()) return false;
  for (size_t i = 0; i < first.size(); ++i) {
    Use use;
    const Tensor* a = ConstantValue(first[i]);
    const Tensor* b = ConstantValue(second[i]);
    const Call* call = first[i]->As<Call>();
    const Call* other = second[i]->As<Call>();
    if (a != nullptr && b != nullptr) {
      if (BitwiseEqual(*a, *b)) use.use = RowUse::kWhole;
    } else if (call != nullptr ? other != nullptr && IsSameCall(*call, *other) : !ArgumentsOf(first[i]).empty() && other == nullptr) {
      use = UseOf(first_, first[i], true);
      const Use of_second = UseOf(second_, second[i], false);
      if (of_second.use != use.use || of_second.extent != use.extent) use = {};
    } else if (a != nullptr || b != nullptr || call != nullptr || other != nullptr) {
      return false;
    }
    first_.uses[first[i].get()] = second_.uses[second[i].get()] = use;
  }
  return true;
}

void AssumedExtents::MarkNode(size_t index) {
  const OnnxNode& node = graph_.nodes[index];
  const std::vector<Expr> made = NewExpressions(first_, node);
  bool keeps_rows = MarkNew(made, NewExpressions(second_, node));
  const std::vector<std::string> names = NamesRead(node);
  const bool varies = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const AssumedValue* value = name.empty() ? nullptr : Find(name);
    return value != nullptr && value->kind != Kind::kWhole && value->varies;
  });
  std::optional<size_t> rows;
  for (const std::string& name : node.outputs) {
    if (name.empty()) continue;
    const Expr first = first_.reader.Find(name);
    const Expr second = second_.reader.Find(name);
    if (first == nullptr || second == nullptr) continue;  // an output that is not supported, which nobody reads then
    AssumedValue value = Classify(first, second);
    value.node = index;
    value.varies = varies;
    values_[name] = value;
    const bool is_computed = ConstantValue(first) == nullptr && ConstantValue(second) == nullptr;
    const Use use = first_.uses.contains(first.get()) ? first_.uses.at(first.get()) : Use{};
    const bool has_rows = is_computed && value.kind == Kind::kRows && use.use == RowUse::kRows && use.extent == value.extent;
    keeps_rows = keeps_rows && has_rows && (!rows || *rows == value.extent);
    rows = value.extent;
  }
  if (keeps_rows) rows_[index] = rows;
  for (const std::string& name : node.outputs) {
    const auto found = name.empty() ? values_.end() : values_.find(name);
    if (found == values_.end() || keeps_rows) continue;
    const Expr first = first_.reader.Find(name);
    const Expr second = second_.reader.Find(name);
    if (first == nullptr || second == nullptr) continue;
    const AssumedValue value = found->second;
    if (value.kind == Kind::kRows && ConstantValue(first) != nullptr) {
      // One for each row, as indices that count them: it has the value of all rows, and is none of a program of some.
      Assume(name, value.first, value.second, index);
    } else {
      first_.uses[first.get()] = second_.uses[second.get()] = UseOf(value);
    }
  }
  if (!keeps_rows || !rows) return;
  double work = 0;
  for (const Expr& expr : made) work += WorkOfCall(expr).flops;
  work_[index] = work / static_cast<double>(extents_[*rows].first);
}

}  // namespace collage::onnx_io
