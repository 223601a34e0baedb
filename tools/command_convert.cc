#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
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
  bool plain = false;
};

/// What the report of a profile says of the partitions of its blocks, by their names, which are unique in a block only.
class Entries {
 public:
  static Result<Entries> Of(const std::string& metadata, size_t profile) {
    const std::vector<std::string> profiles = COLLAGE_TRY(MetadataOfProfiles(metadata));
    if (profile >= profiles.size()) return Fail("its report has no profile " + std::to_string(profile));
    Entries entries;
    std::string last;
    for (PlanEntry& entry : COLLAGE_TRY(ReportFromJson(profiles[profile])).plan) {
      // "block_1:collage_dnnl_conv2d"; what has no blocks has no such begin.
      const size_t name = entry.symbol.find(':') + 1;
      const std::string block = entry.symbol.substr(0, name);
      if (entries.blocks_.empty() || block != last) entries.blocks_.emplace_back();
      last = block;
      const std::string symbol = entry.symbol.substr(name);
      entries.blocks_.back().emplace(symbol, std::move(entry));
    }
    return entries;
  }

  /// Of a block with these calls, behind those that were asked for before: the report has blocks in their order. Null where it has none.
  const std::unordered_map<std::string, PlanEntry>* OfNext(const std::vector<PartitionCall>& calls) {
    const auto has_all = [&](const auto& block) {
      return std::all_of(calls.begin(), calls.end(), [&](const PartitionCall& call) { return block.contains(call.record.name); });
    };
    const auto found = std::find_if(blocks_.begin() + static_cast<ptrdiff_t>(next_), blocks_.end(), has_all);
    if (calls.empty() || found == blocks_.end()) return nullptr;
    next_ = static_cast<size_t>(found - blocks_.begin()) + 1;
    return &*found;
  }

 private:
  std::vector<std::unordered_map<std::string, PlanEntry>> blocks_;
  size_t next_ = 0;
};

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

std::optional<PartitionedBlock::Moved> MovedOf(const Program::Value& value) {
  using Moved = PartitionedBlock::Moved;
  if (value.view_of) return Moved{Moved::Kind::kReshape, {*value.view_of}};
  if (value.slice) return Moved{Moved::Kind::kSlice, {value.slice->of}, static_cast<int64_t>(value.slice->axis), value.slice->begin};
  if (value.join) return Moved{Moved::Kind::kConcat, value.join->parts, static_cast<int64_t>(value.join->axis)};
  return std::nullopt;
}

PartitionedBlock ToPartitionedBlock(const PartitionProgram& program, const Device& host, Entries& entries) {
  PartitionedBlock block;
  for (const Program::Value& value : program.values) {
    block.values.push_back({value.type, MovedOf(value)});
    if (value.constant.Defined()) block.values.back().constant = value.constant;
  }
  const bool is_of_profile = program.calls.empty() || program.calls[0].function;
  if (!is_of_profile) return block;
  const auto* of_block = entries.OfNext(program.calls);
  for (const PartitionCall& call : program.calls) {
    const PlanEntry* entry = of_block == nullptr ? nullptr : &of_block->at(call.record.name);
    block.calls.push_back({call.record.name, call.function, call.inputs, call.outputs, Remarks(call.record, host, entry)});
  }
  for (const Endpoint& input : program.inputs) block.inputs.push_back(input.value);
  for (const Endpoint& output : program.outputs) block.outputs.push_back(output.value);
  return block;
}

PartitionedModel::Step ToStep(const ControlProgram::Step& step) {
  using Kind = PartitionedModel::Step::Kind;
  const auto kind_of = [&] {
    switch (step.kind) {
      case ControlProgram::Step::Kind::kBlock:
        return Kind::kBlock;
      case ControlProgram::Step::Kind::kCall:
        return Kind::kCall;
      case ControlProgram::Step::Kind::kBranch:
        break;
    }
    return Kind::kBranch;
  };
  return {kind_of(), step.callee, step.inputs, step.outputs, step.condition, step.otherwise, step.otherwise_inputs};
}

Result<PartitionedModel> ToPartitionedModel(const ProfilePartitions& partitions, const Device& host, Entries& entries) {
  PartitionedModel model;
  for (const PartitionProgram& block : partitions.blocks) model.blocks.push_back(ToPartitionedBlock(block, host, entries));
  for (const ControlProgram::Function& function : partitions.control.functions) {
    if (!function.failure.empty()) return Fail("no node of ONNX only fails, as this does: " + function.failure);
    model.functions.push_back({function.name, function.types, function.parameters, function.constants, {}, function.results});
    for (const ControlProgram::Step& step : function.steps) model.functions.back().steps.push_back(ToStep(step));
  }
  model.entry = partitions.entry;
  for (const NamedType& input : partitions.profile.inputs) model.input_names.push_back(input.name);
  for (const NamedType& output : partitions.profile.outputs) model.output_names.push_back(output.name);
  if (partitions.remainder) model.remainder = partitions.remainder->parts();
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
  const ProfilePartitions partitions = COLLAGE_TRY(ReadPartitions(options.file, profile));
  Result<Entries> entries = Entries::Of(info.metadata, profile);
  if (!entries) return Fail(entries.error().At(options.file));
  PartitionedModel model = COLLAGE_TRY(ToPartitionedModel(partitions, info.device, *entries));
  if (options.plain) model.nodes = PartitionedModel::Nodes::kInPlace;
  const Result<PartitionedForm> form = WritePartitioned(model);
  if (!form) return Fail(form.error().At(options.file));
  COLLAGE_TRY_STATUS(WriteFileAtomically(options.to, form->bytes));
  const std::string of_profile = info.profiles.size() > 1 ? "profile " + ToString(info.profiles[profile]) + ", " : "";
  std::printf("%s: %spartitions: %zu, functions: %zu\n", options.to.c_str(), of_profile.c_str(), form->partitions, form->functions);
  return {};
}

}  // namespace

void AddConvertCommand(CLI::App& app, int& code) {
  CLI::App* command = app.add_subcommand(
      "convert",
      "Write the plan of a compiled file as an ONNX model that other tools open and run: each partition is a call of a function of "
      "the model, which says in its metadata who runs it; control flow is If and Loop");
  auto options = std::make_shared<Options>();
  command->add_option("file", options->file, "A compiled file")->required();
  command->add_option("--to", options->to, "The model to write, NAME.onnx")->required();
  command->add_option("--shape", options->shapes, "The profile to take: name=1x3x224x224 (repeat)");
  command->add_flag(
      "--plain", options->plain,
      "Write the nodes of the partitions themselves, each with the metadata of its partition, for tools that know no functions; "
      "what control flow calls at several places stays one");
  command->callback([options, &code] {
    const Status status = Convert(*options);
    code = status ? kDone : ReportError(status.error());
  });
}

}  // namespace collage::tools
