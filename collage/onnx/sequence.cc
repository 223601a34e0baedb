#include "collage/onnx/sequence.h"

#include "collage/onnx/rows.h"

namespace collage::onnx_io {
namespace {

/// A place in a sequence of which `count` are right; negative ones count from the end.
Result<size_t> PositionInput(const NodeReader& node, size_t index, size_t length, size_t count) {
  const std::vector<int64_t> values = COLLAGE_TRY(node.IntsInput(index, "position"));
  const auto limit = static_cast<int64_t>(length);
  if (values.size() == 1 && values[0] >= -limit && values[0] < static_cast<int64_t>(count)) {
    return static_cast<size_t>(values[0] < 0 ? values[0] + limit : values[0]);
  }
  return Fail("input " + std::to_string(index) + " (position) is outside a sequence of " + std::to_string(length));
}

Result<std::vector<Expr>> ReadSequenceConstruct(NodeReader& node) { return std::vector<Expr>{MakeTuple(COLLAGE_TRY(node.Inputs()))}; }

Result<std::vector<Expr>> ReadSequenceEmpty(NodeReader&) { return std::vector<Expr>{MakeTuple({})}; }

Result<std::vector<Expr>> ReadSequenceInsert(NodeReader& node) {
  std::vector<Expr> fields = COLLAGE_TRY(SequenceInput(node, 0));
  const size_t place = node.HasInput(2) ? COLLAGE_TRY(PositionInput(node, 2, fields.size(), fields.size() + 1)) : fields.size();
  fields.insert(fields.begin() + static_cast<std::ptrdiff_t>(place), COLLAGE_TRY(node.Input(1)));
  return std::vector<Expr>{MakeTuple(fields)};
}

Result<std::vector<Expr>> ReadSequenceErase(NodeReader& node) {
  std::vector<Expr> fields = COLLAGE_TRY(SequenceInput(node, 0));
  if (fields.empty()) return Fail("erases from an empty sequence");
  const size_t place = node.HasInput(1) ? COLLAGE_TRY(PositionInput(node, 1, fields.size(), fields.size())) : fields.size() - 1;
  fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(place));
  return std::vector<Expr>{MakeTuple(fields)};
}

Result<std::vector<Expr>> ReadSequenceAt(NodeReader& node) {
  const std::vector<Expr> fields = COLLAGE_TRY(SequenceInput(node, 0));
  return std::vector<Expr>{fields[COLLAGE_TRY(PositionInput(node, 1, fields.size(), fields.size()))]};
}

Result<std::vector<Expr>> ReadSequenceLength(NodeReader& node) {
  const auto length = static_cast<int64_t>(COLLAGE_TRY(SequenceInput(node, 0)).size());
  return std::vector<Expr>{MakeConstant(Tensor::Scalar(length, DType::kInt64))};
}

/// The body is read once for each place; what is no sequence goes into each.
Result<std::vector<Expr>> ReadSequenceMap(NodeReader& node) {
  const std::shared_ptr<const OnnxGraph> body = COLLAGE_TRY(node.GraphAttribute("body"));
  std::vector<std::vector<Expr>> sequences;
  for (size_t i = 0; i < node.input_count(); ++i) {
    const bool is_tensor = i > 0 && COLLAGE_TRY(node.Input(i))->type().AsTensor() != nullptr;
    sequences.push_back(is_tensor ? std::vector<Expr>() : COLLAGE_TRY(SequenceInput(node, i)));
    if (is_tensor) sequences.back().assign(sequences[0].size(), COLLAGE_TRY(node.Input(i)));
    if (sequences.back().size() != sequences[0].size())
      return Fail("input " + std::to_string(i) + " is a sequence of " + std::to_string(sequences.back().size()) + ", the first one of " +
                  std::to_string(sequences[0].size()));
  }
  if (sequences.empty()) return Fail("has no sequence");
  std::vector<std::vector<Expr>> results(node.output_count());
  for (size_t place = 0; place < sequences[0].size(); ++place) {
    std::vector<Expr> inputs;
    for (const std::vector<Expr>& sequence : sequences) inputs.push_back(sequence[place]);
    Result<ReadBody> read = node.bodies().Read(*body, inputs);
    if (!read) return Fail(read.error().At("body"));
    if (read->outputs.size() != results.size())
      return Fail("body has " + std::to_string(read->outputs.size()) + " outputs where " + std::to_string(results.size()) + " are right");
    for (size_t i = 0; i < results.size(); ++i) results[i].push_back(read->outputs[i]);
  }
  std::vector<Expr> outputs;
  for (std::vector<Expr>& result : results) outputs.push_back(MakeTuple(std::move(result)));
  return outputs;
}

Result<std::vector<Expr>> ReadOptional(NodeReader& node) {
  return std::vector<Expr>{node.HasInput(0) ? COLLAGE_TRY(node.Input(0)) : Nothing()};
}

Result<std::vector<Expr>> ReadOptionalGetElement(NodeReader& node) {
  const Expr value = COLLAGE_TRY(node.Input(0));
  if (IsNothing(value)) return Fail("input 0 is an optional without a value");
  return std::vector<Expr>{value};
}

Result<std::vector<Expr>> ReadOptionalHasElement(NodeReader& node) {
  const bool has_value = node.HasInput(0) && !IsNothing(COLLAGE_TRY(node.Input(0)));
  return std::vector<Expr>{MakeConstant(Tensor::Scalar(has_value, DType::kBool))};
}

}  // namespace

Result<std::vector<Expr>> ElementsOf(const Expr& sequence) {
  if (IsNothing(sequence)) return Fail("an optional without a value is no sequence");
  if (const Tuple* tuple = sequence->As<Tuple>()) return tuple->fields;
  const TupleType* type = sequence->type().AsTuple();
  if (type == nullptr) return Fail(ToString(sequence->type()) + " is no sequence");
  std::vector<Expr> fields;
  for (size_t i = 0; i < type->fields.size(); ++i) fields.push_back(COLLAGE_TRY(NodeReader::Project(sequence, i)));
  return fields;
}

Result<std::vector<Expr>> SequenceInput(const NodeReader& node, size_t index) {
  Result<std::vector<Expr>> elements = ElementsOf(COLLAGE_TRY(node.Input(index)));
  if (!elements) return Fail(elements.error().At("input " + std::to_string(index)));
  return elements;
}

Expr Nothing() { return MakeTuple({MakeTuple({})}); }

bool IsNothing(const Expr& value) {
  const TupleType* outer = value->type().AsTuple();
  const TupleType* inner = outer != nullptr && outer->fields.size() == 1 ? outer->fields[0].AsTuple() : nullptr;
  return inner != nullptr && inner->fields.empty();
}

OperatorFamily SequenceFamily() {
  static constexpr ReadRow kRead[] = {{"SequenceConstruct", ReadSequenceConstruct},
                                      {"SequenceEmpty", ReadSequenceEmpty},
                                      {"SequenceInsert", ReadSequenceInsert, true},
                                      {"SequenceErase", ReadSequenceErase, true},
                                      {"SequenceAt", ReadSequenceAt, true},
                                      {"SequenceLength", ReadSequenceLength, true},
                                      {"SequenceMap", ReadSequenceMap, true},
                                      {"Optional", ReadOptional, true},
                                      {"OptionalGetElement", ReadOptionalGetElement, true},
                                      {"OptionalHasElement", ReadOptionalHasElement, true}};
  return {kRead, {}};
}

}  // namespace collage::onnx_io
