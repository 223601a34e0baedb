#include "collage/op/recurrent.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "collage/op/families.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

/// Functions of x with parameters alpha and beta and what these are by default (ONNX, LSTM); nothing where there is none.
struct ActivationRecord {
  const char* name;
  std::optional<double> alpha;
  std::optional<double> beta;
  double (*function)(double x, double alpha, double beta);
};

constexpr ActivationRecord kActivations[] = {
    {"sigmoid", {}, {}, [](double x, double, double) { return 1 / (1 + std::exp(-x)); }},
    {"tanh", {}, {}, [](double x, double, double) { return std::tanh(x); }},
    {"relu", {}, {}, [](double x, double, double) { return std::max(x, 0.0); }},
    {"affine", 1, 0, [](double x, double alpha, double beta) { return alpha * x + beta; }},
    {"leakyrelu", 0.01, {}, [](double x, double alpha, double) { return x < 0 ? alpha * x : x; }},
    {"thresholdedrelu", 1, {}, [](double x, double alpha, double) { return x > alpha ? x : 0; }},
    {"scaledtanh", 1, 1, [](double x, double alpha, double beta) { return alpha * std::tanh(beta * x); }},
    {"hardsigmoid", 0.2, 0.5, [](double x, double alpha, double beta) { return std::clamp(alpha * x + beta, 0.0, 1.0); }},
    {"elu", 1, {}, [](double x, double alpha, double) { return x < 0 ? alpha * (std::exp(x) - 1) : x; }},
    {"softsign", {}, {}, [](double x, double, double) { return x / (1 + std::abs(x)); }},
    {"softplus", {}, {}, [](double x, double, double) { return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0); }}};

const ActivationRecord* FindActivation(const std::string& name) {
  const auto* record = std::find_if(std::begin(kActivations), std::end(kActivations), [&](const auto& item) { return name == item.name; });
  return record == std::end(kActivations) ? nullptr : record;
}

std::vector<double> Numbers(const Attributes& attributes, const char* name) {
  std::vector<double> numbers;
  const AttributeValue* value = attributes.Find(name);
  if (value == nullptr || value->AsList() == nullptr) return numbers;
  for (const AttributeValue& item : *value->AsList()) {
    numbers.push_back(item.AsDouble() != nullptr ? *item.AsDouble() : item.AsInt() != nullptr ? static_cast<double>(*item.AsInt()) : 0.0);
  }
  return numbers;
}

/// ONNX has them consumed in the order of the functions and says of none that it has no use for one. As in ONNX Runtime, only who has
/// such a parameter consumes a number.
class ParametersInOrder {
 public:
  explicit ParametersInOrder(std::vector<double> numbers) : numbers_(std::move(numbers)) {}
  /// Of a function that takes `fallback` where there is no number left; zero for one without such a parameter.
  double Next(const std::optional<double>& fallback) {
    if (!fallback) return 0;
    return next_ < numbers_.size() ? numbers_[next_++] : *fallback;
  }

 private:
  std::vector<double> numbers_;
  size_t next_ = 0;
};

Result<std::vector<std::string>> ActivationNames(const Attributes& attributes, const std::vector<std::string>& fallback,
                                                 int64_t directions) {
  std::vector<std::string> names;
  const AttributeValue* value = attributes.Find("activations");
  if (value == nullptr || value->IsNone()) {
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), fallback.begin(), fallback.end());
    return names;
  }
  for (const AttributeValue& item : *value->AsList()) names.push_back(item.AsString() != nullptr ? *item.AsString() : "");
  if (names.size() == fallback.size() * static_cast<size_t>(directions)) return names;
  return Fail("attribute 'activations' has " + std::to_string(names.size()) + " names, expected " +
              std::to_string(fallback.size() * static_cast<size_t>(directions)));
}

const std::vector<std::string> kNames = {"data", "weight", "recurrent_weight", "bias", "seq_lengths", "initial_h", "initial_c", "peephole"};

}  // namespace

Result<std::vector<ActivationChoice>> ReadActivationChoices(const Attributes& attributes, const std::vector<std::string>& fallback,
                                                            int64_t directions) {
  ParametersInOrder alphas(Numbers(attributes, "activation_alpha"));
  ParametersInOrder betas(Numbers(attributes, "activation_beta"));
  std::vector<ActivationChoice> choices;
  for (std::string& name : COLLAGE_TRY(ActivationNames(attributes, fallback, directions))) {
    const ActivationRecord* record = FindActivation(name);
    if (record == nullptr) return Fail("attribute 'activations' has the name \"" + name + "\", which is none that is known");
    choices.push_back({std::move(name), alphas.Next(record->alpha), betas.Next(record->beta)});
  }
  return choices;
}

Result<std::vector<Activation>> ReadActivations(const Attributes& attributes, const std::vector<std::string>& fallback,
                                                int64_t directions) {
  std::vector<Activation> activations;
  for (const ActivationChoice& choice : COLLAGE_TRY(ReadActivationChoices(attributes, fallback, directions))) {
    activations.emplace_back([function = FindActivation(choice.name)->function, alpha = choice.alpha, beta = choice.beta](double x) {
      return function(x, alpha, beta);
    });
  }
  return activations;
}

