#include "tests/lower/interpreter_backend.h"

#include "collage/ir/op_sequence.h"
#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/op/table.h"
#include "collage/runtime/layout_conversion.h"

namespace collage {
namespace {

class InterpreterKernel : public Kernel {
 public:
  InterpreterKernel(const Function& function, const Variant& variant, std::string artifact)
      : function_(function), artifact_(std::move(artifact)) {
    size_t port = 0;
    for (const Expr& parameter : function.parameters) {
      for (const TensorType& type : FlattenTensors(parameter->type())) inputs_.push_back({type, variant.inputs[port++]});
    }
    port = 0;
    for (const TensorType& type : FlattenTensors(function.result_type)) outputs_.push_back({type, variant.outputs[port++]});
    if (variant.name == "accumulate") accumulated_input_ = 1;
  }

  [[nodiscard]] std::unique_ptr<Kernel> Twin() const override { return std::make_unique<InterpreterKernel>(*this); }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void*) override {
    if (accumulated_input_ && inputs[*accumulated_input_] != outputs[0]) return Fail("no shared buffer");
    std::vector<Tensor> arguments;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Tensor& tensor = arguments.emplace_back(inputs_[i].type);
      LayoutConversion(inputs_[i].type, inputs_[i].layout, Layout(), 1).Run(inputs[i], tensor.MutableBytes());
    }
    const std::vector<Tensor> results = Interpret(function_, arguments);
    for (size_t i = 0; i < outputs.size(); ++i) {
      LayoutConversion(outputs_[i].type, Layout(), outputs_[i].layout, 1).Run(results[i].Bytes(), outputs[i]);
    }
    return {};
  }

  [[nodiscard]] std::string Serialize() const override { return artifact_; }

 private:
  Function function_;
  std::string artifact_;
};

bool IsSumOfParameters(const Function& function) {
  return IsCallOf(function.body, "add") && function.parameters.size() == 2 && function.body->As<Call>()->args == function.parameters &&
         function.parameters[1]->type() == function.result_type;
}

std::vector<Layout> LayoutsOf(const std::vector<TensorType>& types, const std::string& tag) {
  std::vector<Layout> layouts;
  for (const TensorType& type : types) layouts.push_back(type.shape.size() == 4 ? Layout::Of(tag) : Layout());
  return layouts;
}

}  // namespace

std::vector<Tensor> Interpret(const Function& function, const std::vector<Tensor>& inputs) {
  const OpSequence sequence = *ToOpSequence(function);
  std::vector<Tensor> values;
  for (const OpSequence::Value& value : sequence.values) values.push_back(value.constant ? *value.constant : Tensor(value.type));
  for (size_t i = 0; i < inputs.size(); ++i) values[sequence.parameters[i]] = inputs[i];
  for (const OpSequence::Step& step : sequence.steps) {
    std::vector<Tensor> arguments;
    std::vector<Tensor> results;
    for (const size_t input : step.inputs) arguments.push_back(values[input]);
    for (const size_t output : step.outputs) results.push_back(values[output]);
    step.op->reference(arguments, step.attributes, results);
  }
  std::vector<Tensor> results;
  for (const size_t result : sequence.results) results.push_back(values[result]);
  return results;
}

std::vector<Variant> InterpreterBackend::Variants(const Function& function, const Device&) const {
  std::vector<TensorType> inputs;
  for (const Expr& parameter : function.parameters) {
    for (const TensorType& type : FlattenTensors(parameter->type())) inputs.push_back(type);
  }
  const std::vector<TensorType> outputs = FlattenTensors(function.result_type);
  std::vector<Variant> variants;
  for (const char* tag : {"plain", "acdb", "aBcd16b"}) variants.push_back({tag, LayoutsOf(inputs, tag), LayoutsOf(outputs, tag)});
  if (IsSumOfParameters(function)) variants.push_back({"accumulate", LayoutsOf(inputs, "aBcd16b"), LayoutsOf(outputs, "aBcd16b")});
  return variants;
}

Result<std::unique_ptr<Kernel>> InterpreterBackend::Compile(const Function& function, const Device&, const Variant& variant) const {
  ++compiled;
  std::string artifact;
  if (artifacts_) {
    const Expr copy = *MakeFunction(function.parameters, function.body, function.attributes);
    artifact = variant.name + "\n" + PrintExpr(copy).text;
  }
  return std::make_unique<InterpreterKernel>(function, variant, std::move(artifact));
}

Result<std::unique_ptr<Kernel>> InterpreterBackend::Load(std::string_view artifact, const Device& device) const {
  ++loaded;
  const size_t end = artifact.find('\n');
  const ParsedExpr parsed = COLLAGE_TRY(ParseExpr(artifact.substr(end + 1), Operators()));
  const Function& function = *parsed.expr->As<Function>();
  for (const Variant& variant : Variants(function, device)) {
    if (variant.name == artifact.substr(0, end)) return std::make_unique<InterpreterKernel>(function, variant, std::string(artifact));
  }
  return Fail("unknown variant");
}

}  // namespace collage
