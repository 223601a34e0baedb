#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "collage/lower/lower.h"

namespace collage {

// A compiled model as one file (runtime/container.h). Blob 0 is JSON: the device, the program with its values and calls, and for
// each call its function in text form with the numbers of its constants, and the number of its kernel's artifact (Kernel::Serialize) where
// the backend gives one. Blob 1 is the metadata of whoever saved it. The other blobs are artifacts and tensors, used where they are mapped.
//
// An artifact is machine code, or a blob that a library turns into some: whoever loads it must trust the file as a shared library. With
// MachineCode::kCompileAgain artifacts are not even looked at. A damaged or malicious file then is an error, as far as the parser and the
// libraries keep their promises; its checksum protects from accidents only.

/// What a file says about itself; reading it needs no backend.
struct ProgramInfo {
  Device device;                       ///< it was compiled for; `threads` is the number it was priced with
  std::string fingerprint;             ///< of that device
  std::vector<ShapeProfile> profiles;  ///< of the executable
  Remainders remainders;               ///< behind its profiles
  std::vector<KernelRecord> plan;      ///< in the order in which the kernels run; of blocks, one after another
  std::string metadata;                ///< as given to SaveProgram
};

/// Writes a model, whole or not at all. `metadata` is kept as it is (the report of the compilation, say).
Status SaveProgram(const LoweredModel& model, const std::string& metadata, const std::filesystem::path& path);

/// True when the file begins like a saved program (it may be damaged further on). Errors when it cannot be read.
Result<bool> IsProgramFile(const std::filesystem::path& path);

/// Errors on all files but whole ones of this format version, and say what is wrong with them.
Result<ProgramInfo> ReadProgramInfo(const std::filesystem::path& path);
Result<std::string> ReadProgramMetadata(const std::filesystem::path& path);

/// What one profile of a file computes, with the functions of its partitions, none of which is compiled.
struct ProfilePartitions {
  ShapeProfile profile;    ///< with a remainder, what is in front of that
  ControlProgram control;  ///< of the whole file; a flat program is a function around one block
  size_t entry = 0;        ///< the function of the profile
  /// Of the control flow. Those that the entry does not reach have no functions: other profiles, and regions of rows, whose nodes the
  /// remainder has as well.
  std::vector<PartitionProgram> blocks;
  std::shared_ptr<const Remainder> remainder;  ///< null where nothing runs behind it
};

/// Reads them. That needs no backend, fits any processor and trusts nobody's machine code. Errors name the file: kernels without a
/// function, and parts that do not fit together.
Result<ProfilePartitions> ReadPartitions(const std::filesystem::path& path, size_t profile = 0);

/// What becomes of the machine code in a file.
enum class MachineCode {
  kLoad,          ///< it is loaded, and run: the file must be trusted
  kCompileAgain,  ///< it is left alone; kernels are compiled from their functions, which takes the time and the libraries of a compiler
};

/// Makes the kernels again: from their artifacts, or by compiling their functions. Needs neither the model nor a search.
/// `options.device.threads` may differ from the number it was priced with. Errors name the file, the kernel and the backend: one
/// that is missing here, or machine code that was made for another processor or by another version of a library.
Result<LoweredModel> LoadProgram(const std::filesystem::path& path, const BuildOptions& options,
                                 MachineCode machine_code = MachineCode::kLoad);
/// As above, with the backends of the registry.
Result<LoweredModel> LoadProgram(const std::filesystem::path& path, const Device& device, MachineCode machine_code = MachineCode::kLoad);

}  // namespace collage
