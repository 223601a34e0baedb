#include "collage/onnx/reader.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "collage/ir/visit.h"
#include "collage/onnx/cut.h"
#include "collage/onnx/graph.h"
#include "collage/onnx/graph_reader.h"
#include "collage/onnx/one_line.h"
#include "collage/onnx/original.h"
#include "collage/onnx/packed_products.h"
#include "collage/onnx/sequence.h"
#include "collage/support/log.h"
#include "collage/support/mapped_file.h"

namespace collage {
namespace {

using onnx_io::GraphReader;
using onnx_io::ModelReading;
using onnx_io::OnnxDimension;
using onnx_io::OnnxGraph;
using onnx_io::OnnxInput;

/// "1x3x224x224" with the symbols, or "?", of unknown extents.
std::string FlagFor(const OnnxInput& input) {
  std::string extents;
  for (const OnnxDimension& dimension : *input.shape) {
    if (!extents.empty()) extents += "x";
    extents += dimension.extent ? std::to_string(*dimension.extent) : dimension.symbol.empty() ? "?" : dimension.symbol;
  }
  return "--shape " + input.name + "=" + extents;
}

/// Extents that inputs of which a shape is given give symbols. One that they give different extents is not among them: exporters write one
/// symbol for what need not be equal.
std::map<std::string, int64_t> ExtentsOfSymbols(const OnnxGraph& graph, const std::function<const Shape*(const std::string&)>& given) {
  std::map<std::string, int64_t> extents;
  std::set<std::string> unsure;
  for (const OnnxInput& input : graph.inputs) {
    const Shape* shape = given(input.name);
    if (shape == nullptr || !input.shape || shape->size() != input.shape->size()) continue;
    for (size_t i = 0; i < shape->size(); ++i) {
      const std::string& symbol = (*input.shape)[i].symbol;
      if (symbol.empty()) continue;
      const auto [known, is_new] = extents.emplace(symbol, (*shape)[i]);
      if (!is_new && known->second != (*shape)[i]) unsure.insert(symbol);
    }
  }
  for (const std::string& symbol : unsure) extents.erase(symbol);
  return extents;
}

/// The shape of an input: what the model says, with what it leaves open filled in from the options.
Result<Shape> ResolveInputShape(const OnnxInput& input, const Shape* given, const std::map<std::string, int64_t>& symbols) {
  if (!input.shape) {
    if (given != nullptr) return *given;
    return Fail("has no known rank: give its shape, for example --shape " + input.name + "=1x3x224x224");
  }
  if (given != nullptr && given->size() != input.shape->size()) {
    return Fail("is given " + std::to_string(given->size()) + " extents where " + std::to_string(input.shape->size()) +
                " are right: " + FlagFor(input));
  }
  Shape shape;
  for (size_t i = 0; i < input.shape->size(); ++i) {
    std::optional<int64_t> extent = (*input.shape)[i].extent;
    const auto symbol = symbols.find((*input.shape)[i].symbol);
    if (given == nullptr && !extent && symbol != symbols.end()) extent = symbol->second;
    if (given == nullptr && !extent) return Fail("has extents that the model leaves open: give numbers for them with " + FlagFor(input));
    if (given != nullptr && extent && (*given)[i] != *extent) {
      return Fail("is given the extent " + std::to_string((*given)[i]) + " for dimension " + std::to_string(i) +
                  ", which the model fixes at " + std::to_string(*extent) + ": " + FlagFor(input));
    }
    shape.push_back(extent ? *extent : (*given)[i]);
  }
  return shape;
}

/// Reads the model's graph as the function "main", and what it calls.
class ModelReader {
 public:
  /// `fixed`: inputs whose given value is taken for a constant. `cuts`: nodes whose types depend on values are left to a remainder.
  ModelReader(const OnnxGraph& graph, const ReadOptions& options, const std::set<std::string>& fixed, bool cuts)
      : graph_(graph),
        options_(options),
        fixed_(fixed),
        reader_(graph, reading_, nullptr, cuts ? onnx_io::UnknownValues::kLeftOut : onnx_io::UnknownValues::kRefused) {
    reading_.names.Reserve("main");
    symbols_ = ExtentsOfSymbols(graph, [this](const std::string& input) { return GivenShape(input); });
  }

  /// After an error: the inputs whose values had to be known.
  [[nodiscard]] std::set<std::string> RequiredInputs() const {
    std::set<std::string> names;
    if (reading_.folder.required() == nullptr) return names;
    PostOrder(reading_.folder.required(), [&](const Expr& expr) {
      if (const Var* variable = expr->As<Var>()) names.insert(variable->name);
    });
    return names;
  }

