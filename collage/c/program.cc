#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "collage/backend/registry.h"
#include "collage/c/objects.h"
#include "collage/runtime/container.h"
#include "collage/runtime/parallel.h"
#include "collage/support/memory.h"

namespace collage::c_abi {
namespace {

struct LoadOptions {
  std::optional<int> threads;
  MachineCode machine_code = MachineCode::kLoad;
  std::vector<std::string> plugins;
  std::vector<CpuStatement> cpus;
};

Result<std::vector<std::string>> Strings(const std::string& option, const nlohmann::json& value, const std::string& expected) {
  const bool is_list = value.is_array() && std::all_of(value.begin(), value.end(), [](const auto& one) { return one.is_string(); });
  if (!is_list) return Fail("option '" + option + "' is " + value.dump() + ", expected " + expected);
  return value.get<std::vector<std::string>>();
}

Result<LoadOptions> ReadOptions(const char* text) {
  LoadOptions options;
  if (!text) return options;
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Fail(std::string("options are '") + text + "', expected a JSON object");
  for (const auto& [key, value] : json.items()) {
    if (key == "threads") {
      if (!value.is_number_integer() || value < 1 || value > kMostThreads)
        return Fail("option 'threads' is " + value.dump() + ", expected a whole number from 1 to " + std::to_string(kMostThreads));
      options.threads = value.get<int>();
    } else if (key == "compile_again") {
      if (!value.is_boolean()) return Fail("option 'compile_again' is " + value.dump() + ", expected true or false");
      if (value) options.machine_code = MachineCode::kCompileAgain;
    } else if (key == "plugins") {
      options.plugins = COLLAGE_TRY(Strings(key, value, "a list of files"));
    } else if (key == "processors") {
      for (const std::string& text : COLLAGE_TRY(Strings(key, value, "a list such as [\"cpu:1=2-3\"]"))) {
        Result<CpuStatement> cpu = CpuStatement::ParseStated(text);
        if (!cpu) return Fail(cpu.error().At("option 'processors'"));
        options.cpus.push_back(std::move(*cpu));
      }
    } else if (key == "compile_on_demand" || key == "compile" || key == "shapes") {
      return Fail("option '" + key +
                  "' is of collage_program_load_or_compile, in libcollage; this only loads, and there is no compiler here");
    } else {
      return Fail("unknown option '" + key + "'; there are 'threads', 'compile_again', 'plugins' and 'processors'");
    }
  }
  return options;
}

/// `opened` is what Container::Open, or Of, gives.
collage_error* Load(Result<OpenedProgram> opened, const LoadOptions& options, collage_program** program) {
  if (!opened) return MakeError(COLLAGE_ERROR_LOAD, opened.error().message);
  for (const std::string& plugin : options.plugins) {
    const Status added = AddBackend(plugin);
    if (!added) return MakeError(COLLAGE_ERROR_LOAD, added.error().message);
  }
  BuildOptions build;
  build.device = opened->stored.device;
  if (options.threads) build.device.threads = *options.threads;
  build.find_backend = FindBackend;
  build.cpus = options.cpus;
  Result<BuildOptions> beside = opened->Beside(build);
  if (!beside) return MakeError(COLLAGE_ERROR_LOAD, beside.error().message);
  auto loaded = std::make_unique<collage_program>();
  loaded->report = opened->container.blob(kMetadataBlob);
  loaded->threads = beside->device.threads;
  Result<std::unique_ptr<SharedProgram>> shared = SharedProgram::Create(std::move(*opened), *beside, options.machine_code);
  if (!shared) return MakeError(COLLAGE_ERROR_LOAD, shared.error().message);
  loaded->shared = std::move(*shared);
  *program = loaded.release();
  return nullptr;
}

collage_tensor_info InfoOf(const std::vector<NamedType>& tensors, size_t index) {
  return index < tensors.size() ? c_abi::InfoOf(tensors[index].name, tensors[index].type.dtype, &tensors[index].type.shape)
                                : collage_tensor_info{};
}

}  // namespace

collage_tensor_info InfoOf(const std::string& name, DType dtype, const Shape* shape) {
  static constexpr int64_t kNoExtents[1] = {0};
  // Names of types are literals.
  collage_tensor_info info{name.c_str(), Name(dtype).data(), nullptr, 0, 0};
  if (shape == nullptr) return info;
  info.shape = shape->empty() ? kNoExtents : shape->data();
  info.rank = shape->size();
  const bool is_known = std::find(shape->begin(), shape->end(), COLLAGE_UNKNOWN_EXTENT) == shape->end();
  if (is_known) info.bytes = TensorType{*shape, dtype}.ByteCount();
  return info;
}

}  // namespace collage::c_abi

