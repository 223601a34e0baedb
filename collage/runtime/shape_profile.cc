#include "collage/runtime/shape_profile.h"

#include "collage/tensor/extents.h"

namespace collage {
namespace {

bool Fits(std::span<const Tensor> inputs, const std::vector<NamedType>& expected) {
  if (inputs.size() != expected.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].Defined() || !(inputs[i].type() == expected[i].type)) return false;
  }
  return true;
}

/// The same inputs in another shape, so that another profile might have taken them.
bool AreOtherShapes(std::span<const Tensor> inputs, const std::vector<NamedType>& expected) {
  if (inputs.size() != expected.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].Defined() || inputs[i].dtype() != expected[i].type.dtype) return false;
  }
  return true;
}

}  // namespace

std::string ToString(const ShapeProfile& profile) {
  std::string text;
  for (const auto& [name, type] : profile.inputs) text += (text.empty() ? "" : " ") + name + "=" + ExtentsText(type.shape);
  return text;
}

std::string ListOf(const std::vector<ShapeProfile>& profiles) {
  std::string text;
  for (const ShapeProfile& profile : profiles) text += (text.empty() ? "[" : ", [") + ToString(profile) + "]";
  return text;
}

Result<size_t> ProfileFor(std::span<const Tensor> inputs, const std::vector<ShapeProfile>& profiles) {
  for (size_t i = 0; i < profiles.size(); ++i) {
    if (Fits(inputs, profiles[i].inputs)) return i;
  }
  const std::vector<NamedType>& first = profiles[0].inputs;
  if (profiles.size() == 1 || !AreOtherShapes(inputs, first)) return Fail(CheckTensors("input", inputs, first).error());
  ShapeProfile given;
  for (size_t i = 0; i < inputs.size(); ++i) given.inputs.push_back({first[i].name, inputs[i].type()});
  return Fail("no profile of this program takes " + ToString(given) + "; it has " + ListOf(profiles));
}

Status CheckTensors(const char* what, std::span<const Tensor> tensors, const std::vector<NamedType>& expected) {
  if (tensors.size() != expected.size()) {
    return Fail(std::to_string(tensors.size()) + " " + what + "s were given, expected " + std::to_string(expected.size()));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto fail = [&](const std::string& found) {
      return Fail(std::string(what) + " '" + expected[i].name + "' " + found + ", expected " + ToString(expected[i].type));
    };
    if (!tensors[i].Defined()) return fail("is not there");
    if (!(tensors[i].type() == expected[i].type)) return fail("has type " + ToString(tensors[i].type()));
  }
  return {};
}

}  // namespace collage
