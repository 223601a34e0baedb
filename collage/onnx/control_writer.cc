#include "collage/onnx/control_writer.h"

#include <algorithm>

#include "collage/onnx/attribute_message.h"
#include "onnx_message.pb.h"

namespace collage::onnx_io {
namespace {

using Step = PartitionedModel::Step;

const TensorType kCondition{{}, DType::kBool};
const TensorType kNumber{{}, DType::kInt64};
// A node that computes zeros, and the shape that it takes, need about as many bytes in the file.
constexpr size_t kMostStoredZeros = 256;

std::vector<std::string> Pick(const std::vector<size_t>& tensors, const std::vector<std::string>& names) {
  std::vector<std::string> picked;
  for (const size_t tensor : tensors) picked.push_back(names[tensor]);
  return picked;
}

std::vector<TensorType> TypesOf(const std::vector<size_t>& tensors, const PartitionedModel::Function& function) {
  std::vector<TensorType> types;
  for (const size_t tensor : tensors) types.push_back(function.types[tensor]);
  return types;
}

std::vector<std::string> WantedOf(const std::vector<size_t>& tensors, const std::unordered_map<size_t, std::string>& wanted) {
  std::vector<std::string> names;
  for (const size_t tensor : tensors) {
    const auto found = wanted.find(tensor);
    names.push_back(found == wanted.end() ? "" : found->second);
  }
  return names;
}

std::string AddInput(const std::string& name, const TensorType& type, onnx_message::GraphProto& graph) {
  onnx_message::ValueInfoProto& info = *graph.add_input();
  info.set_name(name);
  SetType(type, info);
  return name;
}

void SetGraphAttribute(const std::string& name, onnx_message::GraphProto& graph, onnx_message::NodeProto& node) {
  onnx_message::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx_message::AttributeProto::GRAPH);
  graph.set_name(node.name() + "_" + name);
  attribute.mutable_g()->Swap(&graph);
}

/// Says what a graph inside of a node gives.
void SetOutputs(const std::vector<std::string>& names, const std::vector<TensorType>& types, onnx_message::GraphProto& graph) {
  for (size_t i = 0; i < names.size(); ++i) {
    onnx_message::ValueInfoProto& info = *graph.add_output();
    info.set_name(names[i]);
    SetType(types[i], info);
  }
}

}  // namespace

Status ControlWriter::WriteSharedFunctions() {
  for (const size_t function : graph_.order()) {
    if (graph_.IsShared(function)) COLLAGE_TRY_STATUS(WriteSharedFunction(function));
  }
  return {};
}

Status ControlWriter::WriteSharedFunction(size_t function) {
  const PartitionedModel::Function& description = model_.functions[function];
  onnx_message::GraphProto graph;
  GraphScope scope{graph};
  parts_.TakeWeightsRead();
  Names inputs;
  for (size_t i = 0; i < description.parameters; ++i) inputs.push_back(parts_.names().Fresh("input"));
  const Names outputs = parts_.AsResults(COLLAGE_TRY(WriteInPlace(function, inputs, {}, scope)), scope);
  SharedFunction& shared = shared_[function];
  shared.weights = parts_.TakeWeightsRead();
  onnx_message::FunctionProto written;
  for (const Names* names : {&inputs, &shared.weights}) {
    for (const std::string& name : *names) written.add_input(name);
  }
  for (const std::string& name : outputs) written.add_output(name);
  for (onnx_message::NodeProto& node : *graph.mutable_node()) written.add_node()->Swap(&node);
  for (const auto& [domain, version] : {std::pair("", parts_.opset()), std::pair(kPartitionDomain, int64_t{1})}) {
    onnx_message::OperatorSetIdProto& import = *written.add_opset_import();
    import.set_domain(domain);
    import.set_version(version);
  }
  shared.name = parts_.AddFunction(description.name, written);
  return {};
}

Result<ControlWriter::Names> ControlWriter::WriteCall(size_t function, Names inputs, const Names& wanted, GraphScope& scope) {
  if (graph_.IsShared(function)) return CallShared(function, std::move(inputs), wanted, scope);
  return WriteInPlace(function, std::move(inputs), wanted, scope);
}

Result<ControlWriter::Names> ControlWriter::WriteInPlace(size_t function, Names inputs, const Names& wanted, GraphScope& scope) {
  if (graph_.IsRecursive(function)) return WriteLoop(function, inputs, wanted, scope);
  Frame frame = Enter(function, std::move(inputs));
  const PartitionedModel::Function& description = model_.functions[function];
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i].empty()) frame.wanted.emplace(description.results[i], wanted[i]);
  }
  COLLAGE_TRY_STATUS(WriteSteps(frame, description.steps.size(), scope));
  return Pick(description.results, frame.names);
}

