#include "collage/backend/artifact_bytes.h"
#include "collage/backend/native/panel_recipe.h"
#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/op/table.h"

namespace collage::native {
namespace {

using artifact::ArtifactReader;
using artifact::ArtifactWriter;

constexpr std::string_view kMagic = "collage-native-calls-1";

void WriteArguments(const std::vector<PanelArgument>& arguments, ArtifactWriter& writer) {
  writer.Number(arguments.size());
  for (const PanelArgument& argument : arguments) {
    writer.Number(argument.port);
    writer.Number(argument.bytes_of_row);
  }
}

Result<std::vector<PanelArgument>> ReadArguments(ArtifactReader& reader) {
  std::vector<PanelArgument> arguments;
  for (uint64_t left = COLLAGE_TRY(reader.Count()); left > 0; --left) {
    const uint64_t port = COLLAGE_TRY(reader.Number());
    const uint64_t bytes_of_row = COLLAGE_TRY(reader.Number());
    arguments.push_back({port, bytes_of_row});
  }
  return arguments;
}

Result<Expr> ReadFunction(ArtifactReader& reader) {
  const std::string_view text = COLLAGE_TRY(reader.Text());
  ParseOptions options;
  options.constants = COLLAGE_TRY(reader.Tensors());
  const Result<ParsedExpr> parsed = ParseExpr(text, Operators(), options);
  if (!parsed || !parsed->expr->As<Function>()) return reader.Damaged();
  return parsed->expr;
}

}  // namespace

bool IsPanelArtifact(std::string_view artifact) {
  ArtifactReader reader(artifact, "native");
  const Result<std::string_view> magic = reader.Text();
  return magic && *magic == kMagic;
}

std::string WriteArtifact(const PanelRecipe& recipe) {
  const PrintedText function = PrintExpr(recipe.library_function);
  ArtifactWriter writer;
  writer.Text(kMagic);
  writer.Ports(recipe.inputs);
  writer.Ports(recipe.outputs);
  writer.Number(static_cast<uint64_t>(recipe.rows_of_panel));
  writer.Text(recipe.library);
  writer.Text(recipe.library_variant);
  writer.Text(function.text);
  writer.Tensors(function.constants);
  WriteArguments(recipe.library_arguments, writer);
  writer.Text(recipe.rest);
  writer.Text(recipe.last_rest);
  WriteArguments(recipe.rest_arguments, writer);
  return writer.Take();
}

Result<PanelRecipe> ReadPanelArtifact(std::string_view artifact) {
  ArtifactReader reader(artifact, "native");
  if (COLLAGE_TRY(reader.Text()) != kMagic) return reader.Damaged();
  PanelRecipe recipe;
  recipe.inputs = COLLAGE_TRY(reader.Ports());
  recipe.outputs = COLLAGE_TRY(reader.Ports());
  recipe.rows_of_panel = static_cast<int64_t>(COLLAGE_TRY(reader.Number()));
  recipe.library = COLLAGE_TRY(reader.Text());
  recipe.library_variant = COLLAGE_TRY(reader.Text());
  recipe.library_function = COLLAGE_TRY(ReadFunction(reader));
  recipe.library_arguments = COLLAGE_TRY(ReadArguments(reader));
  recipe.rest = COLLAGE_TRY(reader.Text());
  recipe.last_rest = COLLAGE_TRY(reader.Text());
  recipe.rest_arguments = COLLAGE_TRY(ReadArguments(reader));
  if (!reader.AtEnd()) return reader.Damaged();
  return recipe;
}

}  // namespace collage::native
