#include "collage/runtime/executable.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "collage/runtime/control_runner.h"
#include "collage/runtime/cpu_context.h"
#include "collage/runtime/kept_off.h"
#include "collage/runtime/memory_plan.h"
#include "collage/runtime/plan_runner.h"
#include "collage/runtime/recorded_steps.h"
#include "collage/support/check.h"
#include "collage/support/clock.h"
#include "collage/support/memory.h"

namespace collage {
namespace {

using Kind = ExecutionPlan::Step::Kind;

bool Overlap(const Tensor& a, const Tensor& b) { return a.Bytes() < b.Bytes() + b.ByteCount() && b.Bytes() < a.Bytes() + a.ByteCount(); }

std::vector<NamedType> TypesOf(const Program& program, const std::vector<Endpoint>& endpoints) {
  std::vector<NamedType> types;
  for (const Endpoint& endpoint : endpoints) types.push_back({endpoint.name, program.values[endpoint.value].type});
  return types;
}

/// "plain@cpu:0 -> plain@opencl:0 of Tensor[(1, 64), float32]".
std::string DescribeTransfer(const ExecutionPlan& plan, const ExecutionPlan::Step& step, const Device& host) {
  const auto place = [&](const Layout& layout, size_t buffer) {
    const auto& context = plan.arenas[plan.buffers[buffer].device].context;
    return layout.ToString() + "@" + ToString(context ? context->device() : host);
  };
  return place(step.from, step.inputs[0]) + " -> " + place(step.to, step.outputs[0]) + " of " + ToString(step.type);
}

StepProfile Describe(const ExecutionPlan& plan, const ExecutionPlan::Step& step, const Program& program, const Device& host) {
  StepProfile profile;
  const auto& context = plan.arenas[step.device].context;
  profile.device = context ? context->device() : host;
  if (step.kind == Kind::kKernel) {
    profile.kind = "kernel";
    profile.record = program.calls[step.call].record;
  } else if (step.kind == Kind::kConversion) {
    profile.kind = "conversion";
    profile.record.name =
        context ? DescribeTransfer(plan, step, host) : step.from.ToString() + " -> " + step.to.ToString() + " of " + ToString(step.type);
  } else if (step.kind == Kind::kTransfer) {
    profile.kind = "transfer";
    profile.record.name = DescribeTransfer(plan, step, host);
  } else if (step.kind == Kind::kWait) {
    profile.kind = "wait";
    profile.record.name = "wait for " + ToString(profile.device);
    // Beside the kernels that it waits for, which tell their own times.
    if (AsCpu(context.get())) profile.device = host;
  } else {
    profile.kind = "copy";
    profile.record.name = "copy of " + std::to_string(step.type.ByteCount()) + " bytes";
  }
  return profile;
}

/// A file may ask for any size; memory that is not there would end the process instead of giving an error.
Status CheckMemory(const ExecutionPlan& plan, const Program& program) {
  size_t bytes = plan.arenas[0].bytes + plan.arenas[0].workspace_bytes;
  for (const auto* endpoints : {&program.inputs, &program.outputs}) {
    for (const Endpoint& endpoint : *endpoints) bytes += program.values[endpoint.value].type.ByteCount();
  }
  for (const ExecutionPlan::ConstantUse& use : plan.constants) bytes += PhysicalByteCount(program.values[use.value].type, use.layout);
  const size_t machine = UsableMemory();
  if (bytes <= machine) return {};
  return Fail("needs " + std::to_string(bytes) + " bytes for its tensors; there are " + std::to_string(machine));
}

}  // namespace

struct Executable::State {
  State(PlanRunner plan_runner) : runner(std::move(plan_runner)), arena(AllocateWeights(runner.memory_bytes())), recorded(runner.plan()) {
    runner.PlaceMemory(arena.get());
  }

