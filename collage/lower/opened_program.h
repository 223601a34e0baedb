#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "collage/lower/program_json.h"
#include "collage/lower/save.h"
#include "collage/runtime/container.h"

namespace collage {

/// Numbers of the blobs that every program file has.
inline constexpr size_t kProgramBlob = 0;
inline constexpr size_t kMetadataBlob = 1;

/// A program file that has been read; nothing of it is loaded yet.
struct OpenedProgram {
  std::string name;  ///< for messages: the path of its file
  Container container;
  StoredProgram stored;

  static Result<OpenedProgram> Open(const std::filesystem::path& path);
  /// Errors begin with `name`.
  static Result<OpenedProgram> Of(Container container, const std::string& name);

  /// Errors where its parts do not fit together.
  [[nodiscard]] Result<ProgramInfo> Info() const;
  /// As ReadPartitions (save.h), of a program of which this is known; without the file's name in errors.
  [[nodiscard]] Result<ProfilePartitions> Partitions(const ProgramInfo& info, size_t profile) const;
  /// Its CPUs get the processors that the options state for them, the host no more threads than processors that these leave. Errors: a CPU
  /// whose processors are not there, or one that the program does not use.
  [[nodiscard]] Result<BuildOptions> Beside(BuildOptions options);
};

/// Makes kernels of an opened program, from their artifacts or by compiling their functions.
class KernelLoader {
 public:
  KernelLoader(const Container& container, BuildOptions options, MachineCode machine_code);

  /// Kernel number `index` of `part`, which is the program itself or one of its blocks. Completes the record of its call.
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Load(StoredProgram& part, size_t index) const;
  /// All of the opened program.
  [[nodiscard]] Result<LoweredModel> LoadAll(OpenedProgram& opened) const;

 private:
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Restore(StoredProgram& part, size_t index) const;
  [[nodiscard]] Result<Executable> LoadPart(StoredProgram& part) const;

  Container container_;
  BuildOptions options_;
  std::string fingerprint_;
  MachineCode machine_code_;
};

}  // namespace collage