using namespace collage::c_abi;

collage_error* collage_program_load(const char* path, const char* options, collage_program** program) noexcept {
  return Guarded([&]() -> collage_error* {
    if (!path || !program) return Refuse("collage_program_load: path and program must not be null");
    *program = nullptr;
    const collage::Result<LoadOptions> read = ReadOptions(options);
    if (!read) return Refuse(read.error().message);
    return Load(collage::OpenedProgram::Open(path), *read, program);
  });
}

collage_error* collage_program_load_memory(const void* bytes, size_t size, const char* options, collage_program** program) noexcept {
  return Guarded([&]() -> collage_error* {
    if (!program || (!bytes && size > 0)) return Refuse("collage_program_load_memory: bytes and program must not be null");
    *program = nullptr;
    const collage::Result<LoadOptions> read = ReadOptions(options);
    if (!read) return Refuse(read.error().message);
    const std::string name = "the program in memory";
    const std::shared_ptr<std::byte> copy = collage::AllocateBuffer(size);
    if (size > 0) std::memcpy(copy.get(), bytes, size);
    collage::Result<collage::Container> container = collage::Container::Of({reinterpret_cast<const char*>(copy.get()), size}, copy, name);
    if (!container) return MakeError(COLLAGE_ERROR_LOAD, container.error().message);
    return Load(collage::OpenedProgram::Of(std::move(*container), name), *read, program);
  });
}

void collage_program_free(collage_program* program) noexcept { delete program; }

size_t collage_program_input_count(const collage_program* program) noexcept { return program->shared->info().profiles[0].inputs.size(); }

size_t collage_program_output_count(const collage_program* program) noexcept {
  const collage::ProgramInfo& info = program->shared->info();
  const collage::Remainder* remainder = collage::RemainderOf(info.remainders, 0);
  return remainder ? remainder->outputs().size() : info.profiles[0].outputs.size();
}

size_t collage_program_profile_count(const collage_program* program) noexcept { return program->shared->info().profiles.size(); }

collage_tensor_info collage_program_input(const collage_program* program, size_t profile, size_t index) noexcept {
  const auto& profiles = program->shared->info().profiles;
  return profile < profiles.size() ? InfoOf(profiles[profile].inputs, index) : collage_tensor_info{};
}

collage_tensor_info collage_program_output(const collage_program* program, size_t profile, size_t index) noexcept {
  const collage::ProgramInfo& info = program->shared->info();
  if (profile >= info.profiles.size()) return {};
  const collage::Remainder* remainder = collage::RemainderOf(info.remainders, profile);
  if (!remainder) return InfoOf(info.profiles[profile].outputs, index);
  if (index >= remainder->outputs().size()) return {};
  const collage::Remainder::Output& output = remainder->outputs()[index];
  return InfoOf(output.name, output.dtype, output.shape ? &*output.shape : nullptr);
}

int collage_program_is_sized_by_run(const collage_program* program) noexcept { return program->shared->info().remainders.empty() ? 0 : 1; }

const char* collage_program_report(const collage_program* program) noexcept { return program->report.c_str(); }

int collage_program_threads(const collage_program* program) noexcept { return program->threads; }
