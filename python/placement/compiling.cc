// Compiling in this process, where callables of Python may take part, and placing without compiling.

#include <collage.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cmath>
#include <set>

#include "collage/driver/compile.h"
#include "collage/driver/estimated_compile.h"
#include "collage/driver/model_file.h"
#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/lower/save.h"
#include "collage/onnx/graph.h"
#include "collage/op/table.h"
#include "collage/support/clock.h"
#include "collage/support/file.h"
#include "collage/transform/inline_closures.h"
#include "collage/transform/pass.h"
#include "python/placement/rules.h"
#include "python/placement/values.h"
#include "python/src/watched.h"
#include "tools/compiler/job.h"

namespace collage_python {

using namespace collage;

namespace {

using Trees = std::map<std::string, RuleTree>;

/// Options of JSON, and what only Python can say.
CompileOptions OptionsFrom(const std::string& text, const Trees& rules, const std::vector<FormRule>& forms, nb::object estimator) {
  CompileOptions options = ValueOr(tools::ReadJobOptions(text), "ArgumentError");
  for (const auto& [name, tree] : rules) options.partition_rules[name] = tree.make;
  options.forms.insert(options.forms.end(), forms.begin(), forms.end());
  if (const Status named = CheckNamesOfStated(options.forms); !named) Raise("ArgumentError", named.error().message);
  if (estimator.is_none()) return options;
  options.estimator = [kept = Kept(std::move(estimator))](const Expr& function, const std::string& target) -> Result<Cost> {
    FunctionView view = COLLAGE_TRY(ViewOf(function));
    const nb::gil_scoped_acquire acquire;
    const nb::object answer = kept.get()(std::move(view), target);
    if (answer.is_none()) return Cost::Unknown();
    const double seconds = PyFloat_AsDouble(answer.ptr());
    PyErr_Clear();  // what is no number gives -1
    if (std::isnan(seconds) || seconds < 0)
      Raise("ArgumentError", std::string("an estimator answers seconds or None, not ") + nb::repr(answer).c_str());
    return std::isinf(seconds) ? Cost::Invalid() : Cost::Seconds(seconds);
  };
  return options;
}

/// Tells the caller in Python, not too often, and stops when it wants that. What it raises comes out of the compile.
class Listener {
 public:
  explicit Listener(nb::object progress) : watched_{std::move(progress)} {}

  [[nodiscard]] Progress AsProgress() {
    return {[this](const ProgressEvent& event) { Hear(event); }, &stop_};
  }

 private:
  static constexpr double kSecondsBetweenCalls = 0.05;  // as collage_compile's

  void Hear(const ProgressEvent& event) {
    if (Clock::SecondsSince(told_) < kSecondsBetweenCalls) return;
    told_ = Clock::now();
    const nb::gil_scoped_acquire acquire;
    const int wish = watched_.Wish(event.stage.c_str(), event.done, event.total, event.detail.c_str());
    if (wish == COLLAGE_GIVE_UP) throw nb::python_error(std::move(*watched_.raised));
    if (wish == COLLAGE_FINISH) stop_ = true;
  }

