#include "collage/backend/native/variants.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "collage/op/rules.h"

namespace collage::native {

namespace {

// Operators that work on one element at a time, in whatever order the elements lie; and joining along the channels.
bool KeepsPlaces(const OpSequence::Step& step) {
  if (step.op->name == "concatenate") {
    const TensorType* result = step.result_type.AsTensor();
    return result->shape.size() == 4 && AxisAttribute(step.attributes, "axis", 0, 4) == 1;
  }
  static const std::unordered_set<std::string_view> others = {"nn.bias_add", "nn.prelu", "nn.batch_norm", "nn.lrn"};
  return step.op->kind == OpKind::kElementwise || others.contains(step.op->name) ||
         (step.op->kind == OpKind::kBroadcast && step.op->name != "expand_dims" && step.op->name != "broadcast_to");
}

bool IsImage(const Shape& shape) { return shape.size() == 4 && ElementCount(shape) > shape[1]; }

// At most one number for each channel: small enough to be read in any order.
bool IsChannelwise(const Shape& shape) {
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1 && shape.size() - i != 3 && !(shape.size() == 1)) return false;
  }
  return true;
}

// Every tensor is an image of one plane size (batch, height and width), or a number for each channel.
bool IsPointwiseOverImages(const OpSequence& sequence) {
  if (!std::all_of(sequence.steps.begin(), sequence.steps.end(), KeepsPlaces)) return false;
  const Shape* image = nullptr;
  for (const auto* tensors : {&sequence.results, &sequence.parameters}) {
    for (size_t value : *tensors) {
      const Shape& shape = sequence.values[value].type.shape;
      if (!IsImage(shape)) {
        if (tensors == &sequence.results || !IsChannelwise(shape)) return false;
        continue;
      }
      if (!image) image = &shape;
      if (shape[0] != (*image)[0] || shape[2] != (*image)[2] || shape[3] != (*image)[3]) return false;
    }
  }
  for (const OpSequence::Step& step : sequence.steps) {
    for (size_t value : step.outputs) {
      const Shape& shape = sequence.values[value].type.shape;
      if (!IsImage(shape) && !IsChannelwise(shape)) return false;
    }
  }
  return image != nullptr;
}

// Nothing where an image has channels that do not fill their blocks: padding would have to be written as zero.
std::optional<Variant> InLayout(const OpSequence& sequence, const std::string& tag, int64_t block) {
  Variant variant{"default/" + tag, {}, {}};
  bool whole = true;
  const auto layouts = [&](const std::vector<size_t>& values, std::vector<Layout>& out) {
    for (size_t value : values) {
      const Shape& shape = sequence.values[value].type.shape;
      whole = whole && (!IsImage(shape) || shape[1] % block == 0);
      out.push_back(IsImage(shape) ? Layout::Of(tag) : Layout());
    }
  };
  layouts(sequence.parameters, variant.inputs);
  layouts(sequence.results, variant.outputs);
  if (!whole) return std::nullopt;
  return variant;
}

// Serial time by a rough count: 8 operations or bytes a nanosecond. Threads cost about 5 microseconds to start.
bool InDoubtAboutThreads(const OpSequence& sequence) {
  double nanoseconds = 0;
  for (const OpSequence::Step& step : sequence.steps) {
    const Work work = step.op->work(step.argument_types, step.result_type, step.attributes);
    nanoseconds += std::max(work.flops / 30, work.bytes / 8);
  }
  constexpr double kSurelySerial = 4000;
  constexpr double kSurelyParallel = 40000;
  return nanoseconds > kSurelySerial && nanoseconds < kSurelyParallel;
}

}  // namespace

std::vector<Variant> ListVariants(const OpSequence& sequence, const Device& device) {
  std::vector<Variant> variants = {
      {"default", std::vector<Layout>(sequence.parameters.size()), std::vector<Layout>(sequence.results.size())}};
  if (IsPointwiseOverImages(sequence)) {
    // Neighbours block channels by the width of this CPU's registers.
    const bool is_wide = __builtin_cpu_supports("avx512f");
    if (const auto variant = InLayout(sequence, is_wide ? "aBcd16b" : "aBcd8b", is_wide ? 16 : 8)) variants.push_back(*variant);
    if (const auto variant = InLayout(sequence, "acdb", 1)) variants.push_back(*variant);
  }
  // Where threads might or might not pay, both are offered; the measured price decides.
  if (device.threads > 1 && InDoubtAboutThreads(sequence)) {
    for (size_t i = 0, count = variants.size(); i < count; ++i) {
      Variant serial = variants[i];
      serial.name.replace(0, std::string("default").size(), "serial");
      variants.push_back(std::move(serial));
    }
  }
  return variants;
}

bool IsVariantOf(const OpSequence& sequence, const Variant& variant) {
  const auto fits = [&](const std::vector<size_t>& values, const std::vector<Layout>& layouts) {
    if (values.size() != layouts.size()) return false;
    for (size_t i = 0; i < values.size(); ++i) {
      const TensorType& type = sequence.values[values[i]].type;
      const Shape& shape = type.shape;
      if (layouts[i].stored() || !layouts[i].Fits(type)) return false;
      for (const Layout::Block& block : layouts[i].blocks()) {
        if (shape[block.dimension] % block.extent != 0) return false;
      }
    }
    return true;
  };
  return fits(sequence.parameters, variant.inputs) && fits(sequence.results, variant.outputs);
}

std::vector<TuningParameter> ListTuning(const OpSequence& sequence, const Device& device, const Variant& variant) {
  const bool has_product = std::any_of(sequence.steps.begin(), sequence.steps.end(),
                                       [](const OpSequence::Step& step) { return step.op->kind == OpKind::kOutElementwiseFusable; });
  std::vector<TuningParameter> parameters;
  if (has_product) {
    parameters = {{"vector_percent", {100, 50}}, {"tile_rows", {0, 1, 2, 4, 6, 8, 12}}, {"tile_vectors", {0, 1, 2, 3, 4}}};
  } else {
    parameters = {{"vector_percent", {100, 50, 200}}, {"unroll", {1, 2, 4}}};
  }
  if (device.threads > 1 && ScheduleOf(variant) != "serial") parameters.push_back({"tasks", {4, 1, 2, 16}});
  return parameters;
}

std::string ScheduleOf(const Variant& variant) { return variant.name.substr(0, variant.name.find_first_of("/@")); }

}  // namespace collage::native
