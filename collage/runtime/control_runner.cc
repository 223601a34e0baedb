#include "collage/runtime/control_runner.h"

#include <algorithm>
#include <cstring>

#include "collage/support/memory.h"

namespace collage {
namespace {

using Step = ControlProgram::Step;

constexpr size_t kDeepestCall = 1000000;

template <class Visitor>
void ForEachInput(const Step& step, Visitor&& visit) {
  for (const size_t input : step.inputs) visit(input);
  if (step.kind != Step::Kind::kBranch) return;
  for (const size_t input : step.otherwise_inputs) visit(input);
  visit(step.condition);
}

/// For each step the tensors that nothing needs behind it: its last inputs, and outputs of its own that nobody reads.
std::vector<std::vector<size_t>> LastUses(const ControlProgram::Function& function) {
  std::vector<std::vector<size_t>> last(function.steps.size());
  std::vector<bool> needed(function.types.size(), false);
  for (const size_t result : function.results) needed[result] = true;
  for (size_t i = function.steps.size(); i-- > 0;) {
    const auto note = [&](size_t tensor) {
      if (!needed[tensor]) last[i].push_back(tensor);
      needed[tensor] = true;
    };
    for (const size_t output : function.steps[i].outputs) note(output);
    ForEachInput(function.steps[i], note);
  }
  return last;
}

/// For each output of each step the tensor that it may take over: an input that the block updates, is given once and nothing needs behind
/// the step.
std::vector<ControlRunner::Updates> UpdatedTensors(const ControlProgram::Function& function, const std::vector<std::vector<size_t>>& last,
                                                   const std::vector<ControlRunner::Updates>& of_blocks) {
  std::vector<ControlRunner::Updates> updated(function.steps.size());
  for (size_t i = 0; i < function.steps.size(); ++i) {
    const Step& step = function.steps[i];
    if (step.kind != Step::Kind::kBlock) continue;
    for (const std::optional<size_t>& input : of_blocks[step.callee]) {
      const std::optional<size_t> tensor = input ? std::optional(step.inputs[*input]) : std::nullopt;
      const bool may_be = tensor && std::find(last[i].begin(), last[i].end(), *tensor) != last[i].end() &&
                          std::count(step.inputs.begin(), step.inputs.end(), *tensor) == 1;
      updated[i].push_back(may_be ? tensor : std::nullopt);
    }
  }
  return updated;
}

}  // namespace

ControlRunner::ControlRunner(ControlProgram program, std::vector<Signature> blocks, std::vector<Updates> updates)
    : program_(std::move(program)), signatures_(std::move(blocks)), updates_(std::move(updates)), idle_frames_(program_.functions.size()) {
  for (const ControlProgram::Function& function : program_.functions) {
    last_uses_.push_back(LastUses(function));
    updated_.push_back(UpdatedTensors(function, last_uses_.back(), updates_));
    std::vector<bool> is_tail(function.steps.size(), false);
    if (!function.steps.empty())
      is_tail.back() = function.steps.back().kind != Step::Kind::kBlock && function.steps.back().outputs == function.results;
    is_tail_.push_back(std::move(is_tail));
    constants_.emplace_back();
    for (const auto& [tensor, value] : function.constants) {
      buffers_.push_back({value, 0, nullptr});
      constants_.back().push_back(&buffers_.back());
    }
  }
  for (const Signature& signature : signatures_) {
    Block block;
    block.idle.resize(signature.outputs.size());
    block.inputs.resize(signature.inputs.size());
    block.outputs.resize(signature.outputs.size());
    blocks_.push_back(std::move(block));
  }
  for (size_t entry = 0; entry < program_.entries; ++entry)
    input_buffers_.resize(std::max(input_buffers_.size(), program_.functions[entry].parameters));
}

void ControlRunner::Hold(Buffer* buffer) { ++buffer->uses; }

void ControlRunner::Drop(Buffer*& buffer) {
  if (buffer != nullptr && --buffer->uses == 0 && buffer->home != nullptr) buffer->home->push_back(buffer);
  buffer = nullptr;
}

std::vector<ControlRunner::Buffer*> ControlRunner::EmptyTensors(size_t function) {
  if (idle_frames_[function].empty()) return std::vector<Buffer*>(program_.functions[function].types.size(), nullptr);
  std::vector<Buffer*> tensors = std::move(idle_frames_[function].back());
  idle_frames_[function].pop_back();
  return tensors;
}

void ControlRunner::Release(Frame& frame) {
  for (Buffer*& buffer : frame.tensors) Drop(buffer);
  idle_frames_[frame.function].push_back(std::move(frame.tensors));
}

void ControlRunner::ReleaseAll() {
  for (Frame& frame : frames_) Release(frame);
  frames_.clear();
  for (Buffer*& buffer : passed_) Drop(buffer);
  passed_.clear();
}

Result<ControlRunner::Buffer*> ControlRunner::Take(Block& block, size_t output, const TensorType& type) {
  if (block.idle[output].empty()) {
    bytes_ += type.ByteCount();
    if (bytes_ > UsableMemory()) return Fail("the tensors that are alive at once need more memory than there is");
    buffers_.push_back({Tensor(type), 0, &block.idle[output]});
    return &buffers_.back();
  }
  Buffer* buffer = block.idle[output].back();
  block.idle[output].pop_back();
  return buffer;
}

ControlRunner::Buffer* ControlRunner::Updated(const Frame& frame, size_t output) const {
  const std::optional<size_t>& tensor = updated_[frame.function][frame.step][output];
  Buffer* const buffer = tensor ? frame.tensors[*tensor] : nullptr;
  return buffer != nullptr && buffer->uses == 1 && buffer->home != nullptr ? buffer : nullptr;
}

Status ControlRunner::RunOneBlock(const Step& step, const RunBlock& run_block) {
  Frame& frame = frames_.back();
  Block& block = blocks_[step.callee];
  for (size_t i = 0; i < step.inputs.size(); ++i) block.inputs[i] = frame.tensors[step.inputs[i]]->tensor;
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    Buffer* buffer = Updated(frame, i);
    if (buffer == nullptr) buffer = COLLAGE_TRY(Take(block, i, signatures_[step.callee].outputs[i]));
    Hold(buffer);
    frame.tensors[step.outputs[i]] = buffer;
    block.outputs[i] = buffer->tensor;
  }
  return run_block(step.callee, block.inputs, block.outputs);
}

