// If, Loop and Scan. Branches become those of an if; they may read all that is known around it. Loops are of iteration.h.

#include <algorithm>
#include <optional>

#include "collage/ir/failure.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/iteration.h"
#include "collage/onnx/rows.h"

namespace collage::onnx_io {
namespace {

constexpr const char* kBranches[] = {"then_branch", "else_branch"};

Result<std::shared_ptr<const OnnxGraph>> BranchOf(NodeReader& node, size_t which) {
  std::shared_ptr<const OnnxGraph> graph = COLLAGE_TRY(node.GraphAttribute(kBranches[which]));
  if (graph->outputs.size() == node.output_count()) return graph;
  return Fail(std::string(kBranches[which]) + " has " + std::to_string(graph->outputs.size()) + " outputs where " +
              std::to_string(node.output_count()) + " are right");
}

Result<std::vector<Expr>> ReadBranch(NodeReader& node, const OnnxGraph& graph, size_t which) {
  Result<ReadBody> body = node.bodies().Read(graph, {});
  return body ? Result<std::vector<Expr>>(std::move(body->outputs)) : Fail(body.error().At(kBranches[which]));
}

Type TypeOf(const std::vector<Expr>& values) { return values.size() == 1 ? values[0]->type() : MakeTuple(values)->type(); }

/// What stands for a branch that cannot be read: exporters write one for each sampling rate, say, of which shapes fit one. ONNX asks of a
/// branch nothing where it is not taken, and a run that takes it fails. Errors where the branch is wrong whatever the shapes are, or waits
/// for values.
Result<Expr> Unreadable(NodeReader& node, const OnnxGraph& graph, const Error& error, const Type& type) {
  if (!node.bodies().Check(graph) || node.folder().required() != nullptr) return Fail(error);
  const std::string text =
      "node '" + node.origin().ToString() + "': the run takes a branch that does not fit the program: " + error.message;
  const std::string function = node.bodies().FreshName("cannot_run");
  node.bodies().AddFunction(function, COLLAGE_TRY(MakeFailure(function, type, text)));
  return CallFailure(function, type);
}

Result<std::vector<Expr>> ReadIf(NodeReader& node) {
  const Expr condition = COLLAGE_TRY(AsScalar(node, COLLAGE_TRY(node.Input(0)), "the condition"));
  if (const Tensor* known = ConstantValue(condition)) {
    if (known->dtype() != DType::kBool) return Fail("the condition is " + ToString(condition->type()) + ", expected bool");
    const size_t which = *known->Data<bool>() ? 0 : 1;
    return ReadBranch(node, *COLLAGE_TRY(BranchOf(node, which)), which);
  }
  const std::shared_ptr<const OnnxGraph> graphs[] = {COLLAGE_TRY(BranchOf(node, 0)), COLLAGE_TRY(BranchOf(node, 1))};
  const Result<std::vector<Expr>> values[] = {ReadBranch(node, *graphs[0], 0), ReadBranch(node, *graphs[1], 1)};
  if (!values[0] && !values[1]) return Fail(values[0].error());
  for (size_t i = 0; values[0] && values[1] && i < node.output_count(); ++i) {
    const Type& then_type = (*values[0])[i]->type();
    const Type& else_type = (*values[1])[i]->type();
    if (then_type == else_type) continue;
    node.folder().RequireValue(condition);
    return Fail("output " + std::to_string(i) + " is " + ToString(then_type) + " in then_branch and " + ToString(else_type) +
                " in else_branch: its type depends on the condition, which is not a constant");
  }
  std::vector<Expr> branches;
  for (size_t i = 0; i < 2; ++i) {
    if (!values[i]) {
      branches.push_back(COLLAGE_TRY(Unreadable(node, *graphs[i], values[i].error(), TypeOf(*values[1 - i]))));
    } else {
      branches.push_back(values[i]->size() == 1 ? values[i]->front() : MakeTuple(*values[i]));
    }
  }
  const Expr chosen = COLLAGE_TRY(MakeIf(condition, branches[0], branches[1]));
  if (node.output_count() == 1) return std::vector<Expr>{chosen};
  std::vector<Expr> outputs;
  for (size_t i = 0; i < node.output_count(); ++i) outputs.push_back(COLLAGE_TRY(MakeTupleGetItem(chosen, i)));
  return outputs;
}

/// A scalar as the body declares it: exporters write those of a loop with one dimension, too.
Result<Expr> AsDeclared(NodeReader& node, const Expr& scalar, const OnnxInput& input) {
  return node.Reshape(scalar, input.shape && input.shape->size() == 1 ? Shape{1} : Shape{});
}

Result<std::vector<Expr>> ReadLoop(NodeReader& node) {
  const std::shared_ptr<const OnnxGraph> body = COLLAGE_TRY(node.GraphAttribute("body"));
  const Expr truth = MakeConstant(Tensor::Scalar(true, DType::kBool));
  Iteration loop;
  loop.body = body.get();
  loop.function_name = "loop";
  loop.gives_condition = true;
  loop.condition = truth;
  if (node.HasInput(0)) loop.trip_count = COLLAGE_TRY(AsScalar(node, COLLAGE_TRY(node.Input(0)), "the trip count"));
  if (node.HasInput(1)) loop.condition = COLLAGE_TRY(AsScalar(node, COLLAGE_TRY(node.Input(1)), "the condition"));
  for (size_t i = 2; i < node.input_count(); ++i) loop.states.push_back(COLLAGE_TRY(node.Input(i)));
  if (body->inputs.size() != loop.states.size() + 2 || body->outputs.size() <= loop.states.size()) {
    return Fail("its body has " + std::to_string(body->inputs.size()) + " inputs and " + std::to_string(body->outputs.size()) +
                " outputs, expected " + std::to_string(loop.states.size() + 2) + " inputs and at least " +
                std::to_string(loop.states.size() + 1) + " outputs");
  }
  loop.slices = body->outputs.size() - loop.states.size() - 1;
  loop.backward.assign(loop.slices, false);
  loop.inputs = [&](const Expr& index, const std::vector<Expr>& states) -> Result<std::vector<Expr>> {
    // Where the body runs, the condition holds.
    std::vector<Expr> inputs{COLLAGE_TRY(AsDeclared(node, index, body->inputs[0])), COLLAGE_TRY(AsDeclared(node, truth, body->inputs[1]))};
    inputs.insert(inputs.end(), states.begin(), states.end());
    return inputs;
  };
  return ReadIteration(node, loop);
}

/// A scan without batches, over sequences that are inputs of the node or a part of one.
struct ScanForm {
  const OnnxGraph* body;
  std::vector<Expr> states;
  std::vector<Expr> sequences;
  std::vector<int64_t> input_axes;
  std::vector<int64_t> output_axes;
  std::vector<int64_t> input_directions;
  std::vector<int64_t> output_directions;
  Expr length = nullptr;  ///< of the sequences, an int64 scalar; null where they are of full length
};

Result<std::vector<int64_t>> Directions(const NodeReader& node, const std::string& name, size_t count) {
  std::vector<int64_t> directions = COLLAGE_TRY(node.Ints(name, std::vector<int64_t>(count, 0)));
  const bool fits =
      directions.size() == count && std::all_of(directions.begin(), directions.end(), [](int64_t d) { return d == 0 || d == 1; });
  return fits ? Result<std::vector<int64_t>>(directions)
              : Fail("attribute '" + name + "' must be " + std::to_string(count) + " times 0 or 1");
}

Result<int64_t> LengthOf(const ScanForm& scan, std::vector<int64_t>& axes) {
  std::optional<int64_t> length;
  for (size_t i = 0; i < scan.sequences.size(); ++i) {
    const TensorType type = COLLAGE_TRY(TensorTypeOf(scan.sequences[i]));
    axes.push_back(COLLAGE_TRY(NormalizeAxis(scan.input_axes[i], type.shape.size())));
    const int64_t extent = type.shape[static_cast<size_t>(axes.back())];
    if (length.value_or(extent) != extent)
      return Fail("scan input " + std::to_string(i) + " is " + std::to_string(extent) + " long, the first one " + std::to_string(*length));
    length = extent;
  }
  if (!length) return Fail("has no scan input");
  return *length;
}

Result<std::vector<Expr>> ReadScanForm(NodeReader& node, const ScanForm& scan) {
  std::vector<int64_t> axes;
  const int64_t length = COLLAGE_TRY(LengthOf(scan, axes));
  Iteration loop;
  loop.body = scan.body;
  loop.function_name = "scan";
  loop.trip_count = MakeConstant(Tensor::Scalar(length, DType::kInt64));
  loop.condition = MakeConstant(Tensor::Scalar(true, DType::kBool));
  loop.states = scan.states;
  loop.sequences = scan.sequences;
  loop.slices = scan.output_axes.size();
  loop.length = scan.length;
  for (const int64_t direction : scan.output_directions) loop.backward.push_back(direction == 1);
  loop.inputs = [&](const Expr& index, const std::vector<Expr>& states) {
    Formula formula(node, DType::kInt64);
    std::vector<Expr> inputs = states;
    for (size_t i = 0; i < scan.sequences.size(); ++i) {
      const bool backward = scan.input_directions[i] == 1;
      Expr place = index;
      if (backward && scan.length == nullptr) place = formula.Call("subtract", static_cast<double>(length - 1), index);
      // Behind the end of a sequence nobody looks at what is taken.
      if (backward && scan.length != nullptr)
        place = formula.Call("maximum", formula.Call("subtract", formula.Call("subtract", scan.length, 1.0), index), 0.0);
      inputs.push_back(formula.Apply("take", {scan.sequences[i], place}, {{"axis", axes[i]}}));
    }
    return formula.DoneAll(inputs);
  };
  std::vector<Expr> outputs = COLLAGE_TRY(ReadIteration(node, loop));
  for (size_t i = 0; i < scan.output_axes.size(); ++i) {
    Expr& stack = outputs[scan.states.size() + i];
    const TensorType type = COLLAGE_TRY(TensorTypeOf(stack));
    const int64_t axis = COLLAGE_TRY(NormalizeAxis(scan.output_axes[i], type.shape.size()));
    if (axis == 0) continue;
    std::vector<int64_t> order;
    for (int64_t d = 1; d < static_cast<int64_t>(type.shape.size()); ++d) order.push_back(d);
    order.insert(order.begin() + axis, 0);
    stack = COLLAGE_TRY(node.Call("transpose", {stack}, {{"axes", order}}));
  }
  return outputs;
}

/// The node's inputs from `first` on as states and sequences; the attributes that all opsets have.
Result<ScanForm> ReadForm(NodeReader& node, const OnnxGraph& body, size_t first) {
  const int64_t sequences = COLLAGE_TRY(node.Int("num_scan_inputs", 0));
  std::vector<Expr> all;
  for (size_t i = first; i < node.input_count(); ++i) all.push_back(COLLAGE_TRY(node.Input(i)));
  const auto given = static_cast<int64_t>(all.size());
  if (sequences < 1 || sequences > given)
    return Fail("attribute 'num_scan_inputs' is " + std::to_string(sequences) + ", expected 1 to " + std::to_string(given));
  ScanForm scan;
  scan.body = &body;
  scan.states.assign(all.begin(), all.end() - sequences);
  scan.sequences.assign(all.end() - sequences, all.end());
  if (body.outputs.size() < scan.states.size()) {
    return Fail("its body has " + std::to_string(body.outputs.size()) + " outputs, expected at least " +
                std::to_string(scan.states.size()));
  }
  const size_t slices = body.outputs.size() - scan.states.size();
  const size_t count = scan.sequences.size();
  scan.input_axes = COLLAGE_TRY(node.Ints("scan_input_axes", std::vector<int64_t>(count, 0)));
  scan.output_axes = COLLAGE_TRY(node.Ints("scan_output_axes", std::vector<int64_t>(slices, 0)));
  if (scan.input_axes.size() != count || scan.output_axes.size() != slices)
    return Fail("attributes 'scan_input_axes' and 'scan_output_axes' must have " + std::to_string(count) + " and " +
                std::to_string(slices) + " values");
  scan.input_directions = COLLAGE_TRY(Directions(node, node.opset() < 9 ? "directions" : "scan_input_directions", count));
  scan.output_directions = COLLAGE_TRY(Directions(node, "scan_output_directions", slices));
  return scan;
}

Result<std::vector<Expr>> TakeBatch(NodeReader& node, std::vector<Expr> values, int64_t number) {
  for (Expr& value : values)
    value = COLLAGE_TRY(node.Call("take", {value, MakeConstant(Tensor::Scalar(number, DType::kInt64))}, {{"axis", 0}}));
  return values;
}

Result<Expr> LengthInBatch(NodeReader& node, int64_t batch, int64_t number) {
  const Expr lengths = COLLAGE_TRY(node.Input(0));
  const TensorType type = COLLAGE_TRY(TensorTypeOf(lengths));
  if (type.dtype == DType::kInt64 && type.shape == Shape{batch}) return COLLAGE_TRY(TakeBatch(node, {lengths}, number))[0];
  return Fail("input 0 (sequence_lens) is " + ToString(type) + "; an int64 for each of " + std::to_string(batch) + " sequences is right");
}

/// Opset 8: everything has a batch as its first dimension, and each of it is scanned by itself.
Result<std::vector<Expr>> ReadBatchedScan(NodeReader& node, const ScanForm& scan) {
  const TensorType first = COLLAGE_TRY(TensorTypeOf(scan.sequences[0]));
  if (first.shape.empty() || first.shape[0] < 1) return Fail("scan input 0 is " + ToString(first) + ", expected a batch of sequences");
  std::vector<std::vector<Expr>> parts(scan.states.size() + scan.output_axes.size());
  for (int64_t number = 0; number < first.shape[0]; ++number) {
    ScanForm one = scan;
    one.states = COLLAGE_TRY(TakeBatch(node, scan.states, number));
    one.sequences = COLLAGE_TRY(TakeBatch(node, scan.sequences, number));
    if (node.HasInput(0)) one.length = COLLAGE_TRY(LengthInBatch(node, first.shape[0], number));
    const std::vector<Expr> outputs = COLLAGE_TRY(ReadScanForm(node, one));
    for (size_t i = 0; i < outputs.size(); ++i) parts[i].push_back(outputs[i]);
  }
  std::vector<Expr> outputs;
  for (const std::vector<Expr>& part : parts) outputs.push_back(COLLAGE_TRY(Stack(node, part)));
  return outputs;
}

Result<std::vector<Expr>> ReadScan(NodeReader& node) {
  const std::shared_ptr<const OnnxGraph> body = COLLAGE_TRY(node.GraphAttribute("body"));
  const bool has_batches = node.opset() < 9;
  const ScanForm scan = COLLAGE_TRY(ReadForm(node, *body, has_batches ? 1 : 0));
  return has_batches ? ReadBatchedScan(node, scan) : ReadScanForm(node, scan);
}

}  // namespace

OperatorFamily ControlFlowFamily() {
  static constexpr ReadRow kRead[] = {{"If", ReadIf}, {"Loop", ReadLoop, true}, {"Scan", ReadScan}};
  return {kRead, {}};
}

}  // namespace collage::onnx_io
