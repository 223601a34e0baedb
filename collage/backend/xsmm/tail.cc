#include "collage/backend/xsmm/tail.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

namespace collage::xsmm {
namespace {

using Step = OpSequence::Step;

class Parser {
 public:
  Parser(const OpSequence& sequence, std::span<const Step> steps, size_t product, size_t channel)
      : sequence_(sequence), steps_(steps), shape_(sequence.values[product].type.shape), channel_(channel) {
    slot_of_[product] = 0;
    tail_.slots = steps.empty() ? 0 : 1;
  }

  Result<Tail> Parse() {
    for (size_t i = 0; i < steps_.size(); ++i) tail_.steps.push_back(COLLAGE_TRY(Translate(i)));
    return std::move(tail_);
  }

 private:
  Result<TailStep> Translate(size_t index) {
    const Step& step = steps_[index];
    const std::string& name = step.op->name;
    if (step.outputs.size() != 1 || sequence_.values[step.outputs[0]].type.shape != shape_)
      return Fail("libxsmm: " + name + " changes the shape of a product");
    if (name == "power") return Power(index);
    const TileLoop loop = FindTileLoop(name, step.inputs.size());
    if (!loop) return Fail("libxsmm: no loop over tiles does " + name);
    const bool has_axis = name == "nn.bias_add" || name == "nn.prelu";
    TailStep made{loop, COLLAGE_TRY(Argument(step.inputs[0]))};
    made.second = step.inputs.size() == 1 ? made.first : has_axis ? COLLAGE_TRY(AlongAxis(step)) : COLLAGE_TRY(Argument(step.inputs[1]));
    if (name == "nn.leaky_relu") made.alpha = static_cast<float>(COLLAGE_TRY(step.attributes.Double("alpha", 0.01)));
    if (name == "clip") {
      made.alpha = static_cast<float>(COLLAGE_TRY(step.attributes.Double("a_min", 0)));
      made.beta = static_cast<float>(COLLAGE_TRY(step.attributes.Double("a_max", 0)));
    }
    made.slot = SlotFor(index);
    return made;
  }

  // As exporters write squares and the cube in GELU.
  Result<TailStep> Power(size_t index) {
    const Step& step = steps_[index];
    const std::optional<Tensor>& exponent = sequence_.values[step.inputs[1]].constant;
    const double value = exponent && exponent->ElementCount() == 1 ? exponent->ToDouble()[0] : 0;
    if (value != 2 && value != 3) return Fail("libxsmm: of powers the square and the cube are computed on tiles");
    TailStep made{FindTileLoop(value == 2 ? "square" : "cube", 1), COLLAGE_TRY(Argument(step.inputs[0]))};
    made.second = made.first;
    made.slot = SlotFor(index);
    return made;
  }

  Result<TailArgument> Argument(size_t value) const {
    using Kind = TailArgument::Kind;
    const auto slot = slot_of_.find(value);
    if (slot != slot_of_.end()) return TailArgument{Kind::kSlot, slot->second};
    const Shape& shape = sequence_.values[value].type.shape;
    if (shape == shape_) return TailArgument{Kind::kWhole, 0, value};
    if (ElementCount(shape) == 1) return TailArgument{Kind::kScalar, 0, value};
    if (IsChannelVector(shape)) return TailArgument{Kind::kChannel, 0, value};
    return Fail("libxsmm: " + ToString(shape) + " beside " + ToString(shape_) + " is no scalar, channel vector or tensor of that shape");
  }

  // nn.bias_add and nn.prelu: a vector along the dimension that an attribute names.
  [[nodiscard]] Result<TailArgument> AlongAxis(const Step& step) const {
    int64_t axis = COLLAGE_TRY(step.attributes.Int("axis", 1));
    if (axis < 0) axis += static_cast<int64_t>(shape_.size());
    const size_t value = step.inputs[1];
    const bool is_vector = sequence_.values[value].type.ElementCount() == shape_[channel_];
    if (slot_of_.contains(value) || axis != static_cast<int64_t>(channel_) || !is_vector)
      return Fail("libxsmm: " + step.op->name + " is not along the channels");
    return TailArgument{TailArgument::Kind::kChannel, 0, value};
  }

  // Of as many elements as there are channels and, aligned at the last dimension, extent 1 everywhere else.
  [[nodiscard]] bool IsChannelVector(const Shape& shape) const {
    if (shape.size() > shape_.size() || shape.size() + channel_ < shape_.size()) return false;
    const size_t at = shape.size() + channel_ - shape_.size();
    return at < shape.size() && shape[at] == shape_[channel_] && ElementCount(shape) == shape[at];
  }

  // That of an argument which nothing after this step reads, else a new one.
  size_t SlotFor(size_t index) {
    const Step& step = steps_[index];
    const auto is_read_later = [&](size_t value) {
      return std::any_of(steps_.begin() + static_cast<std::ptrdiff_t>(index) + 1, steps_.end(), [&](const Step& later) {
        return std::find(later.inputs.begin(), later.inputs.end(), value) != later.inputs.end();
      });
    };
    for (const size_t input : step.inputs) {
      const auto slot = slot_of_.find(input);
      if (slot != slot_of_.end() && !is_read_later(input)) return slot_of_[step.outputs[0]] = slot->second;
    }
    return slot_of_[step.outputs[0]] = tail_.slots++;
  }

  const OpSequence& sequence_;
  std::span<const Step> steps_;
  const Shape& shape_;
  size_t channel_;
  std::unordered_map<size_t, size_t> slot_of_;  // by value
  Tail tail_;
};

}  // namespace

Result<Tail> ParseTail(const OpSequence& sequence, std::span<const Step> steps, size_t product, size_t channel) {
  const size_t last = steps.empty() ? product : steps.back().outputs[0];
  if (sequence.results.size() != 1 || sequence.results[0] != last) return Fail("libxsmm: the result is not the end of the chain");
  return Parser(sequence, steps, product, channel).Parse();
}

bool MayBeInTail(const OpDef& op) { return op.name == "power" || FindTileLoop(op.name, op.argument_names.size()) != nullptr; }

}  // namespace collage::xsmm
