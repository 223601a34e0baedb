// Backends that are written in Python. What they are is asked of collage._backend each time, so that nothing of Python is kept here.

#include "collage/backend/backend.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "collage/backend/registry.h"
#include "python/placement/values.h"

namespace collage_python {

using namespace collage;

namespace {

nb::object Asked(const char* what) { return nb::module_::import_("collage._backend").attr(what); }

/// "ValueError: shapes differ".
std::string FirstLine(nb::python_error& error) {
  const std::string type = nb::cast<std::string>(error.type().attr("__name__"));
  const std::string text = nb::str(error.value()).c_str();
  return type + ": " + text.substr(0, text.find('\n'));
}

/// Calls `run(inputs, outputs)` of Python with arrays of the buffers.
class PythonKernel final : public Kernel {
 public:
  PythonKernel(const OpSequence& sequence, std::string label, nb::object run) : label_(std::move(label)), run_(std::move(run)) {
    for (const size_t number : sequence.parameters) inputs_.push_back({sequence.values[number].type, Layout()});
    for (const size_t number : sequence.results) outputs_.push_back({sequence.values[number].type, Layout()});
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* /*workspace*/) override {
    const nb::gil_scoped_acquire acquire;
    try {
      nb::list given;
      nb::list wanted;
      for (size_t i = 0; i < inputs.size(); ++i) given.append(ArrayAt(inputs_[i].type, inputs[i]));
      for (size_t i = 0; i < outputs.size(); ++i) wanted.append(WritableArrayAt(outputs_[i].type, outputs[i]));
      run_.get()(given, wanted);
    } catch (nb::python_error& error) {
      return Fail(label_ + " raised " + FirstLine(error));
    }
    return {};
  }

 private:
  std::string label_;
  Kept run_;
};

class PythonBackend final : public Backend {
 public:
  explicit PythonBackend(std::string name) : name_(std::move(name)) {}

  [[nodiscard]] std::string_view Name() const override { return name_; }

  [[nodiscard]] Presence Probe(const Device& device) const override {
    if (device.kind != DeviceKind::kCpu) return Presence::Absent("backends of Python are used for the CPU only");
    const nb::gil_scoped_acquire acquire;
    return Presence::Version(nb::cast<std::string>(Asked("version_of")(name_)));
  }

  [[nodiscard]] BackendRules Rules() const override {
    const nb::gil_scoped_acquire acquire;
    BackendRules rules;
    for (const nb::handle entry : Asked("rules_of")(name_)) {
      const nb::object check = entry[2];
      rules.patterns.push_back({nb::cast<std::string>(entry[0]), nb::cast<Pattern>(entry[1]), {}});
      if (check.is_none()) continue;
      rules.patterns.back().check = [kept = Kept(check)](const Match& match) {
        const nb::gil_scoped_acquire held;
        return VerdictFrom(kept.get()(match));
      };
    }
    return rules;
  }

  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& /*device*/) const override {
    if (LabelOf(function).rfind(name_ + ".", 0) != 0) return {};
    Variant variant{"default", {}, {}};
    for (const Expr& parameter : function.parameters)
      variant.inputs.resize(variant.inputs.size() + FlattenTensors(parameter->type()).size());
    variant.outputs.resize(FlattenTensors(function.result_type).size());
    return {variant};
  }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& /*device*/,
                                                        const Variant& /*variant*/) const override {
    const Expr whole = COLLAGE_TRY(MakeFunction(function.parameters, function.body, function.attributes, function.result_type));
    FunctionView view = COLLAGE_TRY(ViewOf(whole));
    const nb::gil_scoped_acquire acquire;
    try {
      const std::string label = view.label;
      const OpSequence sequence = view.sequence;
      return std::make_unique<PythonKernel>(sequence, label, Asked("kernel_of")(name_, std::move(view)));
    } catch (nb::python_error& error) {
      return Fail(name_ + ": making the kernel raised " + FirstLine(error));
    }
  }

 private:
  std::string name_;
};

}  // namespace

void BindBackends(nb::module_& module) {
  module.def(
      "add_backend",
      [](const std::string& name) {
        const Status added = AddBackend(std::make_shared<PythonBackend>(name));
        if (!added) Raise("ArgumentError", added.error().message);
      },
      nb::arg("name"));
  module.def("remove_backend", &RemoveBackend, nb::arg("name"));
}

}  // namespace collage_python