  Watched watched_;
  std::atomic<bool> stop_ = false;
  Clock::time_point told_ = {};
};

void CompileHere(const std::string& model, const std::string& output, const std::string& options_text, const Trees& rules,
                 const std::vector<FormRule>& forms, nb::object estimator, nb::object progress) {
  CompileOptions options = OptionsFrom(options_text, rules, forms, std::move(estimator));
  Listener listener(std::move(progress));
  options.progress = listener.AsProgress();
  options.output = output;
  Result<CompiledModel> compiled = [&] {
    const nb::gil_scoped_release release;
    return CompileModel(model, options);
  }();
  ValueOr(std::move(compiled), "CompileError");
}

ProgramView Read(const std::string& path, const std::string& options_text) {
  const CompileOptions options = ValueOr(tools::ReadJobOptions(options_text), "ArgumentError");
  const auto read = [&]() -> Result<ProgramView> {
    const ModelFile file = COLLAGE_TRY(ModelFile::Open(path, options.constants));
    OnnxModel model = COLLAGE_TRY(file.Read({options.profiles.front(), {}, {}}));
    model.module = COLLAGE_TRY(RunPasses(COLLAGE_TRY(InlineClosures(model.module)), SafeGlobalPasses()));
    return ProgramView{std::move(model)};
  };
  return ValueOr(read(), "CompileError");
}

/// (name, element type, shape): the type empty where it is no tensor; extents are numbers, names, or None, and so is an unknown shape.
nb::list Declared(const std::vector<onnx_io::OnnxInput>& values, const std::set<std::string>& left_out) {
  nb::list declared;
  for (const onnx_io::OnnxInput& value : values) {
    if (left_out.contains(value.name)) continue;
    nb::object shape = nb::none();
    if (value.shape) {
      nb::list extents;
      for (const onnx_io::OnnxDimension& dimension : *value.shape) {
        if (dimension.extent) {
          extents.append(*dimension.extent);
        } else {
          extents.append(dimension.symbol.empty() ? nb::object(nb::none()) : nb::cast(dimension.symbol));
        }
      }
      shape = extents;
    }
    const bool is_tensor = value.dtype && !value.is_sequence && !value.is_optional;
    declared.append(nb::make_tuple(value.name, is_tensor ? std::string(Name(*value.dtype)) : "", shape));
  }
  return declared;
}

/// The inputs and outputs of a program in Relay's text, as a model declares them.
onnx_io::OnnxGraph DeclaredByProgram(const OnnxModel& model) {
  const auto declare = [](const std::string& name, const TensorType& type) {
    onnx_io::OnnxInput value{name, type.dtype, std::vector<onnx_io::OnnxDimension>()};
    for (const int64_t extent : type.shape) value.shape->push_back({extent, ""});
    return value;
  };
  onnx_io::OnnxGraph graph;
  const Function& main = model.module.Main();
  const std::vector<TensorType> results = FlattenTensors(main.result_type);
  for (size_t i = 0; i < main.parameters.size(); ++i)
    graph.inputs.push_back(declare(model.input_names[i], *main.parameters[i]->type().AsTensor()));
  for (size_t i = 0; i < results.size(); ++i) graph.output_types.push_back(declare(model.output_names[i], results[i]));
  return graph;
}

/// What a model says of its inputs and outputs, and of itself.
nb::dict Describe(const std::string& path, const std::string& constants) {
  const ModelFile file = ValueOr(ModelFile::Open(path, constants), "CompileError");
  onnx_io::OnnxGraph declared;
  if (!file.graph()) declared = DeclaredByProgram(ValueOr(file.Read({}), "CompileError"));
  const onnx_io::OnnxGraph& graph = file.graph() ? *file.graph() : declared;
  std::set<std::string> initializers;
  for (const auto& [name, tensor] : graph.initializers) initializers.insert(name);
  nb::dict properties;
  for (const auto& [key, value] : graph.metadata.custom_metadata_map) properties[key.c_str()] = value;
  nb::dict described;
  described["inputs"] = Declared(graph.inputs, initializers);
  described["outputs"] = Declared(graph.output_types, {});
  described["producer_name"] = graph.metadata.producer_name;
  described["graph_name"] = graph.metadata.graph_name;
  described["domain"] = graph.metadata.domain;
  described["description"] = graph.metadata.description;
  described["graph_description"] = graph.metadata.graph_description;
  described["version"] = graph.metadata.version;
  described["custom_metadata_map"] = properties;
  return described;
}

ProgramView Parse(const std::string& text) {
  ParseOptions options;
  options.missing_constant = RandomConstants(1);
  ProgramView program;
  program.model.module = ValueOr(ParseModule(text, Operators(), options), "ArgumentError").module;
  return program;
}

/// (report as JSON, the partitioned program).
nb::tuple Place(const ProgramView& program, const std::string& options_text, const Trees& rules, const std::vector<FormRule>& forms,
                nb::object estimator) {
  const CompileOptions options = OptionsFrom(options_text, rules, forms, std::move(estimator));
  if (!program.model.module.Find("main")) Raise("ArgumentError", "the program has no @main");
  const auto place = [&]() -> Result<std::pair<std::string, std::string>> {
    const nb::gil_scoped_release release;
    const PlacedFunction placed = COLLAGE_TRY(PlaceFunction(program.model.module.MainExpr(), options));
    return std::pair(ToJson(placed.report), Print(placed.module));
  };
  const auto [report, text] = ValueOr(place(), "CompileError");
  return nb::make_tuple(report, text);
}

}  // namespace

void BindCompiling(nb::module_& module) {
  module.def("compile", &CompileHere, nb::arg("model"), nb::arg("output"), nb::arg("options"), nb::arg("rules"), nb::arg("forms"),
             nb::arg("estimator").none(), nb::arg("progress").none());
  module.def("read", &Read, nb::arg("path"), nb::arg("options"));
  module.def("describe", &Describe, nb::arg("path"), nb::arg("constants"),
             nb::sig("def describe(path: str, constants: str) -> dict[str, typing.Any]"));
  module.def("parse", &Parse, nb::arg("text"));
  module.def("place", &Place, nb::arg("program"), nb::arg("options"), nb::arg("rules"), nb::arg("forms"), nb::arg("estimator").none());
}

}  // namespace collage_python
