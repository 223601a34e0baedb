#include "collage/lower/opened_program.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "collage/ir/op_sequence.h"
#include "collage/ir/parse.h"
#include "collage/lower/control.h"
#include "collage/op/table.h"
#include "collage/runtime/cpu_context.h"
#include "collage/support/log.h"
#include "collage/support/memory.h"
#include "collage/tensor/checked_bytes.h"

namespace collage {
namespace {

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
Status CheckArtifact(const KernelRecord& record, const StoredProgram& stored, const std::string& fingerprint, const Presence& presence) {
  if (stored.fingerprint != fingerprint) {
    return Fail("is machine code for another processor (" + stored.fingerprint + ", this one is " + fingerprint +
                "); compile the model again on this machine");
  }
  const std::string& version = presence.version;
  if (presence.present ? record.backend_version == version : record.backend_version.ends_with(version)) return {};
  return Fail("was made by version " + record.backend_version + " of the backend, here is version " + version +
              "; compile the model again");
}

/// What a function computes inside must fit into memory too: some kernels allocate it when they are made.
Status CheckSizes(const Function& function) {
  const OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
  const size_t machine = UsableMemory();
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

/// A flat program, or one block, with the functions of its calls.
Result<PartitionProgram> WithFunctions(const StoredProgram& part) {
  PartitionProgram program = part.program;
  for (size_t i = 0; i < program.calls.size(); ++i) {
    PartitionCall& call = program.calls[i];
    const std::string where = ToString(call.record);
    if (part.kernels[i].text.empty()) return Fail(where + ": the file holds its machine code only, no function");
    Result<Expr> function = ParseFunction(part.kernels[i], call, program);
    if (!function) return Fail(function.error().At(where));
    call.function = std::move(*function);
  }
  return program;
}

std::vector<bool> ReachedBlocks(const ControlProgram& control, size_t entry, size_t blocks) {
  std::vector<bool> is_reached(blocks, false);
  std::vector<bool> is_known(control.functions.size(), false);
  std::vector<size_t> open{entry};
  while (!open.empty()) {
    const size_t function = open.back();
    open.pop_back();
    if (is_known[function]) continue;
    is_known[function] = true;
    for (const ControlProgram::Step& step : control.functions[function].steps) {
      if (step.kind == ControlProgram::Step::Kind::kBlock) {
        is_reached[step.callee] = true;
        continue;
      }
      open.push_back(step.callee);
      if (step.kind == ControlProgram::Step::Kind::kBranch) open.push_back(step.otherwise);
    }
  }
  return is_reached;
}

}  // namespace

Result<OpenedProgram> OpenedProgram::Open(const std::filesystem::path& path) {
  return Of(COLLAGE_TRY(Container::Open(path)), path.string());
}

Result<OpenedProgram> OpenedProgram::Of(Container container, const std::string& name) {
  const auto wrong = [&](const std::string& why) { return Fail(name + ": its program cannot be read: " + why); };
  if (container.size() <= kMetadataBlob) return wrong("it is not there");
  const nlohmann::json json = nlohmann::json::parse(container.blob(kProgramBlob), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return wrong("it is no JSON");
  Result<StoredProgram> stored = StoredProgramFromJson(json, container);
  if (!stored) return wrong(stored.error().message);
  return OpenedProgram{name, std::move(container), std::move(*stored)};
}

Result<ProgramInfo> OpenedProgram::Info() const {
  ProgramInfo info;
  info.device = stored.device;
  info.fingerprint = stored.fingerprint;
  Result<std::vector<ShapeProfile>> profiles = ProfilesOf(stored);
  if (!profiles) return Fail(profiles.error().At(name));
  info.profiles = std::move(*profiles);
  for (const PartitionCall& call : stored.program.calls) info.plan.push_back(call.record);
  for (const StoredProgram& block : stored.blocks) {
    for (const PartitionCall& call : block.program.calls) info.plan.push_back(call.record);
  }
  info.remainders = stored.remainders;
  info.metadata = container.blob(kMetadataBlob);
  return info;
}

Result<ProfilePartitions> OpenedProgram::Partitions(const ProgramInfo& info, size_t profile) const {
  ProfilePartitions partitions;
  partitions.profile = info.profiles.at(profile);
  if (!info.remainders.empty()) partitions.remainder = info.remainders[profile];
  if (stored.control.functions.empty()) {
    partitions.control = AroundOneBlock(partitions.profile);
    partitions.blocks.push_back(COLLAGE_TRY(WithFunctions(stored)));
    return partitions;
  }
  partitions.control = stored.control;
  partitions.entry = profile;
  const std::vector<bool> is_reached = ReachedBlocks(stored.control, profile, stored.blocks.size());
  for (size_t i = 0; i < stored.blocks.size(); ++i)
    partitions.blocks.push_back(is_reached[i] ? COLLAGE_TRY(WithFunctions(stored.blocks[i])) : stored.blocks[i].program);
  return partitions;
}

Result<BuildOptions> OpenedProgram::Beside(BuildOptions options) {
  std::map<int, CpuStatement> stated;
  for (const CpuStatement& cpu : options.cpus) {
    if (!stated.emplace(cpu.id, cpu).second) return Fail("cpu:" + std::to_string(cpu.id) + ": its processors are stated twice");
  }
  std::map<int, CpuStatement> cpus;
  const auto state = [&](PartitionProgram& program) -> Status {
    for (PartitionCall& call : program.calls) {
      if (!CpuStatement::IsOne(call.record.device)) continue;
      CpuStatement cpu = COLLAGE_TRY(CpuStatement::Parse(call.record.device));
      if (const auto other = stated.find(cpu.id); other != stated.end()) cpu = other->second;
      call.record.device = cpu.ToString();
      cpus.emplace(cpu.id, std::move(cpu));
    }
    return {};
  };
  Status status = state(stored.program);
  for (size_t i = 0; i < stored.blocks.size() && status; ++i) status = state(stored.blocks[i].program);
  if (!status) return Fail(status.error().At(name));
  for (const auto& [id, cpu] : stated) {
    if (!cpus.contains(id)) return Fail(name + ": has no kernels on cpu:" + std::to_string(id) + ", for which processors are stated");
  }
  if (cpus.empty()) return options;
  std::vector<CpuStatement> all;
  for (auto& [id, cpu] : cpus) all.push_back(std::move(cpu));
  const Result<int> threads = ThreadsBeside(all, options.device.threads);
  if (!threads) return Fail(threads.error().At(name));
  options.device.threads = *threads;
  return options;
}

KernelLoader::KernelLoader(const Container& container, BuildOptions options, MachineCode machine_code)
    : container_(container), options_(std::move(options)), fingerprint_(Fingerprint(options_.device)), machine_code_(machine_code) {}

Result<std::unique_ptr<Kernel>> KernelLoader::Restore(StoredProgram& part, size_t index) const {
  PartitionCall& call = part.program.calls[index];
  const StoredProgram::StoredKernel& kernel = part.kernels[index];
  const Device device = COLLAGE_TRY(DeviceOf(call.record, options_.device));
  const Backend* backend = COLLAGE_TRY(options_.find_backend(call.record.backend, device));
  if (!kernel.text.empty()) call.function = COLLAGE_TRY(ParseFunction(kernel, call, part.program));
  if (!kernel.artifact || machine_code_ == MachineCode::kCompileAgain) {
    if (!call.function) return Fail("the file holds machine code only, no function to compile again");
    return CompilePartition(call, *backend, device);
  }
  if (!backend->ArtifactsHoldSource()) COLLAGE_TRY_STATUS(CheckArtifact(call.record, part, fingerprint_, backend->Probe(device)));
  return backend->Load(container_.blob(*kernel.artifact), device);
}

Result<std::unique_ptr<Kernel>> KernelLoader::Load(StoredProgram& part, size_t index) const {
  const KernelRecord& record = part.program.calls[index].record;
  Result<std::shared_ptr<CpuContext>> cpu = OpenStatedCpu(record.device);
  if (!cpu) return Fail(cpu.error().At(ToString(record)));
  Result<std::unique_ptr<Kernel>> kernel = Restore(part, index);
  if (!kernel) return Fail(kernel.error().At(ToString(record)));
  if (*cpu) return std::make_unique<KernelOnCpu>(std::move(*kernel), std::move(*cpu));
  return kernel;
}

/// A flat program, or one block.
Result<Executable> KernelLoader::LoadPart(StoredProgram& part) const {
  std::vector<Program::KernelCall> calls;
  for (size_t i = 0; i < part.program.calls.size(); ++i) {
    if (options_.progress.ShouldStop()) return Fail("stopped");
    const KernelRecord& record = part.program.calls[i].record;
    options_.progress.Report({"load", i, part.program.calls.size(), record.name});
    std::unique_ptr<Kernel> kernel = COLLAGE_TRY(Load(part, i));
    container_.Forget();  // weights that were packed are not needed twice
    calls.push_back({record, std::move(kernel), part.program.calls[i].inputs, part.program.calls[i].outputs});
  }
  return Executable::Create({part.program.values, std::move(calls), part.program.inputs, part.program.outputs}, options_.device);
}

Result<LoweredModel> KernelLoader::LoadAll(OpenedProgram& opened) const {
  StoredProgram& stored = opened.stored;
  if (stored.fingerprint != fingerprint_) {
    spdlog::warn("{}: was compiled and priced on another processor ({}, this one is {}): it may be slower than it could be", opened.name,
                 stored.fingerprint, fingerprint_);
  }
  if (stored.control.functions.empty()) {
    Result<Executable> executable = LoadPart(stored);
    if (!executable) return Fail(executable.error().At(opened.name));
    return LoweredModel{stored.program, std::move(*executable), {}, {}, stored.remainders};
  }
  std::vector<Executable> blocks;
  std::vector<PartitionProgram> programs;
  for (StoredProgram& block : stored.blocks) {
    Result<Executable> executable = LoadPart(block);
    if (!executable) return Fail(executable.error().At(opened.name));
    blocks.push_back(std::move(*executable));
    programs.push_back(block.program);
  }
  Result<Executable> executable =
      JoinExecutables(stored.control, std::move(blocks), stored.program.inputs, stored.program.outputs, options_.device);
  if (!executable) return Fail(executable.error().At(opened.name));
  return LoweredModel{stored.program, std::move(*executable), stored.control, std::move(programs), stored.remainders};
}

}  // namespace collage