ControlWriter::Names ControlWriter::CallShared(size_t function, Names inputs, const Names& wanted, GraphScope& scope) {
  const SharedFunction& shared = shared_.at(function);
  parts_.NoteWeightsRead(shared.weights);
  inputs.insert(inputs.end(), shared.weights.begin(), shared.weights.end());
  const PartitionedModel::Function& description = model_.functions[function];
  Names outputs = Outputs("tensor", TypesOf(description.results, description), wanted, scope);
  parts_.AddNode(shared.name, shared.name, inputs, outputs, scope).set_domain(kPartitionDomain);
  return outputs;
}

ControlWriter::Frame ControlWriter::Enter(size_t function, Names inputs) {
  const PartitionedModel::Function& description = model_.functions[function];
  Frame frame{function, std::move(inputs)};
  frame.names.resize(description.types.size());
  for (const auto& [tensor, value] : description.constants) frame.names[tensor] = parts_.AddWeight("constant", value);
  return frame;
}

Status ControlWriter::WriteSteps(Frame& frame, size_t end, GraphScope& scope) {
  std::vector<Frame> inner;  // in the place of calls, each in that before
  while (true) {
    Frame& at = inner.empty() ? frame : inner.back();
    const PartitionedModel::Function& function = model_.functions[at.function];
    const bool is_done = at.next == (inner.empty() ? end : function.steps.size());
    if (is_done && inner.empty()) return {};
    Names given;
    if (is_done) {
      given = Pick(function.results, at.names);
      inner.pop_back();
    } else {
      const Step& step = function.steps[at.next++];
      if (step.kind == Step::Kind::kCall && !graph_.IsShared(step.callee) && !graph_.IsRecursive(step.callee)) {
        Frame called = Enter(step.callee, Pick(step.inputs, at.names));
        const Names wanted = WantedOf(step.outputs, at.wanted);
        for (size_t i = 0; i < wanted.size(); ++i) {
          if (!wanted[i].empty()) called.wanted.emplace(model_.functions[step.callee].results[i], wanted[i]);
        }
        inner.push_back(std::move(called));
        continue;
      }
      given = COLLAGE_TRY(WriteStep(step, at, scope));
    }
    Frame& caller = inner.empty() ? frame : inner.back();
    const std::vector<size_t>& outputs = model_.functions[caller.function].steps[caller.next - 1].outputs;
    for (size_t i = 0; i < outputs.size(); ++i) caller.names[outputs[i]] = given[i];
  }
}

Result<ControlWriter::Names> ControlWriter::WriteStep(const Step& step, const Frame& frame, GraphScope& scope) {
  switch (step.kind) {
    case Step::Kind::kBlock:
      return WriteBlockStep(step, frame, scope);
    case Step::Kind::kBranch:
      return WriteBranch(step, frame, scope);
    case Step::Kind::kCall:
      break;
  }
  return WriteCall(step.callee, Pick(step.inputs, frame.names), WantedOf(step.outputs, frame.wanted), scope);
}

Result<ControlWriter::Names> ControlWriter::WriteBlockStep(const Step& step, const Frame& frame, GraphScope& scope) {
  const PartitionedBlock& block = model_.blocks[step.callee];
  if (block.inputs.size() != step.inputs.size() || block.outputs.size() != step.outputs.size())
    return Fail("@" + model_.functions[frame.function].name + ": a block has another number of inputs or outputs than its call");
  std::unordered_map<size_t, std::string> wanted;
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const auto name = frame.wanted.find(step.outputs[i]);
    if (name != frame.wanted.end()) wanted.emplace(block.outputs[i], name->second);
  }
  return parts_.WriteBlock(block, Pick(step.inputs, frame.names), wanted, scope);
}

Result<ControlWriter::Names> ControlWriter::WriteBranch(const Step& step, const Frame& frame, GraphScope& scope) {
  onnx_message::GraphProto then_graph;
  onnx_message::GraphProto else_graph;
  GraphScope then_scope{then_graph};
  GraphScope else_scope{else_graph};
  Side then_side{then_scope, COLLAGE_TRY(WriteCall(step.callee, Pick(step.inputs, frame.names), {}, then_scope))};
  Side else_side{else_scope, COLLAGE_TRY(WriteCall(step.otherwise, Pick(step.otherwise_inputs, frame.names), {}, else_scope))};
  return AddIf(frame.names[step.condition], std::move(then_side), std::move(else_side),
               TypesOf(step.outputs, model_.functions[frame.function]), WantedOf(step.outputs, frame.wanted), scope);
}

