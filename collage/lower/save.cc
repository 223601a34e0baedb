#include "collage/lower/save.h"

#include <nlohmann/json.hpp>

#include "collage/ir/permitted_precision.h"
#include "collage/ir/print.h"
#include "collage/lower/opened_program.h"
#include "collage/lower/program_json.h"
#include "collage/op/integer_weights.h"
#include "collage/runtime/container.h"

namespace collage {
namespace {

/// The kernel's own artifact where it has one, and its function as text: whoever does not trust machine code compiles that.
Result<StoredProgram::StoredKernel> Store(const PartitionCall& call, const Kernel& kernel, ContainerWriter& blobs) {
  StoredProgram::StoredKernel stored;
  if (const std::string artifact = kernel.Serialize(); !artifact.empty()) stored.artifact = blobs.Add(artifact);
  if (!call.function) {
    if (stored.artifact) return stored;
    return Fail("kernel '" + call.record.name + "' cannot be saved: it has neither an artifact nor a function");
  }
  // As whole numbers where the kernel keeps them so: a quarter of the bytes, and nothing is rounded again when the file is loaded.
  const Function& function = *call.function->As<Function>();
  const bool rounds_weights = Permits(function, DType::kInt8);
  PrintedText printed = PrintExpr(rounds_weights ? COLLAGE_TRY(WithRoundedWeights(function)) : call.function);
  stored.text = std::move(printed.text);
  stored.constants = std::move(printed.constants);
  return stored;
}

Result<StoredProgram> Store(const PartitionProgram& program, const Executable& executable, ContainerWriter& blobs) {
  StoredProgram stored{executable.device(), Fingerprint(executable.device()), program, {}, {}, {}, {}};
  const std::vector<Program::KernelCall>& kernels = executable.calls();
  for (size_t i = 0; i < kernels.size(); ++i) stored.kernels.push_back(COLLAGE_TRY(Store(program.calls[i], *kernels[i].kernel, blobs)));
  return stored;
}

}  // namespace

Status SaveProgram(const LoweredModel& model, const std::string& metadata, const std::filesystem::path& path) {
  ContainerWriter blobs = COLLAGE_TRY(ContainerWriter::Create(path));
  blobs.Reserve();  // for the program, which is known only when all others have their numbers
  blobs.Add(metadata);
  StoredProgram stored = COLLAGE_TRY(Store(model.program, model.executable, blobs));
  stored.control = model.control;
  stored.remainders = model.remainders;
  for (size_t i = 0; i < model.blocks.size(); ++i)
    stored.blocks.push_back(COLLAGE_TRY(Store(model.blocks[i], model.executable.blocks()[i], blobs)));
  blobs.Fill(kProgramBlob, ToJson(stored, blobs).dump());
  return blobs.Commit();
}

}  // namespace collage
