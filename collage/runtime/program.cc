#include "collage/runtime/program.h"

#include <utility>

#include "collage/runtime/processors.h"
#include "collage/support/memory.h"
#include "collage/support/short_list.h"
#include "collage/tensor/checked_bytes.h"
#include "collage/tensor/slice_offset.h"

namespace collage {
namespace {

class Checker {
 public:
  explicit Checker(const Program& program) : program_(program), defined_(program.values.size(), false) {}

  Status Check() {
    for (size_t i = 0; i < program_.values.size(); ++i)
      COLLAGE_TRY_STATUS(Count("value " + std::to_string(i), program_.values[i].type, {}));
    for (const Endpoint& input : program_.inputs) COLLAGE_TRY_STATUS(Define(input.value, "input '" + input.name + "'"));
    for (size_t i = 0; i < program_.values.size(); ++i) {
      const Program::Value& value = program_.values[i];
      if (!value.constant.Defined()) continue;
      COLLAGE_TRY_STATUS(Define(i, "a constant"));
      if (!(value.constant.type() == value.type)) return Fail(Describe(i) + " is a constant of type " + ToString(value.constant.type()));
    }
    for (const Program::KernelCall& call : program_.calls) COLLAGE_TRY_STATUS(CheckCall(call));
    for (const Endpoint& output : program_.outputs) COLLAGE_TRY_STATUS(Use(output.value, "output '" + output.name + "'"));
    return {};
  }

 private:
  /// Adds to what all buffers would take if none shared memory with another, so that no plan for them overflows. A tensor of a port may be
  /// converted or copied for it, so it counts twice.
  Status Count(const std::string& what, const TensorType& type, const Layout& layout) {
    const std::optional<size_t> bytes = CheckedByteCount(type, layout);
    if (!bytes)
      return Fail(what + " is no tensor that fits into memory: shape " + ToString(type.shape) + " in layout " + layout.ToString());
    return Count(what, 2 * (*bytes + kBufferAlignment));
  }
  Status Count(const std::string& what, size_t bytes) {
    if (bytes > kAddressableBytes - bytes_) return Fail("with " + what + " the tensors are more than can be addressed");
    bytes_ += bytes;
    return {};
  }

  [[nodiscard]] std::string Describe(size_t value) const {
    return "value " + std::to_string(value) + " of type " + ToString(program_.values[value].type);
  }

  Status Define(size_t value, const std::string& by) {
    if (value >= defined_.size()) return Fail(by + " names value " + std::to_string(value) + " of " + std::to_string(defined_.size()));
    if (defined_[value] || !program_.values[value].Sources().empty())
      return Fail(Describe(value) + " is defined twice, the second time by " + by);
    defined_[value] = true;
    return {};
  }

  /// What is made of others without a call is defined where all of these are. Their indices fall, so it ends.
  Status Use(size_t value, const std::string& by) {
    if (value >= defined_.size()) return Fail(by + " names value " + std::to_string(value) + " of " + std::to_string(defined_.size()));
    std::vector<size_t> open = {value};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      if (defined_[at]) continue;
      const std::vector<size_t> sources = program_.values[at].Sources();
      if (sources.empty()) return Fail(Describe(at) + " is used before it is defined, by " + by);
      for (const size_t source : sources) {
        if (source >= at) return Fail(Describe(at) + " is made of a later value");
      }
      COLLAGE_TRY_STATUS(CheckMade(at));
      defined_[at] = true;  // or the program is refused
      open.insert(open.end(), sources.begin(), sources.end());
    }
    return {};
  }

  Status CheckMade(size_t value) {
    const Program::Value& made = program_.values[value];
    if (made.view_of.has_value() + made.slice.has_value() + made.join.has_value() > 1)
      return Fail(Describe(value) + " is made in more than one way");
    if (made.view_of) {
      if (program_.values[*made.view_of].type.ByteCount() == made.type.ByteCount()) return {};
      return Fail(Describe(value) + " is a view of " + Describe(*made.view_of) + ", which has another size");
    }
    if (made.slice) {
      COLLAGE_TRY_STATUS(CheckPart(value, *made.slice, made.slice->of));
      return Count(Describe(made.slice->of), program_.values[made.slice->of].type, made.slice->layout);
    }
    if (made.join->axis >= made.type.shape.size() || !made.join->layout.Fits(made.type))
      return Fail(Describe(value) + " is no join along axis " + std::to_string(made.join->axis) + " in layout " +
                  made.join->layout.ToString());
    COLLAGE_TRY_STATUS(Count(Describe(value), made.type, made.join->layout));
    int64_t begin = 0;
    for (const size_t part : made.join->parts) {
      COLLAGE_TRY_STATUS(CheckPart(part, {value, made.join->axis, begin, made.join->layout}, value));
      begin += program_.values[part].type.shape[made.join->axis];
    }
    return begin == made.type.shape[made.join->axis] ? Status() : Fail(Describe(value) + " is joined of parts that are not all of it");
  }