  /// After an error: whether it may have come of a value that had to be known.
  [[nodiscard]] bool RequiresValue() const { return reading_.folder.required() != nullptr; }

  Result<OnnxModel> Read() {
    COLLAGE_TRY_STATUS(reader_.DefineInitializers());
    COLLAGE_TRY_STATUS(DefineInputs());
    COLLAGE_TRY_STATUS(reader_.ReadNodes());
    if (graph_.outputs.empty()) return Fail("the model has no outputs");
    for (const OnnxInput& declared : graph_.output_types) COLLAGE_TRY_STATUS(CheckDeclaredType(declared));
    std::vector<Expr> outputs;
    std::vector<std::string> output_names;
    OnnxModel model;
    if (reader_.left_out().empty()) {
      const std::vector<Expr> values = COLLAGE_TRY(reader_.Outputs());
      for (size_t i = 0; i < values.size(); ++i) COLLAGE_TRY_STATUS(AppendTensors(values[i], graph_.outputs[i], outputs, output_names));
    } else {
      onnx_io::Cut cut = COLLAGE_TRY(onnx_io::CutGraph(graph_, reader_, options_.row_counts));
      outputs = std::move(cut.head);
      output_names = std::move(cut.head_names);
      model.remainder = std::move(cut.remainder);
      model.regions = std::move(cut.regions);
    }
    const Expr body = outputs.size() == 1 ? outputs[0] : MakeTuple(std::move(outputs));
    model.module = WithCalledFunctions(COLLAGE_TRY(MakeFunction(parameters_, body)));
    for (const Expr& parameter : parameters_) model.input_names.push_back(parameter->As<Var>()->name);
    model.output_names = std::move(output_names);
    model.fixed_inputs.assign(fixed_.begin(), fixed_.end());
    model.opset = graph_.opset;
    model.metadata = graph_.metadata;
    return model;
  }

 private:
  /// Main and the functions that it calls, directly or not, in the order in which they are met.
  [[nodiscard]] IRModule WithCalledFunctions(Expr main) const {
    IRModule module;
    std::vector<std::pair<std::string, Expr>> pending{{"main", std::move(main)}};
    while (!pending.empty()) {
      const auto [name, function] = std::move(pending.back());
      pending.pop_back();
      if (module.Find(name)) continue;
      module.Set(name, function);
      PostOrder(function, [&](const Expr& expr) {
        if (const GlobalVar* global = expr->As<GlobalVar>()) pending.emplace_back(global->name, reading_.functions.Find(global->name));
      });
    }
    return module;
  }

  Status DefineInputs() {
    for (const OnnxInput& input : graph_.inputs) {
      const bool is_initializer = reader_.Find(input.name) != nullptr && !taken_names_.contains(input.name);
      if (is_initializer) continue;
      COLLAGE_TRY_STATUS(reader_.Define(input.name, COLLAGE_TRY(ValueOf(input))));
    }
    for (const auto& [name, shape] : options_.input_shapes) {
      if (!taken_names_.contains(name))
        return Fail("a shape is given for '" + name + "', which is no input: the inputs are " + InputList());
    }
    return {};
  }

  Result<Expr> ValueOf(const OnnxInput& input) {
    if (options_.absent_inputs.contains(input.name)) {
      if (input.is_optional) return onnx_io::Nothing();
      return Fail("input '" + input.name + "' is no optional; it must have a value");
    }
    if (!input.is_sequence) return TensorInput(input);
    std::vector<Expr> elements;
    const size_t length = COLLAGE_TRY(LengthOf(input));
    while (elements.size() < length) {
      OnnxInput element = input;
      element.name = ElementName(input.name, elements.size());
      elements.push_back(COLLAGE_TRY(TensorInput(element)));
    }
    return MakeTuple(std::move(elements));
  }

  static std::string ElementName(const std::string& sequence, size_t place) { return sequence + "[" + std::to_string(place) + "]"; }

  /// As it is given, or as many as there are shapes or values for.
  Result<size_t> LengthOf(const OnnxInput& input) {
    taken_names_.insert(input.name);
    const auto given = options_.input_shapes.find(input.name);
    if (given != options_.input_shapes.end()) {
      constexpr int64_t kLongest = 100'000;
      if (given->second.size() == 1 && given->second[0] >= 0 && given->second[0] <= kLongest) return static_cast<size_t>(given->second[0]);
      return Fail("input '" + input.name + "' is a sequence: its length must be given as one number of at most " +
                  std::to_string(kLongest) + ", such as --shape " + input.name + "=2");
    }
    size_t length = 0;
    while (GivenShape(ElementName(input.name, length)) != nullptr) ++length;
    if (length > 0) return length;
    return Fail("input '" + input.name + "' is a sequence of unknown length: give it, for example --shape " + input.name +
                "=2, or the shapes of its tensors, --shape " + ElementName(input.name, 0) + "=1x3");
  }

