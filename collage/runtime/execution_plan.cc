#include "collage/runtime/execution_plan.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

#include "collage/runtime/call_order.h"
#include "collage/runtime/cpu_context.h"
#include "collage/runtime/memory_plan.h"
#include "collage/runtime/shared_memory.h"
#include "collage/support/check.h"
#include "collage/tensor/slice_offset.h"

namespace collage {
namespace {

constexpr size_t kNever = std::numeric_limits<size_t>::max();

// Five passes. The first walks the calls and gives every tensor, in every layout and in every memory in which it is wanted, a buffer that
// is written once; slices and joins share memory with their sources. The second lets kernels that accumulate take over the buffer that they
// accumulate into, or puts a copy before them when somebody still needs it. The third gives a CPU's stream what it alone uses. The fourth
// lets the host wait where it has to. The fifth gives buffers their places.
class Planner {
 public:
  Planner(const Program& program, int threads, EndpointLayouts layouts)
      : program_(program),
        threads_(threads),
        layouts_(std::move(layouts)),
        of_value_(program.values.size()),
        is_made_(program.values.size(), false) {
    layouts_.inputs.resize(program.inputs.size());
    layouts_.outputs.resize(program.outputs.size());
    plan_.arenas.emplace_back();
  }

  ExecutionPlan Plan() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) DefineInput(i);
    std::vector<size_t> streams;
    for (const Program::KernelCall& call : program_.calls) streams.push_back(DeviceOf(*call.kernel));
    if (!HasCpus()) streams.assign(streams.size(), kHost);
    for (const size_t call : CallOrder(program_, streams)) AddCall(call);
    for (size_t i = 0; i < program_.outputs.size(); ++i) BindOutput(i);
    ShareAccumulated();
    KeepInStreams();
    AddWaits();
    PlaceInArenas();
    for (const Program::KernelCall& call : program_.calls) {
      size_t& bytes = plan_.arenas[DeviceOf(*call.kernel)].workspace_bytes;
      bytes = std::max(bytes, call.kernel->workspace_bytes());
    }
    return std::move(plan_);
  }

 private:
  using Kind = ExecutionPlan::Step::Kind;
  using Storage = ExecutionPlan::Storage;

  static constexpr size_t kHost = 0;

  /// A tensor's buffers by device and layout, the one in which it was produced first.
  struct Available {
    struct Form {
      size_t device;
      Layout layout;
      size_t buffer;
    };
    std::vector<Form> forms;

    [[nodiscard]] const Form* Find(size_t device, const Layout& layout) const {
      const auto is_wanted = [&](const Form& form) { return form.device == device && form.layout == layout; };
      const auto found = std::find_if(forms.begin(), forms.end(), is_wanted);
      return found == forms.end() ? nullptr : &*found;
    }
  };

  size_t DeviceOf(const Kernel& kernel) {
    for (size_t device = 0; device < plan_.arenas.size(); ++device) {
      if (plan_.arenas[device].context == kernel.context()) return device;
    }
    plan_.arenas.push_back({kernel.context()});
    return plan_.arenas.size() - 1;
  }

  [[nodiscard]] bool IsCpu(size_t device) const { return AsCpu(plan_.arenas[device].context.get()) != nullptr; }
  /// The device in whose memory its kernels read and write.
  [[nodiscard]] size_t MemoryOf(size_t device) const { return IsCpu(device) ? kHost : device; }
  [[nodiscard]] bool HasCpus() const {
    bool has = false;
    for (size_t device = 0; device < plan_.arenas.size(); ++device) has = has || IsCpu(device);
    return has;
  }

  size_t AddBuffer(Storage storage, size_t index, size_t bytes, size_t device = kHost, bool is_written = true) {
    plan_.buffers.push_back({storage, index, bytes, device});
    memory_.Add(bytes, is_written);
    return plan_.buffers.size() - 1;
  }

  /// Whether a buffer lies in what is there during a run only.
  [[nodiscard]] bool IsInArena(size_t buffer) { return plan_.buffers[memory_.Find(buffer).piece].storage == Storage::kArena; }

