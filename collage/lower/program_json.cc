#include "collage/lower/program_json.h"

#include <algorithm>
#include <optional>

#include "collage/lower/open_remainder.h"
#include "collage/tensor/checked_bytes.h"
#include "collage/tensor/strings.h"

namespace collage {
namespace {

using Json = nlohmann::json;

Json TypeJson(const TensorType& type) { return {{"dtype", Name(type.dtype)}, {"shape", type.shape}}; }

Json TensorJson(const Tensor& tensor, ContainerWriter& writer) {
  Json json = TypeJson(tensor.type());
  json["blob"] = tensor.dtype() == DType::kString ? writer.Add(WriteStrings(tensor)) : writer.Add(tensor);
  return json;
}

Json EndpointsJson(const std::vector<Endpoint>& endpoints) {
  Json json = Json::array();
  for (const Endpoint& endpoint : endpoints) json.push_back({{"name", endpoint.name}, {"value", endpoint.value}});
  return json;
}

Json RecordJson(const KernelRecord& record) {
  Json json = {{"name", record.name},       {"backend", record.backend},     {"backend_version", record.backend_version},
               {"variant", record.variant}, {"operators", record.operators}, {"nodes", record.nodes}};
  if (!record.device.empty()) json["device"] = record.device;
  return json;
}

Json ValueJson(const Program::Value& value, ContainerWriter& writer) {
  Json json = TypeJson(value.type);
  if (value.view_of) json["view_of"] = *value.view_of;
  if (value.slice) {
    const Program::Slice& slice = *value.slice;
    json["slice"] = {{"of", slice.of}, {"axis", slice.axis}, {"begin", slice.begin}, {"layout", slice.layout.ToString()}};
  }
  if (value.join) json["join"] = {{"parts", value.join->parts}, {"axis", value.join->axis}, {"layout", value.join->layout.ToString()}};
  if (value.constant.Defined()) json["constant"] = TensorJson(value.constant, writer);
  return json;
}

// Reading: at() and get() of the library throw on what is not there or of another type; StoredProgramFromJson catches that.

/// What is no whole number from zero on would be converted into one.
Result<uint64_t> NumberFromJson(const Json& json, const char* field) {
  const Json& value = json.at(field);
  if (!value.is_number_unsigned()) return Fail(std::string(field) + " is " + value.dump() + ", expected a number from 0 on");
  return value.get<uint64_t>();
}

Result<std::vector<size_t>> NumbersFromJson(const Json& json, const char* field) {
  std::vector<size_t> numbers;
  for (const Json& value : json.at(field)) {
    if (!value.is_number_unsigned()) return Fail(std::string(field) + " holds " + value.dump() + ", expected numbers from 0 on");
    numbers.push_back(value.get<size_t>());
  }
  return numbers;
}

Result<TensorType> TypeFromJson(const Json& json) {
  const std::optional<DType> dtype = DTypeFromName(json.at("dtype").get<std::string>());
  if (!dtype) return Fail("unknown element type " + json.at("dtype").dump());
  TensorType type{{}, *dtype};
  for (const size_t extent : COLLAGE_TRY(NumbersFromJson(json, "shape"))) type.shape.push_back(static_cast<int64_t>(extent));
  if (!CheckedByteCount(type, Layout())) return Fail("shape " + json.at("shape").dump() + ", which no memory holds");
  return type;
}

Result<Tensor> TensorFromJson(const Json& json, const Container& container) {
  TensorType type = COLLAGE_TRY(TypeFromJson(json));
  const size_t index = COLLAGE_TRY(NumberFromJson(json, "blob"));
  if (index >= container.size()) return Fail("a tensor in a blob that is not there");
  const std::string_view blob = container.blob(index);
  if (type.dtype == DType::kString) return ReadStrings(std::move(type.shape), blob);
  if (blob.size() != type.ByteCount()) return Fail("a tensor of " + std::to_string(blob.size()) + " bytes for " + ToString(type));
  return Tensor::View(std::move(type), blob.data(), container.owner());
}

Result<std::vector<Endpoint>> EndpointsFromJson(const Json& json) {
  std::vector<Endpoint> endpoints;
  for (const Json& entry : json) {
    endpoints.push_back({entry.at("name").get<std::string>(), COLLAGE_TRY(NumberFromJson(entry, "value"))});
  }
  return endpoints;
}

KernelRecord RecordFromJson(const Json& json) {
  KernelRecord record{json.at("name"), json.at("backend"), json.at("backend_version"), json.at("variant"), json.at("operators"), {}};
  record.nodes = json.value("nodes", std::vector<std::string>());  // files of before have none
  record.device = json.value("device", std::string());
  return record;
}

Result<Layout> LayoutFromJson(const Json& json) { return Layout::Parse(json.at("layout").get<std::string>()); }

Result<Program::Slice> SliceFromJson(const Json& json) {
  const size_t of = COLLAGE_TRY(NumberFromJson(json, "of"));
  const size_t axis = COLLAGE_TRY(NumberFromJson(json, "axis"));
  const auto begin = static_cast<int64_t>(COLLAGE_TRY(NumberFromJson(json, "begin")));
  return Program::Slice{of, axis, begin, COLLAGE_TRY(LayoutFromJson(json))};
}

Result<Program::Join> JoinFromJson(const Json& json) {
  std::vector<size_t> parts = COLLAGE_TRY(NumbersFromJson(json, "parts"));
  const size_t axis = COLLAGE_TRY(NumberFromJson(json, "axis"));
  return Program::Join{std::move(parts), axis, COLLAGE_TRY(LayoutFromJson(json))};
}

Result<Program::Value> ValueFromJson(const Json& json, const Container& container) {
  Program::Value value{COLLAGE_TRY(TypeFromJson(json))};
  if (json.contains("view_of")) value.view_of = COLLAGE_TRY(NumberFromJson(json, "view_of"));
  if (json.contains("slice")) value.slice = COLLAGE_TRY(SliceFromJson(json.at("slice")));
  if (json.contains("join")) value.join = COLLAGE_TRY(JoinFromJson(json.at("join")));
  if (json.contains("constant")) value.constant = COLLAGE_TRY(TensorFromJson(json.at("constant"), container));
  return value;
}

Result<StoredProgram::StoredKernel> KernelFromJson(const Json& json, const Container& container) {
  StoredProgram::StoredKernel kernel;
  if (json.contains("artifact")) {
    kernel.artifact = COLLAGE_TRY(NumberFromJson(json, "artifact"));
    if (*kernel.artifact >= container.size()) return Fail("an artifact in a blob that is not there");
    if (!json.contains("function")) return kernel;
  }
  kernel.text = json.at("function").get<std::string>();
  for (const Json& constant : json.at("constants")) kernel.constants.push_back(COLLAGE_TRY(TensorFromJson(constant, container)));
  return kernel;
}

Result<Device> DeviceFromJson(const Json& json) {
  constexpr uint64_t kMost = 1 << 20;  // identifiers and threads of any machine
  const uint64_t kind = COLLAGE_TRY(NumberFromJson(json, "kind"));
  const uint64_t id = COLLAGE_TRY(NumberFromJson(json, "id"));
  const uint64_t threads = COLLAGE_TRY(NumberFromJson(json, "threads"));
  if (kind > static_cast<uint64_t>(DeviceKind::kOpenCl) || id > kMost || threads > kMost) return Fail("device " + json.dump());
  return Device{static_cast<DeviceKind>(kind), static_cast<int>(id), static_cast<int>(threads)};
}

constexpr const char* kStepKinds[] = {"block", "call", "branch"};

Json FunctionJson(const ControlProgram::Function& function, ContainerWriter& writer) {
  Json json = {{"name", function.name}, {"parameters", function.parameters}, {"results", function.results}};
  if (!function.result_names.empty()) json["result_names"] = function.result_names;
  if (!function.failure.empty()) json["failure"] = function.failure;
  json["types"] = Json::array();
  for (const TensorType& type : function.types) json["types"].push_back(TypeJson(type));
  json["constants"] = Json::array();
  for (const auto& [number, value] : function.constants)
    json["constants"].push_back({{"tensor", number}, {"value", TensorJson(value, writer)}});
  json["steps"] = Json::array();
  for (const ControlProgram::Step& step : function.steps) {
    Json entry = {
        {"kind", kStepKinds[static_cast<size_t>(step.kind)]}, {"callee", step.callee}, {"inputs", step.inputs}, {"outputs", step.outputs}};
    if (step.kind == ControlProgram::Step::Kind::kBranch) {
      entry["condition"] = step.condition;
      entry["otherwise"] = step.otherwise;
      entry["otherwise_inputs"] = step.otherwise_inputs;
    }
    json["steps"].push_back(std::move(entry));
  }
  return json;
}

Result<ControlProgram::Step> StepFromJson(const Json& json) {
  ControlProgram::Step step;
  const auto* kind = std::find(std::begin(kStepKinds), std::end(kStepKinds), json.at("kind").get<std::string>());
  if (kind == std::end(kStepKinds)) return Fail("a step of kind " + json.at("kind").dump());
  step.kind = static_cast<ControlProgram::Step::Kind>(kind - std::begin(kStepKinds));
  step.callee = COLLAGE_TRY(NumberFromJson(json, "callee"));
  step.inputs = COLLAGE_TRY(NumbersFromJson(json, "inputs"));
  step.outputs = COLLAGE_TRY(NumbersFromJson(json, "outputs"));
  if (step.kind != ControlProgram::Step::Kind::kBranch) return step;
  step.condition = COLLAGE_TRY(NumberFromJson(json, "condition"));
  step.otherwise = COLLAGE_TRY(NumberFromJson(json, "otherwise"));
  step.otherwise_inputs = COLLAGE_TRY(NumbersFromJson(json, "otherwise_inputs"));
  return step;
}

Result<ControlProgram::Function> FunctionFromJson(const Json& json, const Container& container) {
  ControlProgram::Function function;
  function.name = json.at("name").get<std::string>();
  function.parameters = COLLAGE_TRY(NumberFromJson(json, "parameters"));
  function.results = COLLAGE_TRY(NumbersFromJson(json, "results"));
  if (json.contains("result_names")) function.result_names = json.at("result_names").get<std::vector<std::string>>();
  function.failure = json.value("failure", std::string());
  for (const Json& type : json.at("types")) function.types.push_back(COLLAGE_TRY(TypeFromJson(type)));
  for (const Json& constant : json.at("constants")) {
    const size_t number = COLLAGE_TRY(NumberFromJson(constant, "tensor"));
    function.constants.emplace_back(number, COLLAGE_TRY(TensorFromJson(constant.at("value"), container)));
  }
  for (const Json& step : json.at("steps")) function.steps.push_back(COLLAGE_TRY(StepFromJson(step)));
  return function;
}

Result<StoredProgram> ReadFlat(const Json& json, const Container& container) {
  StoredProgram stored;
  const Json& device = json.at("device");
  stored.device = COLLAGE_TRY(DeviceFromJson(device));
  stored.fingerprint = device.at("fingerprint").get<std::string>();
  stored.program.inputs = COLLAGE_TRY(EndpointsFromJson(json.at("inputs")));
  stored.program.outputs = COLLAGE_TRY(EndpointsFromJson(json.at("outputs")));
  for (const Json& value : json.at("values")) stored.program.values.push_back(COLLAGE_TRY(ValueFromJson(value, container)));
  for (const Json& call : json.at("calls")) {
    stored.program.calls.push_back({RecordFromJson(call.at("record")), nullptr, COLLAGE_TRY(NumbersFromJson(call, "inputs")),
                                    COLLAGE_TRY(NumbersFromJson(call, "outputs"))});
    stored.kernels.push_back(COLLAGE_TRY(KernelFromJson(call, container)));
  }
  for (const std::vector<Endpoint>* endpoints : {&stored.program.inputs, &stored.program.outputs}) {
    for (const Endpoint& endpoint : *endpoints) {
      if (endpoint.value >= stored.program.values.size()) return Fail("'" + endpoint.name + "' is no value of it");
    }
  }
  return stored;
}

Json RegionJson(const Remainder::Region& region) {
  Json programs = Json::array();
  for (const Remainder::RowProgram& program : region.programs)
    programs.push_back({{"rows", program.rows}, {"block", program.block}, {"microseconds", program.microseconds}});
  return {{"begin", region.begin},       {"end", region.end},         {"inputs", region.inputs},
          {"has_rows", region.has_rows}, {"outputs", region.outputs}, {"programs", std::move(programs)}};
}

Result<Remainder::Region> RegionFromJson(const Json& json) {
  Remainder::Region region;
  region.begin = COLLAGE_TRY(NumberFromJson(json, "begin"));
  region.end = COLLAGE_TRY(NumberFromJson(json, "end"));
  region.inputs = json.at("inputs").get<std::vector<std::string>>();
  region.has_rows = json.at("has_rows").get<std::vector<bool>>();
  region.outputs = json.at("outputs").get<std::vector<std::string>>();
  for (const Json& program : json.at("programs")) {
    const auto rows = static_cast<int64_t>(COLLAGE_TRY(NumberFromJson(program, "rows")));
    region.programs.push_back({rows, COLLAGE_TRY(NumberFromJson(program, "block")), program.at("microseconds").get<double>()});
  }
  return region;
}

Json RemainderJson(const Remainder& remainder, ContainerWriter& writer) {
  const Remainder::Parts& parts = remainder.parts();
  Json inputs = Json::array();
  for (const Remainder::Input& input : parts.inputs) {
    Json json = {{"name", input.name}};
    if (input.length) json["length"] = *input.length;
    inputs.push_back(std::move(json));
  }
  Json weights = Json::array();
  for (const auto& [name, value] : parts.weights) weights.push_back({{"name", name}, {"value", TensorJson(value, writer)}});
  Json json = {
      {"message", writer.Add(parts.message)}, {"inputs", std::move(inputs)}, {"weights", std::move(weights)}, {"reason", parts.reason}};
  for (const Remainder::Region& region : parts.regions) json["regions"].push_back(RegionJson(region));
  return json;
}

Result<std::shared_ptr<const Remainder>> RemainderFromJson(const Json& json, const Container& container) {
  Remainder::Parts parts;
  const size_t message = COLLAGE_TRY(NumberFromJson(json, "message"));
  if (message >= container.size()) return Fail("its remainder is in a blob that is not there");
  parts.message = std::string(container.blob(message));
  for (const Json& input : json.at("inputs")) {
    parts.inputs.push_back({input.at("name").get<std::string>(), std::nullopt});
    if (input.contains("length")) parts.inputs.back().length = COLLAGE_TRY(NumberFromJson(input, "length"));
  }
  for (const Json& weight : json.at("weights"))
    parts.weights.emplace_back(weight.at("name").get<std::string>(), COLLAGE_TRY(TensorFromJson(weight.at("value"), container)));
  parts.reason = json.at("reason").get<std::string>();
  if (json.contains("regions")) {
    for (const Json& region : json.at("regions")) parts.regions.push_back(COLLAGE_TRY(RegionFromJson(region)));
  }
  return OpenRemainder(std::move(parts));
}

/// What a file says of a remainder must hold for the head that gives it so many values.
Status CheckRemainder(const Remainder& remainder, size_t values, size_t blocks) {
  size_t tensors = 0;
  for (const Remainder::Input& input : remainder.parts().inputs) tensors += input.length.value_or(1);
  if (tensors != values) return Fail("its head gives other values than its remainder takes");
  for (const Remainder::Region& region : remainder.parts().regions) {
    for (const Remainder::RowProgram& program : region.programs) {
      if (program.block >= blocks) return Fail("a program of rows is in a block that is not there");
    }
  }
  return {};
}

Status ReadRemainders(const Json& json, const Container& container, StoredProgram& stored) {
  const Json alone = json.contains("remainders") ? Json() : Json::array({json.at("remainder")});
  const Json& each = alone.is_null() ? json.at("remainders") : alone;
  const bool is_flat = stored.control.functions.empty();
  if (each.size() != stored.control.entries || (!is_flat && each.size() > stored.control.functions.size()))
    return Fail("it has remainders of " + std::to_string(each.size()) + " profiles, and " + std::to_string(stored.control.entries) +
                " profiles");
  std::optional<size_t> results;
  for (size_t profile = 0; profile < each.size(); ++profile) {
    const size_t values = is_flat ? stored.program.outputs.size() : stored.control.functions[profile].results.size();
    std::shared_ptr<const Remainder> remainder;
    if (!each[profile].is_null()) {
      remainder = COLLAGE_TRY(RemainderFromJson(each[profile], container));
      COLLAGE_TRY_STATUS(CheckRemainder(*remainder, values, stored.blocks.size()));
    }
    const size_t given = remainder ? remainder->outputs().size() : values;
    if (results.value_or(given) != given) return Fail("its profiles give different numbers of outputs");
    results = given;
    stored.remainders.push_back(std::move(remainder));
  }
  return {};
}

Result<StoredProgram> Read(const Json& json, const Container& container) {
  if (json.contains("head")) {
    StoredProgram stored = COLLAGE_TRY(Read(json.at("head"), container));
    if (!stored.remainders.empty()) return Fail("a head has a remainder of its own");
    COLLAGE_TRY_STATUS(ReadRemainders(json, container, stored));
    return stored;
  }
  StoredProgram stored = COLLAGE_TRY(ReadFlat(json, container));
  if (!json.contains("control")) return stored;
  for (const Json& function : json.at("control")) stored.control.functions.push_back(COLLAGE_TRY(FunctionFromJson(function, container)));
  for (const Json& block : json.at("blocks")) stored.blocks.push_back(COLLAGE_TRY(ReadFlat(block, container)));
  if (stored.control.functions.empty()) return Fail("its control flow has no functions");
  if (json.contains("entries")) stored.control.entries = COLLAGE_TRY(NumberFromJson(json, "entries"));
  return stored;
}

Json ProgramJson(const StoredProgram& stored, ContainerWriter& writer) {
  Json values = Json::array();
  for (const Program::Value& value : stored.program.values) values.push_back(ValueJson(value, writer));
  Json calls = Json::array();
  for (size_t i = 0; i < stored.program.calls.size(); ++i) {
    const PartitionCall& call = stored.program.calls[i];
    const StoredProgram::StoredKernel& kernel = stored.kernels[i];
    Json json = {{"record", RecordJson(call.record)}, {"inputs", call.inputs}, {"outputs", call.outputs}};
    if (kernel.artifact) json["artifact"] = *kernel.artifact;
    if (!kernel.text.empty()) {
      json["function"] = kernel.text;
      json["constants"] = Json::array();
      for (const Tensor& constant : kernel.constants) json["constants"].push_back(TensorJson(constant, writer));
    }
    calls.push_back(std::move(json));
  }
  return {{"device",
           {{"kind", static_cast<int>(stored.device.kind)},
            {"id", stored.device.id},
            {"threads", stored.device.threads},
            {"fingerprint", stored.fingerprint}}},
          {"inputs", EndpointsJson(stored.program.inputs)},
          {"outputs", EndpointsJson(stored.program.outputs)},
          {"values", std::move(values)},
          {"calls", std::move(calls)}};
}

}  // namespace

Json ToJson(const StoredProgram& stored, ContainerWriter& writer) {
  if (!stored.remainders.empty()) {
    StoredProgram head = stored;
    head.remainders.clear();
    // Its outputs are not those of the model, so it stands where nobody takes it for a whole program.
    Json json = {{"head", ToJson(head, writer)}};
    if (stored.remainders.size() == 1) {
      json["remainder"] = RemainderJson(*stored.remainders[0], writer);
      return json;
    }
    for (const auto& remainder : stored.remainders) json["remainders"].push_back(remainder ? RemainderJson(*remainder, writer) : Json());
    return json;
  }
  Json json = ProgramJson(stored, writer);
  // The file of a flat program of one profile is as it was before there was anything else.
  if (stored.control.functions.empty()) return json;
  if (stored.control.entries > 1) json["entries"] = stored.control.entries;
  json["control"] = Json::array();
  for (const ControlProgram::Function& function : stored.control.functions) json["control"].push_back(FunctionJson(function, writer));
  json["blocks"] = Json::array();
  for (const StoredProgram& block : stored.blocks) json["blocks"].push_back(ProgramJson(block, writer));
  return json;
}

Result<StoredProgram> StoredProgramFromJson(const Json& json, const Container& container) {
  try {
    return Read(json, container);
  } catch (const Json::exception& error) {
    return Fail(error.what());
  }
}

}  // namespace collage
