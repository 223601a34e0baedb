#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <unordered_map>

#include "collage/explain/report.h"
#include "collage/explain/what_if_report.h"
#include "collage/lower/save.h"
#include "collage/onnx/partitioned.h"
#include "collage/support/file.h"
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/output.h"

namespace collage::tools {
namespace {

struct Options {
  std::string file;
  std::string to;
  std::vector<std::string> shapes;
};

/// What the report of a profile says of its partitions, by their names.
Result<std::unordered_map<std::string, PlanEntry>> EntriesOf(const std::string& metadata, size_t profile) {
  const std::vector<std::string> profiles = COLLAGE_TRY(MetadataOfProfiles(metadata));
  if (profile >= profiles.size()) return Fail("its report has no profile " + std::to_string(profile));
  std::unordered_map<std::string, PlanEntry> entries;
  for (PlanEntry& entry : COLLAGE_TRY(ReportFromJson(profiles[profile])).plan) {
    const std::string symbol = entry.symbol;
    entries.emplace(symbol, std::move(entry));
  }
  return entries;
}

std::vector<std::pair<std::string, std::string>> Remarks(const KernelRecord& record, const Device& host, const PlanEntry* entry) {
  std::vector<std::pair<std::string, std::string>> remarks = {
      {"collage.backend", record.backend},
      {"collage.backend_version", record.backend_version},
      {"collage.variant", record.variant},
      {"collage.target", record.device.empty() ? ToString(host) : record.device},
      {"collage.nodes", fmt::format("{}", fmt::join(record.nodes, ", "))},
      {"collage.operators", fmt::format("{}", fmt::join(record.operators, ", "))},
  };
  if (entry != nullptr) remarks.emplace_back("collage.price_us", fmt::format("{:.3f}", entry->cost_us));
  return remarks;
}

std::optional<PartitionedModel::Moved> MovedOf(const Program::Value& value) {
  using Moved = PartitionedModel::Moved;
  if (value.view_of) return Moved{Moved::Kind::kReshape, {*value.view_of}};
  if (value.slice) return Moved{Moved::Kind::kSlice, {value.slice->of}, static_cast<int64_t>(value.slice->axis), value.slice->begin};
  if (value.join) return Moved{Moved::Kind::kConcat, value.join->parts, static_cast<int64_t>(value.join->axis)};
  return std::nullopt;
}

PartitionedModel ToPartitionedModel(const PartitionProgram& program, const Device& host,
                                    const std::unordered_map<std::string, PlanEntry>& entries) {
  PartitionedModel model;
  for (const Program::Value& value : program.values) {
    model.values.push_back({value.type, MovedOf(value)});
    if (value.constant.Defined()) model.values.back().constant = value.constant;
  }
  for (const PartitionCall& call : program.calls) {
    const auto entry = entries.find(call.record.name);
    model.calls.push_back({call.record.name, call.function, call.inputs, call.outputs,
                           Remarks(call.record, host, entry == entries.end() ? nullptr : &entry->second)});
  }
  for (const Endpoint& input : program.inputs) model.inputs.push_back({input.name, input.value});
  for (const Endpoint& output : program.outputs) model.outputs.push_back({output.name, output.value});
  return model;
}

Status Convert(const Options& options) {
  if (std::filesystem::path(options.to).extension() != ".onnx")
    return Fail("--to " + options.to + ": only ONNX is written, to a file NAME.onnx");
  if (!COLLAGE_TRY(IsProgramFile(options.file))) return Fail(options.file + ": is no compiled file; make one with collage compile");
  COLLAGE_TRY_STATUS(CheckWritable(options.to));
  const ProgramInfo info = COLLAGE_TRY(ReadProgramInfo(options.file));
  const std::vector<InputShapes> asked = COLLAGE_TRY(ParseProfiles(options.shapes));
  if (asked.size() > 1) return Fail("--shape: several profiles; one is written, give each input one --shape");
  const size_t profile = COLLAGE_TRY(ProfileOf(asked[0], info.profiles));
  const PartitionProgram program = COLLAGE_TRY(ReadPartitions(options.file, profile));
  const auto entries = EntriesOf(info.metadata, profile);
  if (!entries) return Fail(entries.error().At(options.file));
  const Result<PartitionedForm> form = WritePartitioned(ToPartitionedModel(program, info.device, *entries));
  if (!form) return Fail(form.error().At(options.file));
  COLLAGE_TRY_STATUS(WriteFileAtomically(options.to, form->bytes));
  const std::string of_profile = info.profiles.size() > 1 ? "profile " + ToString(info.profiles[profile]) + ", " : "";
  std::printf("%s: %spartitions: %zu, functions: %zu\n", options.to.c_str(), of_profile.c_str(), program.calls.size(), form->functions);
  return {};
}

}  // namespace

void AddConvertCommand(CLI::App& app, int& code) {
  CLI::App* command = app.add_subcommand(
      "convert",
      "Write the plan of a compiled file as an ONNX model that other tools open and run: each partition is a call of a function of "
      "the model, which says in its metadata who runs it");
  auto options = std::make_shared<Options>();
  command->add_option("file", options->file, "A compiled file")->required();
  command->add_option("--to", options->to, "The model to write, NAME.onnx")->required();
  command->add_option("--shape", options->shapes, "The profile to take: name=1x3x224x224 (repeat)");
  command->callback([options, &code] {
    const Status status = Convert(*options);
    code = status ? kDone : ReportError(status.error());
  });
}

}  // namespace collage::tools