ControlWriter::Names ControlWriter::AddIf(const std::string& condition, Side then_side, Side else_side, const Types& types,
                                          const Names& wanted, GraphScope& scope) {
  Names results = then_side.results;
  std::vector<size_t> chosen;
  for (size_t i = 0; i < results.size(); ++i) {
    if (then_side.results[i] != else_side.results[i]) chosen.push_back(i);
  }
  if (chosen.empty()) return results;
  const auto pick = [&](const auto& all) {
    std::decay_t<decltype(all)> picked;
    for (const size_t i : chosen) picked.push_back(i < all.size() ? all[i] : typename std::decay_t<decltype(all)>::value_type{});
    return picked;
  };
  const Types types_of_chosen = pick(types);
  const Names outputs = Outputs("chosen", types_of_chosen, pick(wanted), scope);
  onnx_message::NodeProto& node = parts_.AddNode("If", "if", {condition}, outputs, scope);
  for (const auto& [name, side] : {std::pair("then_branch", &then_side), std::pair("else_branch", &else_side)}) {
    SetOutputs(parts_.AsResults(pick(side->results), side->scope), types_of_chosen, side->scope.graph);
    SetGraphAttribute(name, side->scope.graph, node);
  }
  for (size_t i = 0; i < chosen.size(); ++i) results[chosen[i]] = outputs[i];
  return results;
}

Result<ControlWriter::Names> ControlWriter::WriteLoop(size_t function, const Names& inputs, const Names& wanted, GraphScope& scope) {
  const LoopForm form = FindLoopForm(model_, graph_, function);
  if (form.natural) return WriteNaturalLoop(form, inputs, wanted, scope);
  onnx_message::GraphProto graph;
  GraphScope body_scope{graph};
  OpenBody(graph);
  Body body{form, {kCondition}, {""}, inputs};
  Carried carried;
  const auto carry = [&](const std::string& hint, const TensorType& type, const std::string& first) {
    body.types.push_back(type);
    body.inputs.push_back(AddInput(parts_.names().Fresh(hint), type, graph));
    carried.first.push_back(first);
    carried.types.push_back(type);
    carried.wanted.emplace_back();
  };
  if (form.headers.size() > 1) carry("turn", kNumber, Scalar(static_cast<int64_t>(form.first), DType::kInt64));
  const size_t first_state = carried.first.size();
  for (const LoopForm::State& state : form.states)
    carry("state", state.type, state.header == form.first ? inputs[state.parameter] : Zeros(state.type, scope));
  const std::vector<TensorType> types = TypesOf(model_.functions[function].results, model_.functions[function]);
  std::vector<std::optional<size_t>> places;  // of results, among what is carried
  for (size_t i = 0; i < form.results.size(); ++i) {
    const std::optional<LoopForm::Slot>& slot = form.results[i];
    if (slot) {
      places.push_back(slot->is_state ? std::optional(first_state + slot->index) : std::nullopt);
    } else {
      places.emplace_back(carried.first.size());
      carry("result", types[i], Zeros(types[i], scope));
    }
    if (places[i] && i < wanted.size() && carried.wanted[*places[i]].empty()) carried.wanted[*places[i]] = wanted[i];
  }
  carried.next = COLLAGE_TRY(WriteTurn(0, form.headers.size(), body, body_scope));
  const Names outputs = AddLoop(model_.functions[function].name, Scalar(1, DType::kBool), carried, body_scope, scope);
  Names results;
  for (size_t i = 0; i < places.size(); ++i) results.push_back(places[i] ? outputs[*places[i]] : inputs[form.results[i]->index]);
  return results;
}