  void DefineInput(size_t input) {
    const size_t value = program_.inputs[input].value;
    const Layout& layout = layouts_.inputs[input];
    const size_t buffer = AddBuffer(Storage::kInput, input, PhysicalByteCount(program_.values[value].type, layout));
    of_value_[value].forms.push_back({kHost, layout, buffer});
  }

  void AddCall(size_t index) {
    const Program::KernelCall& call = program_.calls[index];
    ExecutionPlan::Step step;
    step.call = index;
    step.device = DeviceOf(*call.kernel);
    const size_t memory = MemoryOf(step.device);
    for (size_t i = 0; i < call.inputs.size(); ++i)
      step.inputs.push_back(BufferOf(call.inputs[i], memory, call.kernel->inputs()[i].layout));
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const Port& port = call.kernel->outputs()[i];
      step.outputs.push_back(AddBuffer(Storage::kArena, 0, PhysicalByteCount(port.type, port.layout), memory));
      of_value_[call.outputs[i]].forms.push_back({memory, port.layout, step.outputs.back()});
    }
    plan_.steps.push_back(std::move(step));
  }

  /// The buffer that holds a value on a device in a layout, brought there if need be.
  size_t BufferOf(size_t value, size_t device, const Layout& layout) {
    std::vector<size_t> open = {value};
    while (!open.empty()) {
      const size_t at = open.back();
      const size_t before = open.size();
      if (!is_made_[at]) {
        for (const size_t source : program_.values[at].Sources()) {
          if (!is_made_[source]) open.push_back(source);
        }
      }
      if (open.size() > before) continue;
      open.pop_back();
      if (!is_made_[at]) Make(at);
    }
    return FoundBuffer(value, device, layout);
  }

  /// A value whose sources have been made.
  void Make(size_t value) {
    is_made_[value] = true;
    const Program::Value& definition = program_.values[value];
    if (definition.slice) MakeSlice(value, *definition.slice);
    if (definition.join) MakeJoin(value, *definition.join);
  }

  [[nodiscard]] size_t OffsetOf(size_t whole, const Layout& layout, size_t axis, int64_t begin, size_t part) const {
    return SliceOffset(program_.values[whole].type, layout, axis, begin, program_.values[part].type.shape[axis]).value();
  }

  void MakeSlice(size_t value, const Program::Slice& slice) {
    const size_t whole = FoundBuffer(slice.of, kHost, slice.layout);
    const size_t bytes = PhysicalByteCount(program_.values[value].type, slice.layout);
    const size_t buffer = AddBuffer(Storage::kArena, 0, bytes, kHost, /*is_written=*/false);
    memory_.Show(buffer, whole, OffsetOf(slice.of, slice.layout, slice.axis, slice.begin, value));
    of_value_[value].forms.push_back({kHost, slice.layout, buffer});
  }

  void MakeJoin(size_t value, const Program::Join& join) {
    const size_t bytes = PhysicalByteCount(program_.values[value].type, join.layout);
    std::vector<SharedMemory::Part> parts;
    int64_t begin = 0;
    for (const size_t part : join.parts) {
      parts.push_back({FoundBuffer(part, kHost, join.layout), OffsetOf(value, join.layout, join.axis, begin, part)});
      begin += program_.values[part].type.shape[join.axis];
    }
    const size_t whole = AddBuffer(Storage::kArena, 0, bytes, kHost, /*is_written=*/false);
    for (const size_t left : memory_.Join(parts, whole, [this](size_t buffer) { return IsInArena(buffer); })) {
      const size_t copy = AddBuffer(Storage::kArena, 0, plan_.buffers[parts[left].buffer].bytes);
      plan_.steps.push_back(CopyStep(kHost, parts[left].buffer, copy));
      COLLAGE_CHECK(memory_.Join({{copy, parts[left].offset}}, whole, [](size_t) { return true; }).empty());
    }
    of_value_[value].forms.push_back({kHost, join.layout, whole});
  }

  size_t FoundBuffer(size_t value, size_t device, const Layout& layout) {
    if (const Available::Form* form = of_value_[value].Find(device, layout)) return form->buffer;
    // Down the chain of views to something that has a buffer; all but the last step of the way are in row-major order, and share a buffer.
    std::vector<size_t> views;
    while (program_.values[value].view_of && (layout.IsPlain() || of_value_[value].forms.empty())) {
      views.push_back(value);
      value = *program_.values[value].view_of;
    }
    for (; !views.empty(); views.pop_back()) {
      const size_t buffer = FormOf(value, device, Layout());
      value = views.back();
      of_value_[value].forms.push_back({device, Layout(), buffer});
    }
    return FormOf(value, device, layout);
  }

  size_t FormOf(size_t value, size_t device, const Layout& layout) {
    const Program::Value& definition = program_.values[value];
    if (const Available::Form* form = of_value_[value].Find(device, layout)) return form->buffer;
    size_t buffer = 0;
    if (definition.constant.Defined()) {
      plan_.constants.push_back({value, layout, device});
      buffer = AddBuffer(Storage::kConstant, plan_.constants.size() - 1, PhysicalByteCount(definition.type, layout), device);
    } else {
      COLLAGE_CHECK(!of_value_[value].forms.empty());
      buffer = Bring(value, device, layout);
    }
    of_value_[value].forms.push_back({device, layout, buffer});
    return buffer;
  }

  /// From where the value is made. It is converted where it is wanted, or where it is made, or on the way, by the host.
  size_t Bring(size_t value, size_t device, const Layout& layout) {
    const TensorType& type = program_.values[value].type;
    for (const Available::Form& form : of_value_[value].forms) {
      if (form.device == device && LayoutConversion(type, form.layout, layout, threads_).IsIdentity()) return form.buffer;
    }
    const Available::Form made = of_value_[value].forms.front();
    const auto transposition_on = [&](size_t where) {
      return TranspositionOn(plan_.arenas[where].context.get(), type, made.layout, layout);
    };
    if (const auto there = transposition_on(device))
      return Transpose(type, device, FormOf(value, device, made.layout), *there, made.layout, layout);
    if (device != kHost) return Transfer(type, FormOf(value, kHost, layout), device, layout);
    if (made.device == kHost) return Convert(type, made.buffer, made.layout, layout);
    if (made.layout == layout) return Transfer(type, made.buffer, kHost, layout);
    if (transposition_on(made.device)) return Transfer(type, FormOf(value, made.device, layout), kHost, layout);
    return Convert(type, FormOf(value, kHost, made.layout), made.layout, layout);
  }

  size_t Transpose(const TensorType& type, size_t device, size_t buffer, const Transposition& transposition, const Layout& from,
                   const Layout& to) {
    ExecutionPlan::Step step;
    step.kind = Kind::kConversion;
    step.device = device;
    step.transposition = transposition;
    step.inputs = {buffer};
    step.outputs = {AddBuffer(Storage::kArena, 0, PhysicalByteCount(type, to), device)};
    step.type = type;
    step.from = from;
    step.to = to;
    plan_.steps.push_back(std::move(step));
    return plan_.steps.back().outputs[0];
  }

  size_t Convert(const TensorType& type, size_t buffer, const Layout& from, const Layout& to) {
    ExecutionPlan::Step step;
    step.kind = Kind::kConversion;
    step.conversion.emplace(type, from, to, threads_);
    step.inputs = {buffer};
    step.outputs = {AddBuffer(Storage::kArena, 0, PhysicalByteCount(type, to))};
    step.type = type;
    step.from = from;
    step.to = to;
    plan_.steps.push_back(std::move(step));
    return plan_.steps.back().outputs[0];
  }

  size_t Transfer(const TensorType& type, size_t buffer, size_t device, const Layout& layout) {
    ExecutionPlan::Step step;
    step.kind = Kind::kTransfer;
    step.device = device == kHost ? plan_.buffers[buffer].device : device;
    step.place = plan_.places++;
    step.inputs = {buffer};
    step.outputs = {AddBuffer(Storage::kArena, 0, PhysicalByteCount(type, layout), device)};
    step.type = type;
    step.from = step.to = layout;
    plan_.steps.push_back(std::move(step));
    return plan_.steps.back().outputs[0];
  }

  ExecutionPlan::Step CopyStep(size_t device, size_t from, size_t to) {
    ExecutionPlan::Step step;
    step.kind = Kind::kCopy;
    step.device = device;
    step.type = TensorType{{static_cast<int64_t>(plan_.buffers[from].bytes)}, DType::kUInt8};
    step.conversion.emplace(step.type, Layout(), Layout(), threads_);
    step.inputs = {from};
    step.outputs = {to};
    return step;
  }

  /// A tensor that nothing else claims is computed right into the caller's memory.
  void BindOutput(size_t output) {
    const size_t buffer = BufferOf(program_.outputs[output].value, kHost, layouts_.outputs[output]);
    if (IsInArena(buffer) && memory_.IsWhole(buffer)) {
      ExecutionPlan::Buffer& piece = plan_.buffers[memory_.Find(buffer).piece];
      piece.storage = Storage::kOutput;
      piece.index = output;
      return;
    }
    const size_t target = AddBuffer(Storage::kOutput, output, plan_.buffers[buffer].bytes);
    plan_.steps.push_back(CopyStep(kHost, buffer, target));
  }

  void ShareAccumulated() {
    std::vector<size_t> last_use(plan_.buffers.size(), 0);  // by piece of memory
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      for (const size_t buffer : plan_.steps[i].inputs) last_use[memory_.Find(buffer).piece] = i;
    }
    std::vector<ExecutionPlan::Step> steps;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      ExecutionPlan::Step& step = plan_.steps[i];
      const std::optional<size_t> accumulated =
          step.kind == Kind::kKernel ? program_.calls[step.call].kernel->accumulated_input() : std::nullopt;
      if (accumulated) {
        size_t& input = step.inputs[*accumulated];
        const size_t output = step.outputs[0];
        const auto shares = [&](size_t other) { return other == input || memory_.Overlap(other, input); };
        const bool only_use = std::count_if(step.inputs.begin(), step.inputs.end(), shares) == 1;
        if (!IsInArena(input) || !memory_.IsWhole(input) || last_use[memory_.Find(input).piece] != i || !only_use) {
          const size_t copy = AddBuffer(Storage::kArena, 0, plan_.buffers[input].bytes, MemoryOf(step.device));
          last_use.push_back(i);
          steps.push_back(CopyStep(step.device, input, copy));
          input = copy;
        }
        const size_t last = std::max(last_use[memory_.Find(input).piece], last_use[memory_.Find(output).piece]);
        memory_.TakeOver(input, output);
        last_use[memory_.Find(output).piece] = last;
      }
      steps.push_back(std::move(step));
    }
    plan_.steps = std::move(steps);
  }

  /// What only one CPU's stream uses lies in that stream's arena: there the order of the stream alone says when memory is free again, and
  /// nobody waits for that.
  void KeepInStreams() {
    if (!HasCpus()) return;
    std::vector<size_t> used_by(plan_.buffers.size(), kNever);
    const auto use = [&](size_t buffer, size_t device) {
      size_t& by = used_by[memory_.Find(buffer).piece];
      by = by == kNever || by == device ? device : kHost;
    };
    for (const ExecutionPlan::Step& step : plan_.steps) {
      const size_t by = IsCpu(step.device) ? step.device : kHost;
      for (const size_t buffer : step.inputs) use(buffer, by);
      for (const size_t buffer : step.outputs) use(buffer, by);
    }
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const size_t by = used_by[memory_.Find(i).piece];
      if (IsInArena(i) && by != kNever && by != kHost) plan_.buffers[i].device = by;
    }
  }

  /// A use of a host buffer by another stream, for which the host may not have waited.
  struct Use {
    size_t device;
    size_t place;
    bool is_written;
    size_t buffer;
  };

  void AddWaits() {
    if (plan_.places == 0 && !HasCpus()) return;
    uses_.resize(plan_.buffers.size());
    used_.resize(plan_.arenas.size());
    waited_.resize(plan_.arenas.size(), 0);
    std::vector<size_t> last_place(plan_.arenas.size(), ExecutionPlan::kNoPlace);
    std::vector<ExecutionPlan::Step> steps;
    for (ExecutionPlan::Step& step : plan_.steps) {
      const bool is_transfer = step.kind == Kind::kTransfer;
      const bool is_in = is_transfer && plan_.buffers[step.inputs[0]].device == kHost;
      const bool is_cpus = IsCpu(step.device);
      if (step.device == kHost || is_in || is_cpus) {
        // A stream is in order: what came out of a device may go into it again without the host's doing.
        for (const size_t input : step.inputs) WaitFor(input, /*written_only=*/true, step.device, steps);
        for (const size_t output : step.outputs) WaitFor(output, /*written_only=*/false, is_in ? kHost : step.device, steps);
      }
      if (is_cpus) {
        step.place = plan_.places++;
        for (const size_t input : step.inputs) AddUse(input, {step.device, step.place, false, input});
        for (const size_t output : step.outputs) AddUse(output, {step.device, step.place, true, output});
      }
      if (is_transfer) {
        const size_t buffer = is_in ? step.inputs[0] : step.outputs[0];
        AddUse(buffer, {step.device, step.place, !is_in, buffer});
      }
      if (step.place != ExecutionPlan::kNoPlace) last_place[step.device] = step.place;
      steps.push_back(std::move(step));
    }
    for (size_t device = plan_.arenas.size(); device-- > 0;) {
      const size_t place = last_place[device];
      if (place != ExecutionPlan::kNoPlace && place >= waited_[device]) Wait(device, place, steps);
    }
    plan_.steps = std::move(steps);
  }

  void AddUse(size_t buffer, const Use& use) {
    const ExecutionPlan::Buffer& used = plan_.buffers[memory_.Find(buffer).piece];
    // Nobody writes there, and it is not reused.
    if (used.device != kHost || used.storage == Storage::kConstant || (used.storage == Storage::kInput && IsCpu(use.device))) return;
    uses_[memory_.Find(buffer).piece].push_back(use);
    used_[use.device].emplace_back(use.place, buffer);
  }

  void WaitFor(size_t buffer, bool written_only, size_t stream, std::vector<ExecutionPlan::Step>& steps) {
    std::vector<Use>& uses = uses_[memory_.Find(buffer).piece];
    std::erase_if(uses, [&](const Use& use) { return use.place < waited_[use.device]; });
    for (size_t i = uses.size(); i-- > 0;) {
      const Use& use = uses[i];
      if (use.device == stream || (written_only && !use.is_written) || use.place < waited_[use.device]) continue;
      if (!memory_.Overlap(use.buffer, buffer)) continue;
      Wait(use.device, use.place, steps);
    }
  }

  void Wait(size_t device, size_t place, std::vector<ExecutionPlan::Step>& steps) {
    ExecutionPlan::Step wait;
    wait.kind = Kind::kWait;
    wait.device = device;
    wait.place = place;
    std::deque<std::pair<size_t, size_t>>& used = used_[device];
    for (; !used.empty() && used.front().first <= place; used.pop_front()) wait.inputs.push_back(used.front().second);
    waited_[device] = place + 1;
    steps.push_back(std::move(wait));
  }

  void PlaceInArenas() {
    std::vector<size_t> slot(plan_.buffers.size(), kNever);  // by piece of memory
    std::vector<std::vector<LiveInterval>> intervals(plan_.arenas.size());
    const auto touch = [&](size_t buffer, size_t step) {
      const size_t piece = memory_.Find(buffer).piece;
      if (plan_.buffers[piece].storage != Storage::kArena) return;
      std::vector<LiveInterval>& of_device = intervals[plan_.buffers[piece].device];
      if (slot[piece] == kNever) {
        slot[piece] = of_device.size();
        of_device.push_back({memory_.BytesOf(piece), step, step});
      }
      of_device[slot[piece]].end = step;
    };
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      for (const size_t buffer : plan_.steps[i].inputs) touch(buffer, i);
      for (const size_t buffer : plan_.steps[i].outputs) touch(buffer, i);
    }
    std::vector<ExecutionPlan::Buffer> placed = plan_.buffers;
    for (size_t i = 0; i < placed.size(); ++i) {
      const SharedMemory::Place place = memory_.Find(i);
      const ExecutionPlan::Buffer& piece = plan_.buffers[place.piece];
      placed[i].storage = piece.storage;
      placed[i].index = piece.storage == Storage::kArena ? slot[place.piece] : piece.index;
      placed[i].device = piece.device;
      placed[i].offset = static_cast<size_t>(place.offset);
    }
    plan_.buffers = std::move(placed);
    for (size_t device = 0; device < plan_.arenas.size(); ++device) {
      MemoryPlan memory = PlanMemory(intervals[device]);
      plan_.arenas[device].offsets = std::move(memory.offsets);
      plan_.arenas[device].bytes = memory.bytes;
    }
  }

  const Program& program_;
  int threads_;
  EndpointLayouts layouts_;
  ExecutionPlan plan_;
  std::vector<Available> of_value_;
  std::vector<bool> is_made_;                                // by value: what it is made of without a call has its buffer
  SharedMemory memory_;                                      // of all buffers
  std::vector<std::vector<Use>> uses_;                       // by piece of memory, in the order of the steps
  std::vector<std::deque<std::pair<size_t, size_t>>> used_;  // by device: place and host buffer of what has not been waited for
  std::vector<size_t> waited_;                               // by device: its places below that are over
};

}  // namespace

