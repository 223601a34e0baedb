#include "collage/backend/element_code/recipe.h"

#include "collage/support/memory.h"

namespace collage::element_code {
namespace {

using artifact::ArtifactReader;
using artifact::ArtifactWriter;

Result<Launch> ReadLaunch(ArtifactReader& reader, size_t values) {
  constexpr uint64_t kMostLanes = 1024;  // threads of one block
  Launch launch;
  launch.name = std::string(COLLAGE_TRY(reader.Text()));
  launch.items = COLLAGE_TRY(reader.Number());
  const uint64_t lanes = COLLAGE_TRY(reader.Number());
  if (lanes == 0 || lanes > kMostLanes) return reader.Damaged();
  launch.lanes = static_cast<int>(lanes);
  launch.values = COLLAGE_TRY(reader.Numbers(values));
  return launch;
}

}  // namespace

std::vector<std::string> Recipe::KernelNames() const {
  std::vector<std::string> names;
  for (const Launch& launch : launches) names.push_back(launch.name);
  return names;
}

void Recipe::Write(ArtifactWriter& writer) const {
  writer.Number(values);
  writer.Numbers(parameters);
  writer.Numbers(results);
  writer.Ports(inputs);
  writer.Ports(outputs);
  writer.Number(launches.size());
  for (const Launch& launch : launches) {
    writer.Text(launch.name);
    writer.Number(launch.items);
    writer.Number(static_cast<uint64_t>(launch.lanes));
    writer.Numbers(launch.values);
  }
  writer.Numbers(constants);
  writer.Tensors(tensors);
  writer.Numbers(intermediate);
  writer.Numbers(intermediate_bytes);
}

Result<Recipe> Recipe::Read(ArtifactReader& reader, size_t artifact_bytes) {
  Recipe recipe;
  recipe.values = COLLAGE_TRY(reader.Number());
  // Each value is a parameter, a constant, a result or intermediate, and each of these takes bytes of its own.
  if (recipe.values > artifact_bytes) return reader.Damaged();
  recipe.parameters = COLLAGE_TRY(reader.Numbers(recipe.values));
  recipe.results = COLLAGE_TRY(reader.Numbers(recipe.values));
  recipe.inputs = COLLAGE_TRY(reader.Ports());
  recipe.outputs = COLLAGE_TRY(reader.Ports());
  for (uint64_t left = COLLAGE_TRY(reader.Count()); left > 0; --left)
    recipe.launches.push_back(COLLAGE_TRY(ReadLaunch(reader, recipe.values)));
  recipe.constants = COLLAGE_TRY(reader.Numbers(recipe.values));
  recipe.tensors = COLLAGE_TRY(reader.Tensors());
  recipe.intermediate = COLLAGE_TRY(reader.Numbers(recipe.values));
  recipe.intermediate_bytes = COLLAGE_TRY(reader.Numbers(UsableMemory()));
  const bool fits = recipe.inputs.size() == recipe.parameters.size() && recipe.outputs.size() == recipe.results.size() &&
                    recipe.constants.size() == recipe.tensors.size() && recipe.intermediate.size() == recipe.intermediate_bytes.size();
  if (!fits) return reader.Damaged();
  return recipe;
}

Recipe RecipeOf(const OpSequence& sequence, GeneratedSource& source) {
  Recipe recipe;
  recipe.values = sequence.values.size();
  recipe.parameters = sequence.parameters;
  recipe.results = sequence.results;
  for (const size_t value : sequence.parameters) recipe.inputs.push_back({sequence.values[value].type, Layout()});
  for (const size_t value : sequence.results) recipe.outputs.push_back({sequence.values[value].type, Layout()});
  recipe.launches = std::move(source.launches);
  recipe.constants = std::move(source.constants);
  for (const size_t value : recipe.constants) recipe.tensors.push_back(*sequence.values[value].constant);
  recipe.intermediate = std::move(source.intermediate);
  for (const size_t value : recipe.intermediate) recipe.intermediate_bytes.push_back(sequence.values[value].type.ByteCount());
  return recipe;
}

Addresses::Addresses(const Recipe& recipe) : addresses_(recipe.values, nullptr) {
  for (const size_t bytes : recipe.intermediate_bytes) {
    offsets_.push_back(workspace_bytes_);
    workspace_bytes_ += AlignedBytes(bytes);
  }
}

void Addresses::Bind(const Recipe& recipe, std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) {
  for (size_t i = 0; i < inputs.size(); ++i) addresses_[recipe.parameters[i]] = const_cast<void*>(inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) addresses_[recipe.results[i]] = outputs[i];
  for (size_t i = 0; i < offsets_.size(); ++i) addresses_[recipe.intermediate[i]] = static_cast<std::byte*>(workspace) + offsets_[i];
}

}  // namespace collage::element_code