Result<ControlWriter::Names> ControlWriter::WriteNaturalLoop(const LoopForm& form, const Names& inputs, const Names& wanted,
                                                             GraphScope& scope) {
  const PartitionedModel::Function& function = model_.functions[form.headers[0]];
  const Step& step = function.steps[0];
  const auto condition = static_cast<ptrdiff_t>(form.natural->state);
  const bool goes_on_where = form.natural->goes_on_where;
  onnx_message::GraphProto graph;
  GraphScope body_scope{graph};
  const std::string holds = OpenBody(graph);
  Body body{form, {kCondition}, {""}, inputs};
  Carried carried;
  for (const LoopForm::State& state : form.states) {
    body.types.push_back(state.type);
    // In an iteration the condition is known.
    const bool is_condition = state.parameter == step.condition;
    const std::string known = goes_on_where ? holds : Scalar(0, DType::kBool);
    body.inputs.push_back(is_condition ? known : AddInput(parts_.names().Fresh("state"), state.type, graph));
    carried.first.push_back(inputs[state.parameter]);
    carried.types.push_back(state.type);
    carried.wanted.emplace_back();
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (form.results[i]->is_state) carried.wanted[form.results[i]->index] = wanted[i];
  }
  const Names parameters = ParametersOf(0, body);
  const std::vector<size_t>& arguments = goes_on_where ? step.inputs : step.otherwise_inputs;
  const Names next = COLLAGE_TRY(
      WriteSideOfPath(form.headers[0], goes_on_where ? step.callee : step.otherwise, Pick(arguments, parameters), body, body_scope));
  carried.next.assign(next.begin() + 1, next.end());
  // It is a Loop's own, and no state.
  std::string first = carried.first[form.natural->state];
  std::string then = carried.next[form.natural->state];
  for (Names* names : {&carried.first, &carried.next, &carried.wanted}) names->erase(names->begin() + condition);
  carried.types.erase(carried.types.begin() + condition);
  if (!goes_on_where) {
    first = Not(first, scope);
    then = Not(then, body_scope);
  }
  carried.next.insert(carried.next.begin(), then);
  Names outputs;
  if (!carried.first.empty()) outputs = AddLoop(function.name, first, carried, body_scope, scope);
  outputs.insert(outputs.begin() + condition, Scalar(goes_on_where ? 0 : 1, DType::kBool));
  Names results;
  for (const std::optional<LoopForm::Slot>& slot : form.results) results.push_back((slot->is_state ? outputs : inputs)[slot->index]);
  return results;
}

std::string ControlWriter::OpenBody(onnx_message::GraphProto& graph) {
  AddInput(parts_.names().Fresh("iteration"), kNumber, graph);
  return AddInput(parts_.names().Fresh("goes_on"), kCondition, graph);
}

Result<ControlWriter::Names> ControlWriter::WriteTurn(size_t begin, size_t end, const Body& body, GraphScope& scope) {
  if (end - begin == 1) return WritePath(body.form.headers[begin], ParametersOf(begin, body), body, scope);
  const size_t middle = (begin + end) / 2;
  const std::string is_before = parts_.AddTensor("is_before", kCondition, scope);
  parts_.AddNode("Less", is_before, {body.inputs[1], Scalar(static_cast<int64_t>(middle), DType::kInt64)}, {is_before}, scope);
  onnx_message::GraphProto then_graph;
  onnx_message::GraphProto else_graph;
  GraphScope then_scope{then_graph};
  GraphScope else_scope{else_graph};
  Side then_side{then_scope, COLLAGE_TRY(WriteTurn(begin, middle, body, then_scope))};
  Side else_side{else_scope, COLLAGE_TRY(WriteTurn(middle, end, body, else_scope))};
  return AddIf(is_before, std::move(then_side), std::move(else_side), body.types, {}, scope);
}

Result<ControlWriter::Names> ControlWriter::WritePath(size_t function, Names inputs, const Body& body, GraphScope& scope) {
  while (true) {
    Frame frame = Enter(function, std::move(inputs));
    const PartitionedModel::Function& description = model_.functions[function];
    const Step* tail = graph_.TailOf(function);
    COLLAGE_TRY_STATUS(WriteSteps(frame, description.steps.size() - (tail == nullptr ? 0 : 1), scope));
    if (tail == nullptr) return End(Pick(description.results, frame.names), body);
    inputs = Pick(tail->inputs, frame.names);
    if (tail->kind == Step::Kind::kBranch) {
      onnx_message::GraphProto then_graph;
      onnx_message::GraphProto else_graph;
      GraphScope then_scope{then_graph};
      GraphScope else_scope{else_graph};
      Side then_side{then_scope, COLLAGE_TRY(WriteSideOfPath(function, tail->callee, std::move(inputs), body, then_scope))};
      inputs = Pick(tail->otherwise_inputs, frame.names);
      Side else_side{else_scope, COLLAGE_TRY(WriteSideOfPath(function, tail->otherwise, std::move(inputs), body, else_scope))};
      return AddIf(frame.names[tail->condition], std::move(then_side), std::move(else_side), body.types, {}, scope);
    }
    if (graph_.IsHeader(tail->callee)) return Again(tail->callee, inputs, body);
    function = tail->callee;
  }
}