  Result<Expr> TensorInput(const OnnxInput& input) {
    if (!taken_names_.insert(input.name).second) return Fail("the name '" + input.name + "' is defined twice");
    Result<TensorType> type = InputType(input, GivenShape(input.name));
    if (!type) return Fail("input '" + input.name + "' " + type.error().message);
    if (fixed_.contains(input.name)) return FixedInput(input.name, *type);
    parameters_.push_back(MakeVar(input.name, std::move(*type)));
    return parameters_.back();
  }

  /// The element type that a node gives an output. Shapes that are declared wrongly are common, and runtimes only warn of them.
  Status CheckDeclaredType(const OnnxInput& declared) const {
    const Expr value = reader_.Find(declared.name);
    if (value == nullptr || !declared.dtype) return {};
    for (const TensorType& given : FlattenTensors(value->type())) {
      if (given.dtype == *declared.dtype) continue;
      for (size_t i = 0; i < graph_.nodes.size(); ++i) {
        const std::vector<std::string>& outputs = graph_.nodes[i].outputs;
        if (std::find(outputs.begin(), outputs.end(), declared.name) == outputs.end()) continue;
        return Fail(Error{"gives '" + declared.name + "' of " + std::string(Name(given.dtype)) +
                          ", which the model declares as output of " + std::string(Name(*declared.dtype))}
                        .At(reader_.PlaceOf(i)));
      }
    }
    return {};
  }

  /// The tensors of an output with their names.
  static Status AppendTensors(const Expr& value, const std::string& name, std::vector<Expr>& tensors, std::vector<std::string>& names) {
    if (onnx_io::IsNothing(value)) return {};
    if (value->type().AsTensor()) {
      tensors.push_back(value);
      names.push_back(name);
      return {};
    }
    const std::vector<Expr> elements = COLLAGE_TRY(onnx_io::ElementsOf(value));
    for (size_t i = 0; i < elements.size(); ++i) COLLAGE_TRY_STATUS(AppendTensors(elements[i], ElementName(name, i), tensors, names));
    return {};
  }

  [[nodiscard]] const Shape* GivenShape(const std::string& input) const {
    const auto shape = options_.input_shapes.find(input);
    if (shape != options_.input_shapes.end()) return &shape->second;
    const auto value = options_.input_values.find(input);
    return value == options_.input_values.end() ? nullptr : &value->second.shape();
  }

  Result<Expr> FixedInput(const std::string& name, const TensorType& type) const {
    const Tensor& value = options_.input_values.at(name);
    if (value.type() == type) return MakeConstant(value);
    return Fail("input '" + name + "' is given a value of type " + ToString(value.type()) + " where " + ToString(type) + " is right");
  }

  [[nodiscard]] Result<TensorType> InputType(const OnnxInput& input, const Shape* given) const {
    if (!input.dtype) return Fail("is no dense tensor of a supported element type");
    TensorType type{COLLAGE_TRY(ResolveInputShape(input, given, symbols_)), *input.dtype};
    COLLAGE_TRY_STATUS(onnx_io::CheckExtents(type.shape));
    return type;
  }

  [[nodiscard]] std::string InputList() const {
    std::string list;
    for (const Expr& parameter : parameters_) list += (list.empty() ? "" : ", ") + parameter->As<Var>()->name;
    return list.empty() ? "none" : list;
  }

