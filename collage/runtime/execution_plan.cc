#include "collage/runtime/execution_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "collage/runtime/memory_plan.h"
#include "collage/support/check.h"

namespace collage {
namespace {

constexpr size_t kNever = std::numeric_limits<size_t>::max();

// Three passes. The first walks the calls and gives every tensor, in every layout in which it is wanted, a buffer that is written
// once. The second lets kernels that accumulate take over the buffer that they accumulate into, or puts a copy before them when
// somebody still needs it. The third gives buffers their places.
class Planner {
 public:
  Planner(const Program& program, int threads, EndpointLayouts layouts)
      : program_(program), threads_(threads), layouts_(std::move(layouts)), of_value_(program.values.size()) {
    layouts_.inputs.resize(program.inputs.size());
    layouts_.outputs.resize(program.outputs.size());
  }

  ExecutionPlan Plan() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) DefineInput(i);
    for (size_t i = 0; i < program_.calls.size(); ++i) AddCall(i);
    for (size_t i = 0; i < program_.outputs.size(); ++i) BindOutput(i);
    ShareAccumulated();
    PlaceInArena();
    for (const Program::KernelCall& call : program_.calls) {
      plan_.workspace_bytes = std::max(plan_.workspace_bytes, call.kernel->workspace_bytes());
    }
    return std::move(plan_);
  }

 private:
  using Kind = ExecutionPlan::Step::Kind;
  using Storage = ExecutionPlan::Storage;

  /// A tensor's buffers by layout, the one in which it was produced first.
  struct Available {
    struct Form {
      Layout layout;
      size_t buffer;
    };
    std::vector<Form> forms;
  };

  size_t AddBuffer(Storage storage, size_t index, size_t bytes) {
    plan_.buffers.push_back({storage, index, bytes});
    return plan_.buffers.size() - 1;
  }

  void DefineInput(size_t input) {
    const size_t value = program_.inputs[input].value;
    const Layout& layout = layouts_.inputs[input];
    const size_t buffer = AddBuffer(Storage::kInput, input, PhysicalByteCount(program_.values[value].type, layout));
    of_value_[value].forms.push_back({layout, buffer});
  }