Result<Recurrence> ReadRecurrence(std::span<const TensorType> arguments, const Attributes& attributes, int64_t gates) {
  const TensorType& data = arguments[0];
  COLLAGE_TRY_STATUS(ExpectFloat(data, "data"));
  COLLAGE_TRY_STATUS(ExpectRank(data, "data", 3));
  COLLAGE_TRY_STATUS(ExpectRank(arguments[2], kNames[2], 3));
  const std::string direction = StringAttribute(attributes, "direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    return Fail("attribute 'direction' is \"" + direction + "\", expected \"forward\", \"reverse\" or \"bidirectional\"");
  }
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const Recurrence r{data.shape[0], data.shape[1], data.shape[2], arguments[2].shape[2], directions, direction == "reverse"};
  const Shape state{directions, r.batch, r.hidden};
  const Shape expected[] = {data.shape,
                            {directions, gates * r.hidden, r.inputs},
                            {directions, gates * r.hidden, r.hidden},
                            {directions, 2 * gates * r.hidden},
                            {r.batch},
                            state,
                            state,
                            {directions, 3 * r.hidden}};
  for (size_t i = 1; i < arguments.size(); ++i) {
    COLLAGE_TRY_STATUS(ExpectShape(arguments[i], kNames[i], expected[i]));
    if (i != 4) COLLAGE_TRY_STATUS(ExpectSameDType(arguments[i], kNames[i], data, "data"));
  }
  COLLAGE_TRY_STATUS(ExpectInteger(arguments[4], kNames[4]));
  return r;
}

namespace {

OpDef::TypeRule RecurrentType(int64_t gates, bool has_cell, const std::vector<std::string>& activations) {
  return [=](TypeArguments arguments, const Attributes& attributes) -> Result<Type> {
    std::vector<TensorType> tensors;
    for (size_t i = 0; i < arguments.size(); ++i) tensors.push_back(COLLAGE_TRY(TensorArgument(arguments, i, kNames[i])));
    const Recurrence r = COLLAGE_TRY(ReadRecurrence(tensors, attributes, gates));
    COLLAGE_TRY(ReadActivations(attributes, activations, r.directions));
    const DType dtype = tensors[0].dtype;
    const TensorType state{{r.directions, r.batch, r.hidden}, dtype};
    TupleType result{{TensorType{{r.steps, r.directions, r.batch, r.hidden}, dtype}, state}};
    if (has_cell) result.fields.emplace_back(state);
    return Type(std::move(result));
  };
}

Work RecurrentWork(TypeArguments arguments, const Type& result, const Attributes&) {
  const Shape& data = arguments[0].AsTensor()->shape;
  Work work{2.0 * static_cast<double>(data[0] * data[1]) * (ElementCount(arguments[1]) + ElementCount(arguments[2])), ByteCount(result)};
  for (const Type& argument : arguments) work.bytes += ByteCount(argument);
  return work;
}

OpDef Recurrent(std::string name, std::string summary, int64_t gates, bool has_cell, const std::vector<std::string>& activations,
                OpDef::ReferenceKernel reference) {
  std::vector<std::string> arguments(kNames.begin(), kNames.begin() + (has_cell ? 8 : 6));
  return {.name = std::move(name),
          .summary = std::move(summary),
          .argument_names = std::move(arguments),
          .attributes = {{"direction", "string", "\"forward\", \"reverse\" or \"bidirectional\", default \"forward\""},
                         {"activations", "list", "names of the functions of each direction in turn, in lower case"},
                         {"activation_alpha", "list", "first parameters, of the functions that have one, in their order"},
                         {"activation_beta", "list", "second parameters, likewise"},
                         {"clip", "float", "what functions are given is held between -clip and clip, default not"}},
          .kind = OpKind::kOpaque,
          .infer_type = RecurrentType(gates, has_cell, activations),
          .work = RecurrentWork,
          .reference = std::move(reference)};
}

}  // namespace

void AddRecurrentOperators(OpTable& table) {
  const std::string layer =
      " Data is [steps, batch, inputs], weights [directions, gates * hidden, ..], bias that of both weights in turn. Only the first "
      "seq_lengths steps of an element of the batch count, the others give 0. The result is a tuple of the states of all steps, "
      "[steps, directions, batch, hidden], and the last ";
  Register(table, Recurrent("nn.rnn", "Recurrent layer: h = f(W x + R h + b)." + layer + "one.", 1, false, {"tanh"}, ReferenceRnn));
  OpDef gru = Recurrent("nn.gru", "Gated recurrent unit with the gates update, reset and hidden, as ONNX defines it." + layer + "one.", 3,
                        false, {"sigmoid", "tanh"}, ReferenceGru);
  gru.attributes.push_back({"linear_before_reset", "bool", "the reset gate applies after the product with R, default False"});
  Register(table, std::move(gru));
  OpDef lstm = Recurrent(
      "nn.lstm",
      "Long short-term memory with the gates input, output, forget and cell, as ONNX defines it." + layer + "ones of state and cell.", 4,
      true, {"sigmoid", "tanh", "tanh"}, ReferenceLstm);
  lstm.attributes.push_back({"input_forget", "bool", "the forget gate is 1 minus the input gate, default False"});
  Register(table, lstm);
  lstm.name = "qnn.lstm";
  lstm.summary =
      "nn.lstm where the states of all elements of a batch are rounded before each product to 256 steps over their range and 0, as "
      "dynamic quantisation to uint8 does.";
  lstm.reference = ReferenceQuantisedLstm;
  Register(table, std::move(lstm));
}

}  // namespace collage
