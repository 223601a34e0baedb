#include "collage/backend/registry.h"
#include "collage/lower/opened_program.h"
#include "collage/lower/save.h"

namespace collage {

Result<bool> IsProgramFile(const std::filesystem::path& path) { return Container::IsContainer(path); }

Result<ProgramInfo> ReadProgramInfo(const std::filesystem::path& path) { return COLLAGE_TRY(OpenedProgram::Open(path)).Info(); }

Result<std::string> ReadProgramMetadata(const std::filesystem::path& path) {
  const Container container = COLLAGE_TRY(Container::Open(path));
  if (container.size() <= kMetadataBlob) return Fail(path.string() + ": has no metadata");
  return std::string(container.blob(kMetadataBlob));
}

Result<ProfilePartitions> ReadPartitions(const std::filesystem::path& path, size_t profile) {
  const OpenedProgram opened = COLLAGE_TRY(OpenedProgram::Open(path));
  const ProgramInfo info = COLLAGE_TRY(opened.Info());
  Result<ProfilePartitions> partitions = opened.Partitions(info, profile);
  if (!partitions) return Fail(partitions.error().At(opened.name));
  return partitions;
}

Result<LoweredModel> LoadProgram(const std::filesystem::path& path, const BuildOptions& options, MachineCode machine_code) {
  OpenedProgram opened = COLLAGE_TRY(OpenedProgram::Open(path));
  return KernelLoader(opened.container, COLLAGE_TRY(opened.Beside(options)), machine_code).LoadAll(opened);
}

Result<LoweredModel> LoadProgram(const std::filesystem::path& path, const Device& device, MachineCode machine_code) {
  BuildOptions options;
  options.device = device;
  options.find_backend = FindBackend;
  return LoadProgram(path, options, machine_code);
}

}  // namespace collage
