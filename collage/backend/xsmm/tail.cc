#include "collage/backend/xsmm/tail.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>

#include "collage/backend/written_out_activation.h"

namespace collage::xsmm {
namespace {

using Step = OpSequence::Step;

std::string_view NameOf(ActivationKind activation) {
  switch (activation) {
    case ActivationKind::kGeluByErf:
      return "gelu_by_erf";
    case ActivationKind::kGeluByTanh:
      return "gelu_by_tanh";
    case ActivationKind::kSwish:
      return "swish";
    case ActivationKind::kHardSwish:
      return "hard_swish";
    case ActivationKind::kSquare:
      break;
  }
  return "square";
}

bool IsAddition(const Step& step) { return step.op->name == "add" || step.op->name == "nn.bias_add"; }

/// A function of one tile at the head of some steps.
struct OneTile {
  std::string_view name;
  size_t steps;
  float alpha = 0;
  float beta = 0;
};

// "" is the sum alone.
std::optional<TailStep::Bounds> BoundsOf(const OneTile& tile) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (tile.name.empty()) return TailStep::Bounds{-kInfinity, kInfinity};
  if (tile.name == "nn.relu") return TailStep::Bounds{0, kInfinity};
  if (tile.name == "clip") return TailStep::Bounds{tile.alpha, tile.beta};
  return std::nullopt;
}

class Parser {
 public:
  Parser(const OpSequence& sequence, std::span<const Step> steps, size_t product, size_t channel)
      : sequence_(sequence), steps_(steps), shape_(sequence.values[product].type.shape), channel_(channel) {
    slot_of_[product] = 0;
    tail_.slots = steps.empty() ? 0 : 1;
  }

  Result<Tail> Parse() {
    for (const Step& step : steps_) {
      if (step.outputs.size() != 1 || sequence_.values[step.outputs[0]].type.shape != shape_)
        return Fail("libxsmm: " + step.op->name + " changes the shape of a product");
    }
    for (size_t next = 0; next < steps_.size();) next = COLLAGE_TRY(TakeFrom(next));
    return std::move(tail_);
  }

 private:
  // As many steps as one loop does. Answers the number of the step behind them.
  Result<size_t> TakeFrom(size_t index) {
    const Step& step = steps_[index];
    if (IsAddition(step)) return TakeSum(index);
    for (const size_t input : step.inputs) {
      const std::optional<OneTile> one = slot_of_.contains(input) ? OneTileAt(index, input) : std::nullopt;
      const TileLoop loop = one ? FindTileLoop(one->name, 1) : nullptr;
      if (loop) return Add(loop, {input}, {COLLAGE_TRY(Argument(input))}, *one, index);
    }
    const TileLoop loop = FindTileLoop(step.op->name, 2);
    if (!loop || step.inputs.size() != 2) return Fail("libxsmm: no loop over tiles does " + step.op->name);
    return Add(loop, step.inputs, {COLLAGE_TRY(Argument(step.inputs[0])), COLLAGE_TRY(SecondOf(step))}, {step.op->name, 1}, index);
  }

  // Two or three addends, such as a product, a bias and a residual, and an activation of the sum.
  Result<size_t> TakeSum(size_t index) {
    std::vector<size_t> values = steps_[index].inputs;
    std::array<TailArgument, 3> addends = {COLLAGE_TRY(Argument(values[0])), COLLAGE_TRY(SecondOf(steps_[index]))};
    size_t next = index + 1;
    size_t sum = steps_[index].outputs[0];
    if (next < steps_.size() && IsAddition(steps_[next]) && !IsReadIn(steps_.subspan(next + 1), sum)) {
      const std::vector<size_t>& inputs = steps_[next].inputs;
      const bool is_first = inputs[0] == sum;
      if (inputs[0] != inputs[1] && (is_first || inputs[1] == sum)) {
        values.push_back(inputs[is_first ? 1 : 0]);
        addends[2] = is_first ? COLLAGE_TRY(SecondOf(steps_[next])) : COLLAGE_TRY(Argument(inputs[0]));
        sum = steps_[next].outputs[0];
        ++next;
      }
    }
    // A tile has an element for each column, which the loop asks of the first.
    std::stable_partition(addends.begin(), addends.end(), [](const TailArgument& one) { return one.kind == TailArgument::Kind::kSlot; });
    const std::optional<OneTile> activation = next < steps_.size() ? OneTileAt(next, sum) : std::nullopt;
    const bool is_read = activation && IsReadIn(steps_.subspan(next + activation->steps), sum);
    const TileLoop loop = activation && !is_read ? FindTileLoop(activation->name, 3) : nullptr;
    OneTile covered = loop ? *activation : OneTile{"", 0};
    covered.steps += next - index;
    return Add(loop ? loop : FindTileLoop("", 3), values, addends, covered, index);
  }

