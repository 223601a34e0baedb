#include "collage/backend/openvino/session.h"

#include <algorithm>
#include <exception>
#include <openvino/op/constant.hpp>
#include <openvino/openvino.hpp>
#include <optional>
#include <utility>

#include "collage/backend/openvino/element_type.h"

namespace collage::openvino {
namespace {

using ModelPort = std::optional<ov::Output<const ov::Node>>;

/// One for the process, and never destroyed: the plugin's threads may outlive every static object of ours.
ov::Core& Core() {
  static auto* core = new ov::Core;
  return *core;
}

/// Runs `body` and turns what it throws into an error.
template <class Body>
auto Guarded(const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& exception) {
    return Fail(std::string("openvino: ") + exception.what());
  }
}

ov::AnyMap Properties(const Device& device, Arithmetic arithmetic) {
  return {
      // The default is bfloat16 wherever the processor has it in hardware.
      ov::hint::inference_precision(arithmetic == Arithmetic::kBFloat16 ? ov::element::bf16 : ov::element::f32),
      // Else activations in front of weights of 8 bits are rounded to 8 bits too.
      ov::hint::dynamic_quantization_group_size(0),
      ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY),
      ov::num_streams(1),
      ov::inference_num_threads(device.threads),
      // Pinned workers would share cores with the OpenMP team, which is not pinned.
      ov::hint::enable_cpu_pinning(false),
  };
}

ov::Shape ToShape(const TensorType& type) { return {type.shape.begin(), type.shape.end()}; }

/// An inference request whose tensors are the caller's buffers.
class RequestKernel final : public Kernel {
 public:
  RequestKernel(ov::CompiledModel model, OnnxForm form, const std::vector<ModelPort>& input_ports,
                const std::vector<ModelPort>& output_ports)
      : weights_(std::move(form.weights)), model_(std::move(model)), request_(model_.create_infer_request()) {
    for (const TensorType& type : form.inputs) inputs_.push_back({type, Layout()});
    for (const TensorType& type : form.outputs) outputs_.push_back({type, Layout()});
    input_slots_ = MakeSlots(input_ports, form.inputs);
    output_slots_ = MakeSlots(output_ports, form.outputs);
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* /*workspace*/) override {
    return Guarded([&]() -> Status {
      // The request only reads its inputs; its interface has no tensor of constant memory.
      for (size_t i = 0; i < inputs.size(); ++i) Bind(input_slots_[i], const_cast<void*>(inputs[i]));
      for (size_t i = 0; i < outputs.size(); ++i) Bind(output_slots_[i], outputs[i]);
      request_.infer();
      return {};
    });
  }

 private:
  struct Slot {
    ModelPort port;
    ov::element::Type element_type;
    ov::Shape shape;
    void* bound = nullptr;
  };

  static std::vector<Slot> MakeSlots(const std::vector<ModelPort>& ports, const std::vector<TensorType>& types) {
    std::vector<Slot> slots;
    for (size_t i = 0; i < types.size(); ++i) slots.push_back({ports[i], *ToElementType(types[i].dtype), ToShape(types[i])});
    return slots;
  }

  /// Making and setting a tensor allocates, so it is done only when the caller's buffer is another one.
  void Bind(Slot& slot, void* buffer) {
    if (slot.bound == buffer || !slot.port) return;
    request_.set_tensor(*slot.port, ov::Tensor(slot.element_type, slot.shape, buffer));
    slot.bound = buffer;
  }

  std::vector<std::pair<std::string, Tensor>> weights_;  // which the model may read
  ov::CompiledModel model_;
  ov::InferRequest request_;
  std::vector<Slot> input_slots_;
  std::vector<Slot> output_slots_;
};