  const OnnxGraph& graph_;
  const ReadOptions& options_;
  const std::set<std::string>& fixed_;
  ModelReading reading_;
  GraphReader reader_;
  std::vector<Expr> parameters_;
  std::set<std::string> taken_names_;       // of inputs and their elements
  std::map<std::string, int64_t> symbols_;  // extents that given shapes tell
};

/// Initializers that are listed as inputs are what these are where nobody gives them. Where their shape is given they are inputs like any
/// others: these, by name.
std::set<std::string> GivenInitializers(const OnnxGraph& graph, const ReadOptions& options) {
  std::set<std::string> given;
  for (const OnnxInput& input : graph.inputs) {
    if (options.input_shapes.contains(input.name) || options.input_values.contains(input.name)) given.insert(input.name);
  }
  std::set<std::string> initializers;
  for (const auto& [name, tensor] : graph.initializers) {
    if (given.contains(name)) initializers.insert(name);
  }
  return initializers;
}

OnnxGraph WithoutInitializers(const OnnxGraph& graph, const std::set<std::string>& names) {
  OnnxGraph result = graph;
  std::erase_if(result.initializers, [&](const auto& initializer) { return names.contains(initializer.first); });
  return result;
}

/// Reads the graph; where a value had to be known that depends on inputs whose values are given, again with these fixed. What still is not
/// known then cuts the model, where that is permitted.
Result<OnnxModel> ReadWithFixedInputs(const OnnxGraph& graph, const ReadOptions& options) {
  if (const std::set<std::string> given = GivenInitializers(graph, options); !given.empty())
    return ReadWithFixedInputs(WithoutInitializers(graph, given), options);
  std::set<std::string> fixed;
  while (true) {
    const bool may_fix_more = fixed.size() < options.input_values.size();
    ModelReader reader(graph, options, fixed, false);
    Result<OnnxModel> model = reader.Read();
    if (model) return model;
    const size_t before = fixed.size();
    if (may_fix_more) {
      for (const std::string& name : reader.RequiredInputs()) {
        if (options.input_values.contains(name)) fixed.insert(name);
      }
    }
    if (fixed.size() > before) continue;
    if (!options.may_cut || !reader.RequiresValue()) return model;
    return ModelReader(graph, options, fixed, true).Read();
  }
}

constexpr const char* kNoMemory = "the model needs more memory than there is";

}  // namespace

Result<OnnxModel> ReadOnnx(std::string_view bytes, const ReadOptions& options) {
  try {
    Result<OnnxGraph> graph = onnx_io::ParseOnnxGraph({bytes, nullptr}, options.external_data_directory);
    if (!graph) return Fail(onnx_io::InOneLine(graph.error()));
    Result<OnnxModel> model = ReadWithFixedInputs(onnx_io::WithPackedProducts(*std::move(graph)), options);
    if (!model) return Fail(onnx_io::InOneLine(model.error()));
    return model;
  } catch (const std::bad_alloc&) {
    return Fail(kNoMemory);
  }
}

Result<OnnxFile> OnnxFile::Open(const std::filesystem::path& path, std::filesystem::path external_data_directory) {
  const MappedFile file = COLLAGE_TRY(MappedFile::Open(path));
  if (external_data_directory.empty()) external_data_directory = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  try {
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::canonical(path, error).parent_path();
    Result<OnnxGraph> graph = onnx_io::ParseOnnxGraph({file.content(), file.owner()}, external_data_directory, folder);
    if (!graph) return Fail(onnx_io::InOneLine(graph.error().At(path.string())));
    Result<OriginalModel> original = TakeApart(file.content(), *graph);
    if (!original) spdlog::debug("{}: compilers are not given the model as it is: {}", path.string(), original.error().message);
    return OnnxFile(path, std::make_shared<const OnnxGraph>(onnx_io::WithPackedProducts(*std::move(graph))),
                    original ? std::make_shared<const OriginalModel>(std::move(*original)) : nullptr);
  } catch (const std::bad_alloc&) {
    return Fail(Error{kNoMemory}.At(path.string()));
  }
}

Result<OnnxModel> OnnxFile::Read(const ReadOptions& options) const {
  try {
    Result<OnnxModel> model = ReadWithFixedInputs(*graph_, options);
    if (!model) return Fail(onnx_io::InOneLine(model.error().At(path_.string())));
    // Its inputs and outputs must be those that the program has.
    const auto is_tensor = [](const OnnxInput& input) { return !input.is_sequence && !input.is_optional; };
    const bool takes_tensors = std::all_of(graph_->inputs.begin(), graph_->inputs.end(), is_tensor) && model->fixed_inputs.empty() &&
                               GivenInitializers(*graph_, options).empty();
    if (!takes_tensors || original_ == nullptr) return model;
    if (model->remainder != nullptr) {
      Result<OriginalModel> head = HeadOf(*original_, model->output_names);
      if (!head) spdlog::debug("{}: compilers are not given the head as it is: {}", path_.string(), head.error().message);
      if (head) model->original = std::make_shared<const OriginalModel>(std::move(*head));
    } else if (model->output_names == graph_->outputs) {
      model->original = original_;
    }
    return model;
  } catch (const std::bad_alloc&) {
    return Fail(Error{kNoMemory}.At(path_.string()));
  }
}

Result<OnnxModel> ReadOnnxFile(const std::filesystem::path& path, const ReadOptions& options) {
  return COLLAGE_TRY(OnnxFile::Open(path, options.external_data_directory)).Read(options);
}

}  // namespace collage