  Result<size_t> Add(TileLoop loop, const std::vector<size_t>& values, const std::array<TailArgument, 3>& arguments, const OneTile& covered,
                     size_t index) {
    const size_t next = index + covered.steps;
    TailStep step{loop, arguments[0], arguments[1], arguments[2]};
    step.slot = SlotFor(values, next);
    step.alpha = covered.alpha;
    step.beta = covered.beta;
    const bool adds_channels = step.second.kind == TailArgument::Kind::kChannel || step.second.kind == TailArgument::Kind::kNone;
    if (step.first.kind == TailArgument::Kind::kSlot && adds_channels && step.third.kind == TailArgument::Kind::kNone)
      step.bounds = BoundsOf(covered);
    tail_.steps.push_back(step);
    return next;
  }

  // What the steps from `index` on make of `value` alone: an activation that is written out, else the first of them.
  [[nodiscard]] std::optional<OneTile> OneTileAt(size_t index, size_t value) const {
    const std::span<const Step> steps = steps_.subspan(index);
    if (IsReadIn(steps.subspan(1), value)) {
      if (const std::optional<WrittenOutActivation> found = RecogniseActivation(sequence_, steps, value))
        return OneTile{NameOf(found->activation), found->steps};
    }
    const Step& step = steps[0];
    if (step.inputs[0] != value) return std::nullopt;
    const auto number = [&](const char* attribute, double fallback) {
      return static_cast<float>(step.attributes.Double(attribute, fallback).value_or(fallback));
    };
    const std::string& name = step.op->name;
    if (name == "power") return PowerOf(step);
    if (step.inputs.size() != 1) return std::nullopt;
    if (name == "nn.leaky_relu") return OneTile{name, 1, number("alpha", 0.01)};
    if (name == "clip") return OneTile{name, 1, number("a_min", 0), number("a_max", 0)};
    return OneTile{name, 1};
  }

  [[nodiscard]] std::optional<OneTile> PowerOf(const Step& step) const {
    const std::optional<double> exponent = ScalarOf(sequence_, step.inputs[1]);
    if (exponent == 2) return OneTile{"square", 1};
    if (exponent == 3) return OneTile{"cube", 1};
    return std::nullopt;
  }

  [[nodiscard]] Result<TailArgument> Argument(size_t value) const {
    using Kind = TailArgument::Kind;
    const auto slot = slot_of_.find(value);
    if (slot != slot_of_.end()) return TailArgument{Kind::kSlot, slot->second};
    const Shape& shape = sequence_.values[value].type.shape;
    const auto is_made = [&](const Step& step) { return step.outputs[0] == value; };
    if (std::any_of(steps_.begin(), steps_.end(), is_made))
      return Fail("libxsmm: what an activation computes on its way is read elsewhere");
    if (shape == shape_) return TailArgument{Kind::kWhole, 0, value};
    if (ElementCount(shape) == 1) return TailArgument{Kind::kScalar, 0, value};
    if (IsChannelVector(shape)) return TailArgument{Kind::kChannel, 0, value};
    return Fail("libxsmm: " + ToString(shape) + " beside " + ToString(shape_) + " is no scalar, channel vector or tensor of that shape");
  }

  // nn.bias_add and nn.prelu take a vector along the dimension that an attribute names, others what is broadcast.
  [[nodiscard]] Result<TailArgument> SecondOf(const Step& step) const {
    const size_t value = step.inputs[1];
    if (step.op->name != "nn.bias_add" && step.op->name != "nn.prelu") return Argument(value);
    int64_t axis = COLLAGE_TRY(step.attributes.Int("axis", 1));
    if (axis < 0) axis += static_cast<int64_t>(shape_.size());
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

  // For what the steps before `next` give: the slot of an argument that nothing reads from there on, else a new one.
  size_t SlotFor(const std::vector<size_t>& arguments, size_t next) {
    const size_t result = steps_[next - 1].outputs[0];
    for (const size_t argument : arguments) {
      const auto slot = slot_of_.find(argument);
      if (slot != slot_of_.end() && !IsReadIn(steps_.subspan(next), argument)) return slot_of_[result] = slot->second;
    }
    return slot_of_[result] = tail_.slots++;
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
  return Parser(sequence, steps, product, channel).Parse();
}

// Powers are squares and cubes, which the check sees; an exponential may be part of an activation.
bool MayBeInTail(const OpDef& op) {
  return op.name == "power" || op.name == "exp" || FindTileLoop(op.name, op.argument_names.size()) != nullptr;
}

}  // namespace collage::xsmm