  Status CheckPart(size_t part, const Program::Slice& slice, size_t whole) {
    const TensorType& type = program_.values[part].type;
    TensorType expected = program_.values[whole].type;
    const std::string place = Describe(part) + " is no part of " + Describe(whole);
    if (slice.axis >= expected.shape.size() || type.shape.size() != expected.shape.size())
      return Fail(place + " along axis " + std::to_string(slice.axis));
    if (!slice.layout.Fits(expected)) return Fail(place + " in layout " + slice.layout.ToString());
    const int64_t whole_extent = std::exchange(expected.shape[slice.axis], type.shape[slice.axis]);
    if (!(type == expected) || slice.begin < 0 || slice.begin > whole_extent - type.shape[slice.axis])
      return Fail(place + " from element " + std::to_string(slice.begin));
    const TensorType& of = program_.values[whole].type;
    const std::optional<size_t> offset =
        CheckedByteCount(of, slice.layout) ? SliceOffset(of, slice.layout, slice.axis, slice.begin, type.shape[slice.axis]) : std::nullopt;
    if (!offset || *offset % kBufferAlignment != 0)
      return Fail(place + " in layout " + slice.layout.ToString() + ", in which it does not lie together from a multiple of " +
                  std::to_string(kBufferAlignment) + " bytes on");
    return Count(Describe(part), type, slice.layout);
  }

  Status CheckPorts(const std::string& place, const std::vector<Port>& ports, const std::vector<size_t>& values) {
    if (ports.size() != values.size()) {
      return Fail(place + ": the kernel has " + std::to_string(ports.size()) + ", expected " + std::to_string(values.size()));
    }
    for (size_t i = 0; i < ports.size(); ++i) {
      if (!ports[i].layout.Fits(ports[i].type)) {
        return Fail(place + ": number " + std::to_string(i) + " of the kernel has layout " + ports[i].layout.ToString() + " for " +
                    ToString(ports[i].type));
      }
      if (ports[i].type == program_.values[values[i]].type) {
        COLLAGE_TRY_STATUS(Count(place + ": number " + std::to_string(i), ports[i].type, ports[i].layout));
        continue;
      }
      return Fail(place + ": number " + std::to_string(i) + " of the kernel is " + ToString(ports[i].type) + ", expected " +
                  ToString(program_.values[values[i]].type));
    }
    return {};
  }

  Status CheckCall(const Program::KernelCall& call) {
    const std::string place = ToString(call.record);
    if (!call.kernel) return Fail(place + " is not there");
    COLLAGE_TRY_STATUS(Count(place + ": workspace", call.kernel->workspace_bytes()));
    for (const size_t input : call.inputs) COLLAGE_TRY_STATUS(Use(input, place));
    for (const size_t output : call.outputs) COLLAGE_TRY_STATUS(Define(output, place));
    COLLAGE_TRY_STATUS(CheckPorts(place + ": inputs", call.kernel->inputs(), call.inputs));
    COLLAGE_TRY_STATUS(CheckPorts(place + ": outputs", call.kernel->outputs(), call.outputs));
    const std::optional<size_t> accumulated = call.kernel->accumulated_input();
    if (!accumulated) return {};
    if (*accumulated >= call.inputs.size() || call.outputs.empty()) return Fail(place + ": accumulates into an input that is not there");
    const Port& from = call.kernel->inputs()[*accumulated];
    const Port& to = call.kernel->outputs()[0];
    if (from.layout == to.layout && PhysicalByteCount(from.type, from.layout) == PhysicalByteCount(to.type, to.layout)) return {};
    return Fail(place + ": accumulates into an input of another layout or size than its output");
  }

  const Program& program_;
  std::vector<bool> defined_;
  size_t bytes_ = 0;  // so far
};

}  // namespace

std::vector<size_t> Program::Value::Sources() const {
  if (view_of) return {*view_of};
  if (slice) return {slice->of};
  return join ? join->parts : std::vector<size_t>();
}

std::string ToString(const KernelRecord& record) {
  const std::string nodes = record.nodes.empty() ? "" : " (" + ShortList(record.nodes) + ")";
  return "kernel '" + record.name + "'" + nodes + " of backend '" + record.backend + "'";
}

Result<Device> DeviceOf(const KernelRecord& record, const Device& host) {
  if (record.device.empty()) return host;
  if (CpuStatement::IsOne(record.device)) return COLLAGE_TRY(CpuStatement::Parse(record.device)).ToDevice();
  return ParseDevice(record.device, host);
}

Status CheckProgram(const Program& program) { return Checker(program).Check(); }

}  // namespace collage
