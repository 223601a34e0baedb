#include "collage/lower/save.h"

#include <nlohmann/json.hpp>

#include "collage/backend/registry.h"
#include "collage/ir/op_sequence.h"
#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/lower/control.h"
#include "collage/lower/program_json.h"
#include "collage/op/table.h"
#include "collage/runtime/container.h"
#include "collage/support/log.h"
#include "collage/support/memory.h"
#include "collage/tensor/checked_bytes.h"

namespace collage {
namespace {

constexpr size_t kProgramBlob = 0;
constexpr size_t kMetadataBlob = 1;

struct OpenedProgram {
  Container container;
  StoredProgram stored;
};

Result<OpenedProgram> OpenProgram(const std::filesystem::path& path) {
  Container container = COLLAGE_TRY(Container::Open(path));
  const auto wrong = [&](const std::string& why) { return Fail(path.string() + ": its program cannot be read: " + why); };
  if (container.size() <= kMetadataBlob) return wrong("it is not there");
  const nlohmann::json json = nlohmann::json::parse(container.blob(kProgramBlob), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return wrong("it is no JSON");
  Result<StoredProgram> stored = StoredProgramFromJson(json, container);
  if (!stored) return wrong(stored.error().message);
  return OpenedProgram{std::move(container), std::move(*stored)};
}

/// The kernel's own artifact where it has one, and its function as text: whoever does not trust machine code compiles that.
Result<StoredProgram::StoredKernel> Store(const PartitionCall& call, const Kernel& kernel, ContainerWriter& blobs) {
  StoredProgram::StoredKernel stored;
  std::string artifact = kernel.Serialize();
  if (!artifact.empty()) stored.artifact = blobs.Add(std::move(artifact));
  if (!call.function) {
    if (stored.artifact) return stored;
    return Fail("kernel '" + call.record.name + "' cannot be saved: it has neither an artifact nor a function");
  }
  PrintedText printed = PrintExpr(call.function);
  stored.text = std::move(printed.text);
  stored.constants = std::move(printed.constants);
  return stored;
}

Result<StoredProgram> Store(const PartitionProgram& program, const Executable& executable, ContainerWriter& blobs) {
  StoredProgram stored{executable.device(), Fingerprint(executable.device()), program, {}, {}, {}};
  const std::vector<Program::KernelCall>& kernels = executable.calls();
  for (size_t i = 0; i < kernels.size(); ++i) stored.kernels.push_back(COLLAGE_TRY(Store(program.calls[i], *kernels[i].kernel, blobs)));
  return stored;
}

std::vector<NamedType> TypesOf(const PartitionProgram& program, const std::vector<Endpoint>& endpoints) {
  std::vector<NamedType> types;
  for (const Endpoint& endpoint : endpoints) types.push_back({endpoint.name, program.values[endpoint.value].type});
  return types;
}

std::vector<TensorType> TypesOf(const std::vector<NamedType>& tensors) {
  std::vector<TensorType> types;
  for (const NamedType& tensor : tensors) types.push_back(tensor.type);
  return types;
}

Result<std::vector<ShapeProfile>> ProfilesOf(const StoredProgram& stored) {
  const std::vector<NamedType> inputs = TypesOf(stored.program, stored.program.inputs);
  const std::vector<NamedType> outputs = TypesOf(stored.program, stored.program.outputs);
  if (stored.control.functions.empty()) return std::vector<ShapeProfile>{{inputs, outputs}};
  std::vector<Signature> blocks;
  for (const StoredProgram& block : stored.blocks)
    blocks.push_back({TypesOf(TypesOf(block.program, block.program.inputs)), TypesOf(TypesOf(block.program, block.program.outputs))});
  COLLAGE_TRY_STATUS(CheckControlProgram(stored.control, blocks));
  return ShapeProfilesOf(stored.control, NamesOf(stored.program.inputs), NamesOf(stored.program.outputs));
}

/// Machine code runs only where it was made, and with the library that made it.
Status CheckArtifact(const KernelRecord& record, const StoredProgram& stored, const std::string& fingerprint, const std::string& version) {
  if (stored.fingerprint != fingerprint) {
    return Fail("is machine code for another processor (" + stored.fingerprint + ", this one is " + fingerprint +
                "); compile the model again on this machine");
  }
  if (record.backend_version != version) {
    return Fail("was made by version " + record.backend_version + " of the backend, here is version " + version +
                "; compile the model again");
  }
  return {};
}

/// What a function computes inside must fit into memory too: some kernels allocate it when they are made.
Status CheckSizes(const Function& function) {
  const OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
  const size_t machine = PhysicalMemory();
  size_t all = 0;
  for (const OpSequence::Value& value : sequence.values) {
    const std::optional<size_t> bytes = CheckedByteCount(value.type, Layout());
    if (!bytes || *bytes > machine - all) return Fail("computes more than fits into memory, last " + ToString(value.type));
    all += *bytes;
  }
  return {};
}

Status CheckTypes(const std::vector<size_t>& values, const std::vector<TensorType>& types, const std::vector<Program::Value>& program,
                  const std::string& what) {
  const auto count = [&](size_t number) { return std::to_string(number) + " " + what; };
  if (types.size() != values.size()) return Fail("its function has " + count(types.size()) + ", expected " + count(values.size()));
  for (size_t i = 0; i < types.size(); ++i) {
    if (values[i] >= program.size()) return Fail(what + ": value " + std::to_string(values[i]) + " is not there");
    if (types[i] == program[values[i]].type) continue;
    return Fail("its function has " + what + " of type " + ToString(types[i]) + ", expected " + ToString(program[values[i]].type));
  }
  return {};
}

/// The function of a call, which must be of the types that the program says.
Result<Expr> ParseFunction(const StoredProgram::StoredKernel& kernel, const PartitionCall& call, const PartitionProgram& program) {
  ParseOptions options;
  options.constants = kernel.constants;
  ParsedExpr parsed = COLLAGE_TRY(ParseExpr(kernel.text, Operators(), options));
  const Function* function = parsed.expr->As<Function>();
  if (!function) return Fail("its text is no function");
  std::vector<TensorType> parameters;
  for (const Expr& parameter : function->parameters) {
    for (TensorType& type : FlattenTensors(parameter->type())) parameters.push_back(std::move(type));
  }
  COLLAGE_TRY_STATUS(CheckTypes(call.inputs, parameters, program.values, "inputs"));
  COLLAGE_TRY_STATUS(CheckTypes(call.outputs, FlattenTensors(function->result_type), program.values, "outputs"));
  COLLAGE_TRY_STATUS(CheckSizes(*function));
  return parsed.expr;
}

Result<std::unique_ptr<Kernel>> Restore(size_t index, StoredProgram& stored, const Container& container, const BuildOptions& options,
                                        const std::string& fingerprint, MachineCode machine_code) {
  PartitionCall& call = stored.program.calls[index];
  const StoredProgram::StoredKernel& kernel = stored.kernels[index];
  const Device device = COLLAGE_TRY(DeviceOf(call.record, options.device));
  const Backend* backend = COLLAGE_TRY(options.find_backend(call.record.backend, device));
  if (!kernel.text.empty()) call.function = COLLAGE_TRY(ParseFunction(kernel, call, stored.program));
  if (!kernel.artifact || machine_code == MachineCode::kCompileAgain) {
    if (!call.function) return Fail("the file holds machine code only, no function to compile again");
    return CompilePartition(call, *backend, device);
  }
  COLLAGE_TRY_STATUS(CheckArtifact(call.record, stored, fingerprint, backend->Probe(device).version));
  return backend->Load(container.blob(*kernel.artifact), device);
}

/// A flat program, or one block.
Result<Executable> LoadPart(StoredProgram& stored, const Container& container, const BuildOptions& options, const std::string& fingerprint,
                            MachineCode machine_code) {
  std::vector<Program::KernelCall> calls;
  for (size_t i = 0; i < stored.program.calls.size(); ++i) {
    if (options.progress.ShouldStop()) return Fail("stopped");
    const KernelRecord& record = stored.program.calls[i].record;
    options.progress.Report({"load", i, stored.program.calls.size(), record.name});
    Result<std::unique_ptr<Kernel>> kernel = Restore(i, stored, container, options, fingerprint, machine_code);
    if (!kernel) return Fail(kernel.error().At(ToString(record)));
    container.Forget();  // weights that were packed are not needed twice
    calls.push_back({record, std::move(*kernel), stored.program.calls[i].inputs, stored.program.calls[i].outputs});
  }
  return Executable::Create({stored.program.values, std::move(calls), stored.program.inputs, stored.program.outputs}, options.device);
}

}  // namespace

Status SaveProgram(const LoweredModel& model, const std::string& metadata, const std::filesystem::path& path) {
  ContainerWriter blobs;
  blobs.Add(std::string());  // the program, which is known only when all others have their numbers
  blobs.Add(metadata);
  StoredProgram stored = COLLAGE_TRY(Store(model.program, model.executable, blobs));
  stored.control = model.control;
  for (size_t i = 0; i < model.blocks.size(); ++i)
    stored.blocks.push_back(COLLAGE_TRY(Store(model.blocks[i], model.executable.blocks()[i], blobs)));
  blobs.Replace(kProgramBlob, ToJson(stored, blobs).dump());
  return blobs.Write(path);
}

Result<bool> IsProgramFile(const std::filesystem::path& path) { return Container::IsContainer(path); }

Result<ProgramInfo> ReadProgramInfo(const std::filesystem::path& path) {
  const OpenedProgram opened = COLLAGE_TRY(OpenProgram(path));
  ProgramInfo info;
  info.device = opened.stored.device;
  info.fingerprint = opened.stored.fingerprint;
  Result<std::vector<ShapeProfile>> profiles = ProfilesOf(opened.stored);
  if (!profiles) return Fail(profiles.error().At(path.string()));
  info.profiles = std::move(*profiles);
  for (const PartitionCall& call : opened.stored.program.calls) info.plan.push_back(call.record);
  for (const StoredProgram& block : opened.stored.blocks) {
    for (const PartitionCall& call : block.program.calls) info.plan.push_back(call.record);
  }
  info.metadata = opened.container.blob(kMetadataBlob);
  return info;
}

Result<std::string> ReadProgramMetadata(const std::filesystem::path& path) {
  const Container container = COLLAGE_TRY(Container::Open(path));
  if (container.size() <= kMetadataBlob) return Fail(path.string() + ": has no metadata");
  return std::string(container.blob(kMetadataBlob));
}

Result<LoweredModel> LoadProgram(const std::filesystem::path& path, const BuildOptions& options, MachineCode machine_code) {
  OpenedProgram opened = COLLAGE_TRY(OpenProgram(path));
  StoredProgram& stored = opened.stored;
  const std::string fingerprint = Fingerprint(options.device);
  if (stored.fingerprint != fingerprint) {
    spdlog::warn("{}: was compiled and priced on another processor ({}, this one is {}): it may be slower than it could be", path.string(),
                 stored.fingerprint, fingerprint);
  }
  const auto load = [&](StoredProgram& part) { return LoadPart(part, opened.container, options, fingerprint, machine_code); };
  if (stored.control.functions.empty()) {
    Result<Executable> executable = load(stored);
    if (!executable) return Fail(executable.error().At(path.string()));
    return LoweredModel{std::move(stored.program), std::move(*executable)};
  }
  std::vector<Executable> blocks;
  std::vector<PartitionProgram> programs;
  for (StoredProgram& block : stored.blocks) {
    Result<Executable> executable = load(block);
    if (!executable) return Fail(executable.error().At(path.string()));
    blocks.push_back(std::move(*executable));
    programs.push_back(std::move(block.program));
  }
  Result<Executable> executable =
      JoinExecutables(stored.control, std::move(blocks), stored.program.inputs, stored.program.outputs, options.device);
  if (!executable) return Fail(executable.error().At(path.string()));
  return LoweredModel{std::move(stored.program), std::move(*executable), std::move(stored.control), std::move(programs)};
}

Result<LoweredModel> LoadProgram(const std::filesystem::path& path, const Device& device, MachineCode machine_code) {
  BuildOptions options;
  options.device = device;
  options.find_backend = FindBackend;
  return LoadProgram(path, options, machine_code);
}

}  // namespace collage
