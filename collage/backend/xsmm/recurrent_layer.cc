#include "collage/backend/xsmm/recurrent_layer.h"

#include <algorithm>
#include <limits>
#include <string>

namespace collage::xsmm {
namespace {

struct KindRecord {
  std::string op;
  RecurrentLayer::Kind kind;
  int64_t gates;
  std::vector<std::string> activations;
};

const KindRecord* FindKind(const std::string& op) {
  using Kind = RecurrentLayer::Kind;
  static const std::vector<KindRecord> records = {{"nn.rnn", Kind::kRnn, 1, {"tanh"}},
                                                  {"nn.gru", Kind::kGru, 3, {"sigmoid", "tanh"}},
                                                  {"nn.lstm", Kind::kLstm, 4, {"sigmoid", "tanh", "tanh"}}};
  const auto found = std::find_if(records.begin(), records.end(), [&](const KindRecord& record) { return record.op == op; });
  return found == records.end() ? nullptr : &*found;
}

Status CheckTensors(const RecurrentLayer& layer) {
  for (size_t i = 0; i < layer.step->inputs.size(); ++i) {
    const DType type = layer.sequence->values[layer.step->inputs[i]].type.dtype;
    if (i == RecurrentLayer::kLengths ? type != DType::kInt32 : type != DType::kFloat32)
      return Fail("libxsmm: numbers of float32 and lengths of int32 are wanted");
  }
  for (const auto argument :
       {RecurrentLayer::kWeight, RecurrentLayer::kRecurrentWeight, RecurrentLayer::kBias, RecurrentLayer::kPeephole}) {
    const bool is_there = argument < layer.step->inputs.size();
    if (is_there && !layer.Value(argument).constant)
      return Fail("libxsmm: weights of a recurrent layer are packed, and these are computed");
  }
  for (const size_t result : layer.sequence->results) {
    if (std::count(layer.sequence->results.begin(), layer.sequence->results.end(), result) > 1)
      return Fail("libxsmm: a result is given twice");
    const std::vector<size_t>& outputs = layer.step->outputs;
    if (std::find(outputs.begin(), outputs.end(), result) == outputs.end()) return Fail("libxsmm: a result is no output of the layer");
  }
  return {};
}

}  // namespace

bool IsRecurrentLayer(const OpSequence& sequence) { return sequence.steps.size() == 1 && FindKind(sequence.steps[0].op->name) != nullptr; }

Result<RecurrentLayer> ParseRecurrentLayer(const OpSequence& sequence) {
  RecurrentLayer layer;
  layer.sequence = &sequence;
  layer.step = &sequence.steps[0];
  const KindRecord& record = *FindKind(layer.step->op->name);
  const Attributes& attributes = layer.step->attributes;
  layer.kind = record.kind;
  layer.gates = record.gates;
  COLLAGE_TRY_STATUS(CheckTensors(layer));
  std::vector<TensorType> types;
  for (const size_t input : layer.step->inputs) types.push_back(sequence.values[input].type);
  layer.shape = COLLAGE_TRY(ReadRecurrence(types, attributes, record.gates));
  for (const int64_t extent : {layer.shape.steps, layer.shape.batch, layer.shape.inputs, layer.shape.hidden}) {
    if (extent == 0) return Fail("libxsmm: the recurrent layer has no elements");
  }
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const double clip = attributes.Double("clip", kNone).value_or(kNone);
  for (const ActivationChoice& choice : COLLAGE_TRY(ReadActivationChoices(attributes, record.activations, layer.shape.directions)))
    layer.activations.push_back(COLLAGE_TRY(ActivationLoops::Make(choice, clip)));
  layer.couples_forget = attributes.Bool("input_forget", false).value_or(false);
  layer.resets_after_product = attributes.Bool("linear_before_reset", false).value_or(false);
  return layer;
}

}  // namespace collage::xsmm