void ControlRunner::Pass(const Frame& frame, const std::vector<size_t>& tensors) {
  for (const size_t tensor : tensors) {
    Hold(frame.tensors[tensor]);
    passed_.push_back(frame.tensors[tensor]);
  }
}

void ControlRunner::DropUnneeded(Frame& frame) const {
  for (const size_t tensor : last_uses_[frame.function][frame.step]) Drop(frame.tensors[tensor]);
}

Status ControlRunner::Call(const Step& step) {
  Frame& frame = frames_.back();
  const bool otherwise = step.kind == Step::Kind::kBranch && !*frame.tensors[step.condition]->tensor.Data<bool>();
  Pass(frame, otherwise ? step.otherwise_inputs : step.inputs);
  if (is_tail_[frame.function][frame.step]) {
    Release(frame);
    frames_.pop_back();
  } else {
    DropUnneeded(frame);
  }
  return Enter(otherwise ? step.otherwise : step.callee);
}

/// With what is passed as its parameters.
Status ControlRunner::Enter(size_t function) {
  if (const std::string& failure = program_.functions[function].failure; !failure.empty()) return Fail(failure);
  if (frames_.size() == kDeepestCall)
    return Fail("function '" + program_.functions[function].name + "' is called " + std::to_string(kDeepestCall) + " levels deep");
  Frame frame{function, 0, EmptyTensors(function)};
  std::copy(passed_.begin(), passed_.end(), frame.tensors.begin());
  passed_.clear();
  for (size_t i = 0; i < constants_[function].size(); ++i) {
    Hold(constants_[function][i]);
    frame.tensors[program_.functions[function].constants[i].first] = constants_[function][i];
  }
  frames_.push_back(std::move(frame));
  return {};
}

/// Passes the results of the function that has just ended to whoever waits for them.
void ControlRunner::Leave() {
  Pass(frames_.back(), program_.functions[frames_.back().function].results);
  Release(frames_.back());
  frames_.pop_back();
  if (frames_.empty()) return;
  Frame& caller = frames_.back();
  const Step& step = program_.functions[caller.function].steps[caller.step];
  for (size_t i = 0; i < step.outputs.size(); ++i) caller.tensors[step.outputs[i]] = passed_[i];
  passed_.clear();
  FinishStep();
}

void ControlRunner::FinishStep() {
  DropUnneeded(frames_.back());
  ++frames_.back().step;
}

Status ControlRunner::Advance(const RunBlock& run_block) {
  const Frame& frame = frames_.back();
  const std::vector<Step>& steps = program_.functions[frame.function].steps;
  if (frame.step == steps.size()) {
    Leave();
    return {};
  }
  const Step& step = steps[frame.step];
  if (step.kind != Step::Kind::kBlock) return Call(step);
  COLLAGE_TRY_STATUS(RunOneBlock(step, run_block));
  FinishStep();
  return {};
}

Status ControlRunner::Run(size_t entry, std::span<const Tensor> inputs, std::span<Tensor> outputs, const RunBlock& run_block) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    input_buffers_[i].tensor = inputs[i];
    Hold(&input_buffers_[i]);
    passed_.push_back(&input_buffers_[i]);
  }
  Status status = Enter(entry);
  while (status && !frames_.empty()) status = Advance(run_block);
  for (size_t i = 0; status && i < outputs.size(); ++i)
    std::memcpy(outputs[i].MutableBytes(), passed_[i]->tensor.Bytes(), outputs[i].ByteCount());
  ReleaseAll();
  return status;
}

}  // namespace collage