/// The port of each name, types checked. OpenVINO drops inputs that nothing reads: those have none.
Result<std::vector<ModelPort>> FindPorts(const std::vector<ov::Output<const ov::Node>>& ports, const std::vector<std::string>& names,
                                         const std::vector<TensorType>& types) {
  std::vector<ModelPort> found(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string& name = names[i];
    const auto element_type = ToElementType(types[i].dtype);
    if (!element_type)
      return Fail("openvino: '" + name + "' is " + ToString(types[i]) + ", a type that the CPU plugin does not compute in");
    for (const auto& port : ports) {
      if (port.get_names().count(name) > 0) found[i] = port;
    }
    if (found[i] && (found[i]->get_element_type() != *element_type || found[i]->get_partial_shape() != ov::PartialShape(ToShape(types[i]))))
      return Fail("openvino: it gives '" + name + "' type " + found[i]->get_element_type().to_string() + " and shape " +
                  found[i]->get_partial_shape().to_string() + ", not " + ToString(types[i]));
  }
  return found;
}

/// Inputs that are weights become constants, whose elements stay where they are: reading them from the bytes makes a copy, which a compiled
/// model keeps.
void BindWeights(ov::Model& model, const std::vector<std::pair<std::string, Tensor>>& weights) {
  if (weights.empty()) return;
  for (const auto& [name, tensor] : weights) {
    const auto kept = std::make_shared<Tensor>(tensor);
    for (const std::shared_ptr<ov::op::v0::Parameter>& parameter : ov::ParameterVector(model.get_parameters())) {
      if (parameter->output(0).get_names().count(name) == 0) continue;
      const auto constant = std::make_shared<ov::op::v0::Constant>(parameter->get_element_type(), ToShape(tensor.type()),
                                                                   const_cast<std::byte*>(tensor.Bytes()), kept);
      constant->set_friendly_name(name);
      parameter->output(0).replace(constant->output(0));
      model.remove_parameter(parameter);
    }
  }
  model.validate_nodes_and_infer_types();
}

struct ReadModel {
  OnnxForm form;
  std::shared_ptr<ov::Model> model;
};

/// A translator may ask for a weight's values, as that of MatMulNBits does. To it weights are constants, which are copies for good.
Result<ReadModel> Read(const std::function<Result<OnnxForm>(LargeWeightsAs)>& write) {
  ReadModel read{COLLAGE_TRY(write(LargeWeightsAs::kInputs)), nullptr};
  try {
    read.model = Core().read_model(read.form.bytes, ov::Tensor());
    BindWeights(*read.model, read.form.weights);
  } catch (const ov::Exception&) {
    if (read.form.weights.empty()) throw;
    read.form = COLLAGE_TRY(write(LargeWeightsAs::kAddresses));
    read.model = Core().read_model(read.form.bytes, ov::Tensor());
  }
  return read;
}

}  // namespace

Result<std::string> RuntimeVersion() {
  return Guarded([&]() -> Result<std::string> {
    for (const auto& [device, version] : Core().get_versions("CPU")) return version.buildNumber;
    return Fail("openvino: it has no CPU plugin");
  });
}

bool HasBFloat16() {
  const Result<bool> has = Guarded([]() -> Result<bool> {
    const std::vector<std::string> can = Core().get_property("CPU", ov::device::capabilities);
    return std::find(can.begin(), can.end(), ov::device::capability::BF16) != can.end();
  });
  return has && *has;
}

Result<std::unique_ptr<Kernel>> CompileModel(const std::function<Result<OnnxForm>(LargeWeightsAs)>& write, const Device& device,
                                             Arithmetic arithmetic) {
  return Guarded([&]() -> Result<std::unique_ptr<Kernel>> {
    auto [form, model] = COLLAGE_TRY(Read(write));
    ov::CompiledModel compiled = Core().compile_model(model, "CPU", Properties(device, arithmetic));
    const auto input_ports = COLLAGE_TRY(FindPorts(compiled.inputs(), form.input_names, form.inputs));
    const auto output_ports = COLLAGE_TRY(FindPorts(compiled.outputs(), form.output_names, form.outputs));
    for (size_t i = 0; i < output_ports.size(); ++i) {
      if (!output_ports[i]) return Fail("openvino: the compiled model has lost output '" + form.output_names[i] + "'");
    }
    return std::make_unique<RequestKernel>(std::move(compiled), std::move(form), input_ports, output_ports);
  });
}

}  // namespace collage::openvino