std::vector<std::optional<size_t>> UpdatedInputs(const ExecutionPlan& plan, const std::vector<TensorType>& inputs,
                                                 const std::vector<TensorType>& outputs) {
  using Storage = ExecutionPlan::Storage;
  std::vector<std::optional<size_t>> updated(outputs.size());
  if (plan.arenas.size() > 1) return updated;
  const auto is_of = [&](size_t buffer, Storage storage, size_t index) {
    return plan.buffers[buffer].storage == storage && plan.buffers[buffer].index == index;
  };
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const ExecutionPlan::Step& copy = plan.steps[i];
    if (copy.kind != ExecutionPlan::Step::Kind::kCopy) continue;
    const ExecutionPlan::Buffer& from = plan.buffers[copy.inputs[0]];
    const ExecutionPlan::Buffer& to = plan.buffers[copy.outputs[0]];
    if (from.storage != Storage::kInput || to.storage != Storage::kOutput || inputs[from.index] != outputs[to.index]) continue;
    if (from.bytes != inputs[from.index].ByteCount() || to.bytes != from.bytes) continue;  // a slice, or of a join
    const auto writes = [&](const ExecutionPlan::Step& step) {
      return std::any_of(step.outputs.begin(), step.outputs.end(), [&](size_t b) { return is_of(b, Storage::kOutput, to.index); });
    };
    const auto reads = [&](const ExecutionPlan::Step& step) {
      return std::any_of(step.inputs.begin(), step.inputs.end(), [&](size_t b) { return is_of(b, Storage::kInput, from.index); });
    };
    const auto at = plan.steps.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::none_of(plan.steps.begin(), at, writes) && std::none_of(at + 1, plan.steps.end(), reads)) updated[to.index] = from.index;
  }
  return updated;
}

ExecutionPlan PlanExecution(const Program& program, int threads, const EndpointLayouts& layouts) {
  return Planner(program, threads, layouts).Plan();
}

}  // namespace collage