  void AddCall(size_t index) {
    const Program::KernelCall& call = program_.calls[index];
    ExecutionPlan::Step step;
    step.call = index;
    for (size_t i = 0; i < call.inputs.size(); ++i) step.inputs.push_back(BufferOf(call.inputs[i], call.kernel->inputs()[i].layout));
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const Port& port = call.kernel->outputs()[i];
      step.outputs.push_back(AddBuffer(Storage::kArena, 0, PhysicalByteCount(port.type, port.layout)));
      of_value_[call.outputs[i]].forms.push_back({port.layout, step.outputs.back()});
    }
    plan_.steps.push_back(std::move(step));
  }

  /// The buffer that holds a value in a layout, converted into it if need be.
  size_t BufferOf(size_t value, const Layout& layout) {
    // Down the chain of views to something that has a buffer; all but the last step of the way are in row-major order.
    std::vector<size_t> views;
    while (of_value_[value].forms.empty() && program_.values[value].view_of) {
      views.push_back(value);
      value = *program_.values[value].view_of;
    }
    for (; !views.empty(); views.pop_back()) {
      const size_t buffer = FormOf(value, Layout());
      value = views.back();
      of_value_[value].forms.push_back({Layout(), buffer});
    }
    return FormOf(value, layout);
  }

  size_t FormOf(size_t value, const Layout& layout) {
    const Program::Value& definition = program_.values[value];
    Available& available = of_value_[value];
    for (const Available::Form& form : available.forms) {
      if (form.layout == layout) return form.buffer;
    }
    size_t buffer = 0;
    if (definition.constant.Defined()) {
      plan_.constants.push_back({value, layout});
      buffer = AddBuffer(Storage::kConstant, plan_.constants.size() - 1, PhysicalByteCount(definition.type, layout));
    } else {
      COLLAGE_CHECK(!available.forms.empty());
      buffer = Convert(definition.type, available.forms, layout);
    }
    available.forms.push_back({layout, buffer});
    return buffer;
  }

  size_t Convert(const TensorType& type, const std::vector<Available::Form>& forms, const Layout& layout) {
    for (const Available::Form& form : forms) {
      if (LayoutConversion(type, form.layout, layout, threads_).IsIdentity()) return form.buffer;
    }
    const Available::Form& source = forms.front();
    ExecutionPlan::Step step;
    step.kind = Kind::kConversion;
    step.conversion.emplace(type, source.layout, layout, threads_);
    step.inputs = {source.buffer};
    step.outputs = {AddBuffer(Storage::kArena, 0, PhysicalByteCount(type, layout))};
    step.type = type;
    step.from = source.layout;
    step.to = layout;
    plan_.steps.push_back(std::move(step));
    return plan_.steps.back().outputs[0];
  }

  ExecutionPlan::Step CopyStep(size_t from, size_t to) {
    ExecutionPlan::Step step;
    step.kind = Kind::kCopy;
    step.type = TensorType{{static_cast<int64_t>(plan_.buffers[from].bytes)}, DType::kUInt8};
    step.conversion.emplace(step.type, Layout(), Layout(), threads_);
    step.inputs = {from};
    step.outputs = {to};
    return step;
  }

  /// A tensor that nothing else claims is computed right into the caller's memory.
  void BindOutput(size_t output) {
    const size_t buffer = BufferOf(program_.outputs[output].value, layouts_.outputs[output]);
    if (plan_.buffers[buffer].storage == Storage::kArena) {
      plan_.buffers[buffer].storage = Storage::kOutput;
      plan_.buffers[buffer].index = output;
      return;
    }
    const size_t target = AddBuffer(Storage::kOutput, output, plan_.buffers[buffer].bytes);
    plan_.steps.push_back(CopyStep(buffer, target));
  }

  void ShareAccumulated() {
    std::vector<size_t> last_use(plan_.buffers.size(), 0);
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      for (const size_t buffer : plan_.steps[i].inputs) last_use[buffer] = i;
    }
    shares_with_.resize(plan_.buffers.size());
    for (size_t i = 0; i < shares_with_.size(); ++i) shares_with_[i] = i;
    std::vector<ExecutionPlan::Step> steps;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      ExecutionPlan::Step& step = plan_.steps[i];
      const std::optional<size_t> accumulated =
          step.kind == Kind::kKernel ? program_.calls[step.call].kernel->accumulated_input() : std::nullopt;
      if (accumulated) {
        size_t& input = step.inputs[*accumulated];
        const bool only_use = std::count(step.inputs.begin(), step.inputs.end(), input) == 1;
        if (plan_.buffers[input].storage != Storage::kArena || last_use[input] != i || !only_use) {
          const size_t copy = AddBuffer(Storage::kArena, 0, plan_.buffers[input].bytes);
          shares_with_.push_back(copy);
          last_use.push_back(i);
          steps.push_back(CopyStep(input, copy));
          input = copy;
        }
        shares_with_[input] = step.outputs[0];
      }
      steps.push_back(std::move(step));
    }
    plan_.steps = std::move(steps);
  }

  /// The buffer at the end of a chain of accumulations: all of them lie where it lies.
  size_t Final(size_t buffer) {
    size_t last = buffer;
    while (shares_with_[last] != last) last = shares_with_[last];
    while (shares_with_[buffer] != buffer) buffer = std::exchange(shares_with_[buffer], last);
    return last;
  }

  void PlaceInArena() {
    std::vector<size_t> slot(plan_.buffers.size(), kNever);
    std::vector<LiveInterval> intervals;
    const auto touch = [&](size_t buffer, size_t step) {
      const size_t last = Final(buffer);
      if (plan_.buffers[last].storage != Storage::kArena) return;
      if (slot[last] == kNever) {
        slot[last] = intervals.size();
        intervals.push_back({0, step, step});
      }
      LiveInterval& interval = intervals[slot[last]];
      interval.bytes = std::max(interval.bytes, plan_.buffers[buffer].bytes);
      interval.end = step;
    };
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      for (const size_t buffer : plan_.steps[i].inputs) touch(buffer, i);
      for (const size_t buffer : plan_.steps[i].outputs) touch(buffer, i);
    }
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const size_t last = Final(i);
      if (last != i) plan_.buffers[i].storage = plan_.buffers[last].storage;
      plan_.buffers[i].index = plan_.buffers[last].storage == Storage::kArena ? slot[last] : plan_.buffers[last].index;
    }
    MemoryPlan memory = PlanMemory(intervals);
    plan_.arena_offsets = std::move(memory.offsets);
    plan_.arena_bytes = memory.bytes;
  }

  const Program& program_;
  int threads_;
  EndpointLayouts layouts_;
  ExecutionPlan plan_;
  std::vector<Available> of_value_;
  std::vector<size_t> shares_with_;  // the output that took a buffer over, or itself
};

}  // namespace

ExecutionPlan PlanExecution(const Program& program, int threads, const EndpointLayouts& layouts) {
  return Planner(program, threads, layouts).Plan();
}

}  // namespace collage
