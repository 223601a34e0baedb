#include "collage/driver/model_file.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string_view>

#include "collage/driver/relay_program.h"
#include "collage/support/hash.h"
#include "collage/support/mapped_file.h"
#include "collage/support/mappings.h"
#include "collage/tensor/extents.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

Status CheckShapes(const OnnxModel& program, const std::map<std::string, Shape>& shapes) {
  for (const auto& [name, shape] : shapes) {
    const auto at = std::find(program.input_names.begin(), program.input_names.end(), name);
    if (at == program.input_names.end()) {
      std::string names;
      for (const std::string& input : program.input_names) names += (names.empty() ? "" : ", ") + input;
      return Fail("a shape is given for '" + name + "', which is no input: the inputs are " + (names.empty() ? "none" : names));
    }
    const Expr& parameter = program.module.Main().parameters[static_cast<size_t>(at - program.input_names.begin())];
    if (shape == parameter->type().AsTensor()->shape) continue;
    return Fail("input '" + name + "' is given the shape " + ExtentsText(shape) + " where the program has " + ToString(parameter->type()) +
                ", which is fixed");
  }
  return {};
}

Result<uint64_t> HashOfFile(const fs::path& path, uint64_t seed) {
  const MappedFile file = COLLAGE_TRY(MappedFile::Open(path));
  ReadOnce(file.content(), [&](std::string_view piece) { seed = HashBytes(piece, seed); });
  return seed;
}

Result<bool> HoldsRelay(const fs::path& path) { return IsRelayProgram(path, COLLAGE_TRY(MappedFile::Open(path)).content()); }

}  // namespace

Result<ModelFile> ModelFile::Open(const fs::path& path, const fs::path& constants) {
  if (COLLAGE_TRY(HoldsRelay(path))) return ModelFile(path, COLLAGE_TRY(ReadRelayProgram(path, constants)));
  if (!constants.empty())
    return Fail(constants.string() + ": constants are given, and " + path.string() +
                " is no program in Relay's text: such a file is named NAME.relay, or begins with 'fn' or 'def'");
  return ModelFile(path, COLLAGE_TRY(OnnxFile::Open(path)));
}

Result<OnnxModel> ModelFile::Read(const ReadOptions& options) const {
  if (const OnnxFile* onnx = std::get_if<OnnxFile>(&content_)) return onnx->Read(options);
  const OnnxModel& program = std::get<OnnxModel>(content_);
  if (Status fits = CheckShapes(program, options.input_shapes); !fits) return Fail(fits.error().At(path_.string()));
  return program;
}

const onnx_io::OnnxGraph* ModelFile::graph() const {
  const OnnxFile* onnx = std::get_if<OnnxFile>(&content_);
  return onnx ? &onnx->graph() : nullptr;
}

Result<std::string> ModelIdentity(const fs::path& path, const fs::path& constants) {
  uint64_t hash = COLLAGE_TRY(HashOfFile(path, HashBytes({})));
  const fs::path archive = COLLAGE_TRY(HoldsRelay(path)) ? ConstantsBeside(path, constants) : fs::path();
  if (!archive.empty()) hash = COLLAGE_TRY(HashOfFile(archive, hash));
  return fmt::format("{:016x}", hash);
}

}  // namespace collage