  Device device;
  std::vector<ShapeProfile> shapes;
  std::vector<Program::KernelCall> calls;
  PlanRunner runner;           // behind the kernels: it waits for those that still run before they go
  std::vector<Tensor> staged;  // aligned copies of unaligned inputs, made when first needed
  std::shared_ptr<std::byte> arena;
  RecordedSteps recorded;
  std::vector<double> recorded_seconds;     // of a range's steps
  std::vector<const void*> input_pointers;  // of the caller's tensors
  std::vector<void*> output_pointers;       // likewise
  std::optional<KeptOff> kept_off;          // where there are CPUs beside the host
  std::vector<StepProfile> profile;
  std::vector<StreamTimes> stream_times;  // one a step; of kernels in the stream of a CPU
  bool profiling = false;
  std::atomic<uint64_t>* watched = nullptr;
  std::vector<uint32_t> watch_numbers;  // one a step
  uint32_t watch_beat = 0;
  std::atomic_flag running = ATOMIC_FLAG_INIT;
  std::optional<ControlRunner> control;            // with blocks, which have the steps then
  std::vector<std::optional<size_t>> only_blocks;  // of each entry of it
  std::vector<Executable> blocks;
  size_t blocks_bytes = 0;

  [[nodiscard]] const std::vector<ExecutionPlan::Step>& Steps() const { return runner.plan().steps; }
  [[nodiscard]] Status CheckGiven(const ShapeProfile& expected, std::span<const Tensor> given_inputs,
                                  std::span<Tensor> given_outputs) const;
  void Bind(std::span<const Tensor> given_inputs, std::span<Tensor> given_outputs);
  const Tensor& Aligned(size_t input, const Tensor& tensor);
  void SayStep(size_t step);
  void LeaveOtherCpus();
  [[nodiscard]] bool IsTimedInStream(const ExecutionPlan::Step& step) const;
  Status ProfileStep(size_t number);
  void AddToProfile(size_t number, Clock::time_point began, double microseconds);
  Status RunStep(const ExecutionPlan::Step& step);
  Status DoStep(const ExecutionPlan::Step& step);
  Status RunRange(const RecordedSteps::Range& range);
  Status ProfileRange(const RecordedSteps::Range& range);
  Result<RecordedWork*> WorkOf(const RecordedSteps::Range& range);
  [[nodiscard]] std::string DeviceName(const ExecutionPlan::Step& step) const;
  /// Waits for what the step gave to another device than the host.
  Status FinishStep(const ExecutionPlan::Step& step);
  Status RunSteps();
  Status RunAllSteps();
  void GatherProfile();
  Status RunControl(size_t entry, std::span<const Tensor> given_inputs, std::span<Tensor> given_outputs);
  Status RunEntry(size_t entry, std::span<const Tensor> given_inputs, std::span<Tensor> given_outputs);
  Status Run(std::span<const Tensor> given_inputs, std::span<Tensor> given_outputs);
  /// What control flow gives to a block is of its types; an output may be an input that the block updates.
  Status RunAsBlock(std::span<const Tensor> given_inputs, std::span<Tensor> given_outputs);
};

const Tensor& Executable::State::Aligned(size_t input, const Tensor& tensor) {
  if (IsAligned(tensor.Bytes())) return tensor;
  if (!staged[input].Defined()) staged[input] = Tensor(tensor.type());
  std::memcpy(staged[input].MutableBytes(), tensor.Bytes(), tensor.ByteCount());
  return staged[input];
}

Status Executable::State::CheckGiven(const ShapeProfile& expected, std::span<const Tensor> given_inputs,
                                     std::span<Tensor> given_outputs) const {
  COLLAGE_TRY_STATUS(CheckTensors("output", given_outputs, expected.outputs));
  for (size_t i = 0; i < given_outputs.size(); ++i) {
    const auto overlaps = [&](const Tensor& other) { return Overlap(given_outputs[i], other); };
    const std::string& name = expected.outputs[i].name;
    if (!given_outputs[i].Writable()) return Fail("output '" + name + "' is a view of read-only memory");
    if (!IsAligned(given_outputs[i].Bytes())) return Fail("output '" + name + "' is not aligned to 64 bytes");
    if (std::any_of(given_inputs.begin(), given_inputs.end(), overlaps) ||
        std::any_of(given_outputs.begin(), given_outputs.begin() + static_cast<std::ptrdiff_t>(i), overlaps)) {
      return Fail("output '" + name + "' shares memory with an input or another output");
    }
  }
  return {};
}

void Executable::State::Bind(std::span<const Tensor> given_inputs, std::span<Tensor> given_outputs) {
  for (size_t i = 0; i < given_inputs.size(); ++i) input_pointers[i] = Aligned(i, given_inputs[i]).Bytes();
  for (size_t i = 0; i < given_outputs.size(); ++i) output_pointers[i] = given_outputs[i].MutableBytes();
  runner.Bind(input_pointers, output_pointers);
}

Status Executable::State::DoStep(const ExecutionPlan::Step& step) {
  if (step.kind == Kind::kTransfer || step.kind == Kind::kWait || (step.kind == Kind::kConversion && step.device != 0)) {
    Status status = runner.DoStep(step, nullptr);
    if (!status) return Fail(status.error().At(DeviceName(step)));
    return status;
  }
  if (step.kind != Kind::kKernel) return runner.DoStep(step, nullptr);
  const Program::KernelCall& call = calls[step.call];
  Status status = runner.DoStep(step, call.kernel.get());
  if (!status) return Fail(status.error().At(ToString(call.record)));
  return status;
}

Status Executable::State::RunStep(const ExecutionPlan::Step& step) {
  Status status = DoStep(step);
  runner.NotePlace(step);
  return status;
}

Result<RecordedWork*> Executable::State::WorkOf(const RecordedSteps::Range& range) {
  return recorded.Work(range, [this](size_t step) { return DoStep(Steps()[step]); });
}

Status Executable::State::RunRange(const RecordedSteps::Range& range) {
  if (RecordedWork* work = COLLAGE_TRY(WorkOf(range))) {
    const Status given = work->Give();
    if (!given) return Fail(given.error().At(DeviceName(Steps()[range.begin])));
    for (size_t i = range.begin; i < range.end; ++i) runner.NotePlace(Steps()[i]);
    return {};
  }
  for (size_t i = range.begin; i < range.end; ++i) {
    SayStep(i);
    COLLAGE_TRY_STATUS(RunStep(Steps()[i]));
  }
  return {};
}

Status Executable::State::ProfileRange(const RecordedSteps::Range& range) {
  RecordedWork* work = COLLAGE_TRY(WorkOf(range));
  if (!work) {
    for (size_t i = range.begin; i < range.end; ++i) {
      SayStep(i);
      COLLAGE_TRY_STATUS(ProfileStep(i));
    }
    return {};
  }
  recorded_seconds.resize(range.end - range.begin);
  Clock::time_point began = Clock::now();
  const Status given = work->GiveTimed(recorded_seconds);
  if (!given) return Fail(given.error().At(DeviceName(Steps()[range.begin])));
  for (size_t i = range.begin; i < range.end; ++i) {
    const double seconds = recorded_seconds[i - range.begin];
    runner.NotePlace(Steps()[i]);
    AddToProfile(i, began, seconds * 1e6);
    began += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  return {};
}

std::string Executable::State::DeviceName(const ExecutionPlan::Step& step) const {
  return ToString(runner.plan().arenas[step.device].context->device());
}

Status Executable::State::FinishStep(const ExecutionPlan::Step& step) {
  const auto& context = runner.plan().arenas[step.device].context;
  return context ? context->WaitForAll() : Status();
}

void Executable::State::SayStep(size_t step) {
  if (!watched) return;
  const uint32_t number = step < watch_numbers.size() ? watch_numbers[step] : 0;
  watched->store(number == 0 ? 0 : uint64_t{++watch_beat} << 32 | number, std::memory_order_relaxed);
}

/// What is given to a stream must not outlive the call: it may read the caller's memory, and write to it.
Status Executable::State::RunSteps() {
  if (kept_off) kept_off->Begin();
  Status status = RunAllSteps();
  if (!status) runner.Drain();
  if (kept_off) kept_off->End();
  return status;
}

void Executable::State::LeaveOtherCpus() {
  Processors others;
  for (const ExecutionPlan::Arena& arena : runner.plan().arenas) {
    if (const CpuContext* cpu = AsCpu(arena.context.get()))
      others.insert(others.end(), cpu->statement().processors.begin(), cpu->statement().processors.end());
  }
  std::sort(others.begin(), others.end());
  if (!others.empty()) kept_off.emplace(device.threads, others);
}

void Executable::State::AddToProfile(size_t number, Clock::time_point began, double microseconds) {
  StepProfile& step = profile[number];
  step.last_began = began;
  step.last_microseconds = microseconds;
  step.microseconds += microseconds;
  step.calls += 1;
}

/// A CPU's stream tells itself how long its kernels take, so they may run beside the host's in a profiled run, too.
bool Executable::State::IsTimedInStream(const ExecutionPlan::Step& step) const {
  return step.kind == Kind::kKernel && AsCpu(runner.plan().arenas[step.device].context.get());
}

Status Executable::State::ProfileStep(size_t number) {
  const ExecutionPlan::Step& step = Steps()[number];
  const bool is_told = IsTimedInStream(step);
  if (is_told) static_cast<KernelOnCpu&>(*calls[step.call].kernel).SetTimes(&stream_times[number]);
  const Clock::time_point start = Clock::now();
  Status status = RunStep(step);
  if (is_told) static_cast<KernelOnCpu&>(*calls[step.call].kernel).SetTimes(nullptr);
  if (!status || is_told) return status;
  if (step.kind != Kind::kWait) COLLAGE_TRY_STATUS(FinishStep(step));
  AddToProfile(number, start, std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  return {};
}

Status Executable::State::RunAllSteps() {
  for (size_t i = 0; i < Steps().size();) {
    SayStep(i);
    if (const RecordedSteps::Range* range = recorded.At(i)) {
      COLLAGE_TRY_STATUS(profiling ? ProfileRange(*range) : RunRange(*range));
      i = range->end;
    } else {
      COLLAGE_TRY_STATUS(profiling ? ProfileStep(i) : RunStep(Steps()[i]));
      ++i;
    }
  }
  for (size_t i = 0; profiling && i < Steps().size(); ++i) {
    if (IsTimedInStream(Steps()[i])) AddToProfile(i, stream_times[i].began, stream_times[i].microseconds);
  }
  SayStep(Steps().size());
  return {};
}

/// The steps of all blocks, one after another.
void Executable::State::GatherProfile() {
  if (!profiling) return;
  size_t step = 0;
  for (const Executable& block : blocks) {
    for (const StepProfile& of_block : block.profile()) {
      StepProfile& all = profile[step++];
      all.calls = of_block.calls;
      all.microseconds = of_block.microseconds;
      all.last_began = of_block.last_began;
      all.last_microseconds = of_block.last_microseconds;
    }
  }
}

Status Executable::State::RunControl(size_t entry, std::span<const Tensor> given_inputs, std::span<Tensor> given_outputs) {
  COLLAGE_TRY_STATUS(RunEntry(entry, given_inputs, given_outputs));
  GatherProfile();
  return {};
}

/// A profile without control flow runs as if it were alone: its block checks what is given, and writes into the caller's tensors.
Status Executable::State::RunEntry(size_t entry, std::span<const Tensor> given_inputs, std::span<Tensor> given_outputs) {
  if (only_blocks[entry]) return blocks[*only_blocks[entry]].Run(given_inputs, given_outputs);
  COLLAGE_TRY_STATUS(CheckGiven(shapes[entry], given_inputs, given_outputs));
  return control->Run(entry, given_inputs, given_outputs, [&](size_t block, std::span<const Tensor> from, std::span<Tensor> to) {
    return blocks[block].state_->RunAsBlock(from, to);
  });
}

Status Executable::State::Run(std::span<const Tensor> given_inputs, std::span<Tensor> given_outputs) {
  const size_t entry = COLLAGE_TRY(ProfileFor(given_inputs, shapes));
  if (control) return RunControl(entry, given_inputs, given_outputs);
  COLLAGE_TRY_STATUS(CheckGiven(shapes[entry], given_inputs, given_outputs));
  Bind(given_inputs, given_outputs);
  return RunSteps();
}

Status Executable::State::RunAsBlock(std::span<const Tensor> given_inputs, std::span<Tensor> given_outputs) {
  Bind(given_inputs, given_outputs);
  return RunSteps();
}

Executable::Executable(std::unique_ptr<State> state) : state_(std::move(state)) {}
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::~Executable() = default;

Result<Executable> Executable::Create(Program program, const Device& device) {
  COLLAGE_TRY_STATUS(CheckProgram(program));
  ExecutionPlan plan = PlanExecution(program, device.threads);
  COLLAGE_TRY_STATUS(CheckMemory(plan, program));
  PlanRunner runner(std::move(plan), program, device.threads);
  COLLAGE_TRY_STATUS(runner.PlaceOnDevices());
  auto state = std::make_unique<State>(std::move(runner));
  state->device = device;
  state->shapes = {{TypesOf(program, program.inputs), TypesOf(program, program.outputs)}};
  state->staged.resize(program.inputs.size());
  state->input_pointers.resize(program.inputs.size());
  state->output_pointers.resize(program.outputs.size());
  for (const ExecutionPlan::Step& step : state->Steps()) state->profile.push_back(Describe(state->runner.plan(), step, program, device));
  state->stream_times.resize(state->profile.size());
  state->calls = std::move(program.calls);
  state->LeaveOtherCpus();
  return Executable(std::move(state));
}

Result<Executable> Executable::Create(ControlProgram control, std::vector<Executable> blocks, const std::vector<std::string>& inputs,
                                      const std::vector<std::string>& outputs, const Device& device) {
  std::vector<Signature> signatures;
  std::vector<ControlRunner::Updates> updates;
  for (const Executable& block : blocks) {
    Signature& signature = signatures.emplace_back();
    for (const NamedType& input : block.inputs()) signature.inputs.push_back(input.type);
    for (const NamedType& output : block.outputs()) signature.outputs.push_back(output.type);
    updates.push_back(UpdatedInputs(block.state_->runner.plan(), signature.inputs, signature.outputs));
  }
  COLLAGE_TRY_STATUS(CheckControlProgram(control, signatures));
  auto state = std::make_unique<State>(PlanRunner(PlanExecution({}, device.threads), {}, device.threads));
  state->device = device;
  state->shapes = COLLAGE_TRY(ShapeProfilesOf(control, inputs, outputs));
  for (size_t entry = 0; entry < control.entries; ++entry) state->only_blocks.push_back(OnlyBlockOf(control.functions[entry]));
  for (const Executable& block : blocks) {
    state->profile.insert(state->profile.end(), block.profile().begin(), block.profile().end());
    state->blocks_bytes += block.arena_bytes();
  }
  state->control.emplace(std::move(control), std::move(signatures), std::move(updates));
  state->blocks = std::move(blocks);
  return Executable(std::move(state));
}

Result<Executable> Executable::Twin(const MakeKernel& make_kernel) const {
  // Kernels of both would be given to one stream by two threads, which a CPU's takes.
  for (const ExecutionPlan::Arena& arena : state_->runner.plan().arenas) {
    if (arena.context && !AsCpu(arena.context.get())) return Fail("runs on several devices, which one thread at a time may use");
  }
  PlanRunner runner(state_->runner);
  COLLAGE_TRY_STATUS(runner.PlaceOnDevices());
  auto state = std::make_unique<State>(std::move(runner));
  state->device = state_->device;
  state->shapes = state_->shapes;
  state->only_blocks = state_->only_blocks;
  state->staged.resize(state_->staged.size());
  state->input_pointers.resize(state_->input_pointers.size());
  state->output_pointers.resize(state_->output_pointers.size());
  state->blocks_bytes = state_->blocks_bytes;
  for (const StepProfile& step : state_->profile) state->profile.push_back({step.kind, step.record, step.device});
  for (size_t i = 0; i < state_->calls.size(); ++i) {
    const Program::KernelCall& call = state_->calls[i];
    std::unique_ptr<Kernel> kernel = call.kernel->Twin();
    if (!kernel) kernel = COLLAGE_TRY(make_kernel(0, i));
    state->calls.push_back({call.record, std::move(kernel), call.inputs, call.outputs});
  }
  for (size_t block = 0; block < state_->blocks.size(); ++block) {
    state->blocks.push_back(COLLAGE_TRY(state_->blocks[block].Twin([&](size_t, size_t call) { return make_kernel(block, call); })));
  }
  state->stream_times.resize(state->profile.size());
  state->LeaveOtherCpus();
  if (state_->control) state->control.emplace(state_->control->program(), state_->control->signatures(), state_->control->updates());
  return Executable(std::move(state));
}

const Device& Executable::device() const { return state_->device; }
const std::vector<ShapeProfile>& Executable::shape_profiles() const { return state_->shapes; }
const std::vector<NamedType>& Executable::inputs() const { return state_->shapes[0].inputs; }
const std::vector<NamedType>& Executable::outputs() const { return state_->shapes[0].outputs; }
const std::vector<StepProfile>& Executable::profile() const { return state_->profile; }
const std::vector<Program::KernelCall>& Executable::calls() const { return state_->calls; }
const std::vector<Executable>& Executable::blocks() const { return state_->blocks; }
std::vector<Executable> Executable::TakeBlocks() && { return std::move(state_->blocks); }
size_t Executable::arena_bytes() const { return state_->runner.memory_bytes() + state_->blocks_bytes; }

size_t Executable::held_bytes() const { return state_->control ? state_->control->held_bytes() : 0; }

Status Executable::Run(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  if (state_->running.test_and_set(std::memory_order_acquire)) return Fail("this executable is running already, in another thread");
  Status status = state_->Run(inputs, outputs);
  state_->running.clear(std::memory_order_release);
  return status;
}

Result<std::vector<Tensor>> Executable::Run(std::span<const Tensor> inputs) {
  std::vector<Tensor> outputs;
  const size_t entry = COLLAGE_TRY(ProfileFor(inputs, state_->shapes));
  for (const NamedType& output : state_->shapes[entry].outputs) outputs.emplace_back(output.type);
  COLLAGE_TRY_STATUS(Run(inputs, outputs));
  return outputs;
}

Status Executable::RunBlock(size_t block, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  COLLAGE_CHECK(block < state_->blocks.size());
  if (state_->running.test_and_set(std::memory_order_acquire)) return Fail("this executable is running already, in another thread");
  Status status = state_->blocks[block].Run(inputs, outputs);
  state_->GatherProfile();
  state_->running.clear(std::memory_order_release);
  return status;
}

void Executable::Watch(std::atomic<uint64_t>& now, std::vector<uint32_t> numbers) {
  COLLAGE_CHECK(numbers.size() == state_->profile.size());
  auto begin = numbers.begin();
  for (Executable& block : state_->blocks) {
    const auto end = begin + static_cast<std::ptrdiff_t>(block.profile().size());
    block.Watch(now, {begin, end});
    begin = end;
  }
  if (state_->control) return;
  state_->watched = &now;
  state_->watch_numbers = std::move(numbers);
}

void Executable::SetProfiling(bool on) {
  if (on) {
    for (StepProfile& profile : state_->profile) {
      profile.calls = 0;
      profile.microseconds = 0;
    }
  }
  for (Executable& block : state_->blocks) block.SetProfiling(on);
  state_->profiling = on;
}

}  // namespace collage