Result<ControlWriter::Names> ControlWriter::WriteSideOfPath(size_t caller, size_t callee, Names inputs, const Body& body,
                                                            GraphScope& scope) {
  if (!graph_.AreOfOneCircle(caller, callee)) return End(COLLAGE_TRY(WriteCall(callee, std::move(inputs), {}, scope)), body);
  return graph_.IsHeader(callee) ? Again(callee, inputs, body) : WritePath(callee, std::move(inputs), body, scope);
}

ControlWriter::Names ControlWriter::Again(size_t header, const Names& arguments, const Body& body) {
  const std::vector<size_t>& headers = body.form.headers;
  const auto number = static_cast<size_t>(std::find(headers.begin(), headers.end(), header) - headers.begin());
  Names next = body.inputs;
  next[0] = Scalar(1, DType::kBool);
  if (headers.size() > 1) next[1] = Scalar(static_cast<int64_t>(number), DType::kInt64);
  for (size_t i = 0; i < body.form.states.size(); ++i) {
    if (body.form.states[i].header == number) next[body.FirstState() + i] = arguments[body.form.states[i].parameter];
  }
  return next;
}

ControlWriter::Names ControlWriter::End(const Names& results, const Body& body) {
  Names next = body.inputs;
  next[0] = Scalar(0, DType::kBool);
  size_t place = body.FirstState() + body.form.states.size();
  for (size_t i = 0; i < results.size(); ++i) {
    if (!body.form.results[i]) next[place++] = results[i];
  }
  return next;
}

ControlWriter::Names ControlWriter::ParametersOf(size_t header, const Body& body) {
  Names names;
  for (const LoopForm::Slot& slot : body.form.parameters[header])
    names.push_back(slot.is_state ? body.inputs[body.FirstState() + slot.index] : body.arguments[slot.index]);
  return names;
}

ControlWriter::Names ControlWriter::AddLoop(const std::string& hint, const std::string& condition, const Carried& carried, GraphScope& body,
                                            GraphScope& scope) {
  Names inputs = {"", condition};
  inputs.insert(inputs.end(), carried.first.begin(), carried.first.end());
  Names outputs = Outputs("last", carried.types, carried.wanted, scope);
  onnx_message::NodeProto& node = parts_.AddNode("Loop", hint, inputs, outputs, scope);
  Types types = carried.types;
  types.insert(types.begin(), kCondition);
  SetOutputs(parts_.AsResults(carried.next, body), types, body.graph);
  SetGraphAttribute("body", body.graph, node);
  return outputs;
}

std::string ControlWriter::Not(const std::string& name, GraphScope& scope) {
  std::string negated = parts_.AddTensor("not", kCondition, scope);
  parts_.AddNode("Not", negated, {name}, {negated}, scope);
  return negated;
}

std::string ControlWriter::Scalar(int64_t value, DType dtype) {
  const std::string key = std::string(Name(dtype)) + "_" + std::to_string(value);
  return parts_.AddWeight(key, constants_.try_emplace(key, Tensor::Scalar(value, dtype)).first->second);
}

std::string ControlWriter::Zeros(const TensorType& type, GraphScope& scope) {
  const bool is_computed = type.ByteCount() > kMostStoredZeros && type.dtype != DType::kString && BitWidth(type.dtype) >= 8;
  if (!is_computed) {
    const std::string key = "zeros_" + ToString(type);
    return parts_.AddWeight("zeros", constants_.try_emplace(key, Tensor(type)).first->second);
  }
  const TensorType of_shape{{static_cast<int64_t>(type.shape.size())}, DType::kInt64};
  std::string zeros = parts_.AddTensor("zeros", type, scope);
  const std::string shape = parts_.AddWeight("shape", Tensor::FromVector(of_shape, type.shape));
  onnx_message::NodeProto& node = parts_.AddNode("ConstantOfShape", zeros, {shape}, {zeros}, scope);
  const Status status = SetAttribute("value", Tensor(TensorType{{1}, type.dtype}), *node.add_attribute());
  COLLAGE_CHECK(status.has_value(), "zeros of less than a byte an element are stored");
  return zeros;
}

ControlWriter::Names ControlWriter::Outputs(const std::string& hint, const Types& types, const Names& wanted, GraphScope& scope) {
  Names names;
  for (size_t i = 0; i < types.size(); ++i) {
    const bool is_wanted = i < wanted.size() && !wanted[i].empty();
    names.push_back(is_wanted ? wanted[i] : parts_.AddTensor(hint, types[i], scope));
  }
  return names;
}

}  // namespace collage::onnx_io
