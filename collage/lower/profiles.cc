#include "collage/lower/profiles.h"

#include <algorithm>
#include <iterator>

#include "collage/lower/control.h"

namespace collage {
namespace {

using Step = ControlProgram::Step;

/// A program as functions and blocks, which any is.
struct Parts {
  ControlProgram control;
  std::vector<PartitionProgram> programs;  // of the blocks
  std::vector<Executable> executables;     // likewise
};

std::vector<std::string> NamesOf(const std::vector<NamedType>& tensors) {
  std::vector<std::string> names;
  for (const NamedType& tensor : tensors) names.push_back(tensor.name);
  return names;
}

/// Of what the whole gives in its first profile.
std::vector<std::string> ResultNames(const LoweredModel& model) {
  const Remainder* remainder = RemainderOf(model.remainders, 0);
  if (remainder == nullptr) return NamesOf(model.program.outputs);
  std::vector<std::string> names;
  for (const Remainder::Output& output : remainder->outputs()) names.push_back(output.name);
  return names;
}

/// Heads of profiles that are cut at different places give different values.
void NameResults(const std::vector<ShapeProfile>& profiles, const std::vector<std::string>& usual, ControlProgram& control) {
  for (size_t entry = 0; entry < profiles.size(); ++entry) {
    std::vector<std::string> names = NamesOf(profiles[entry].outputs);
    if (names == usual) names.clear();
    control.functions[entry].result_names = std::move(names);
  }
}

Parts TakeApart(LoweredModel model) {
  if (!model.control.functions.empty())
    return {std::move(model.control), std::move(model.blocks), std::move(model.executable).TakeBlocks()};
  Parts parts{AroundOneBlock(model.executable.shape_profiles()[0]), {}, {}};
  parts.programs.push_back(std::move(model.program));
  parts.executables.push_back(std::move(model.executable));
  return parts;
}

/// Inputs and outputs only.
PartitionProgram Interface(const ShapeProfile& profile) {
  PartitionProgram program;
  const auto add = [&](const std::vector<NamedType>& tensors, std::vector<Endpoint>& endpoints) {
    for (const NamedType& tensor : tensors) {
      endpoints.push_back({tensor.name, program.values.size()});
      program.values.push_back({tensor.type});
    }
  };
  add(profile.inputs, program.inputs);
  add(profile.outputs, program.outputs);
  return program;
}

/// Functions of one program with the numbers that they have in the whole: entries first, all others behind those of all programs.
struct Numbers {
  size_t entries_of_program;
  size_t first_entry;
  size_t first_other;
  size_t first_block;

  [[nodiscard]] size_t OfFunction(size_t number) const {
    return number < entries_of_program ? first_entry + number : first_other + (number - entries_of_program);
  }
};

void Renumber(ControlProgram::Function& function, const Numbers& numbers) {
  for (Step& step : function.steps) {
    step.callee = step.kind == Step::Kind::kBlock ? numbers.first_block + step.callee : numbers.OfFunction(step.callee);
    if (step.kind == Step::Kind::kBranch) step.otherwise = numbers.OfFunction(step.otherwise);
  }
}

template <class T>
void MoveTo(std::vector<T> from, std::vector<T>& to) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

}  // namespace

Result<LoweredModel> JoinProfiles(std::vector<LoweredModel> profiles) {
  const Device device = profiles[0].executable.device();
  PartitionProgram interface = Interface(profiles[0].executable.shape_profiles()[0]);
  std::vector<Parts> all;
  ControlProgram control;
  control.entries = 0;
  size_t functions = 0;
  const std::vector<std::string> results = ResultNames(profiles[0]);
  Remainders remainders;
  bool has_remainder = false;
  for (LoweredModel& profile : profiles) {
    if (NamesOf(profile.program.inputs) != NamesOf(interface.inputs) || ResultNames(profile) != results)
      return Fail("profiles have inputs or outputs of different names");
    const std::vector<ShapeProfile> shapes = profile.executable.shape_profiles();
    has_remainder = has_remainder || !profile.remainders.empty();
    profile.remainders.resize(shapes.size());
    MoveTo(std::move(profile.remainders), remainders);
    all.push_back(TakeApart(std::move(profile)));
    NameResults(shapes, NamesOf(interface.outputs), all.back().control);
    control.entries += all.back().control.entries;
    functions += all.back().control.functions.size();
  }
  control.functions.resize(functions);
  Numbers numbers{0, 0, control.entries, 0};
  std::vector<PartitionProgram> programs;
  std::vector<Executable> executables;
  for (Parts& parts : all) {
    numbers.entries_of_program = parts.control.entries;
    for (size_t i = 0; i < parts.control.functions.size(); ++i) {
      Renumber(parts.control.functions[i], numbers);
      control.functions[numbers.OfFunction(i)] = std::move(parts.control.functions[i]);
    }
    numbers.first_entry += parts.control.entries;
    numbers.first_other += parts.control.functions.size() - parts.control.entries;
    numbers.first_block += parts.programs.size();
    MoveTo(std::move(parts.programs), programs);
    MoveTo(std::move(parts.executables), executables);
  }
  Executable executable = COLLAGE_TRY(JoinExecutables(control, std::move(executables), interface.inputs, interface.outputs, device));
  if (!has_remainder) remainders.clear();
  return LoweredModel{std::move(interface), std::move(executable), std::move(control), std::move(programs), std::move(remainders)};
}

Result<LoweredModel> AddBlocks(LoweredModel model, std::vector<LoweredModel> blocks) {
  const Device device = model.executable.device();
  PartitionProgram interface = Interface(model.executable.shape_profiles()[0]);
  Remainders remainders = std::move(model.remainders);
  Parts parts = TakeApart(std::move(model));
  for (LoweredModel& block : blocks) {
    parts.programs.push_back(std::move(block.program));
    parts.executables.push_back(std::move(block.executable));
  }
  Executable executable =
      COLLAGE_TRY(JoinExecutables(parts.control, std::move(parts.executables), interface.inputs, interface.outputs, device));
  return LoweredModel{std::move(interface), std::move(executable), std::move(parts.control), std::move(parts.programs),
                      std::move(remainders)};
}

}  // namespace collage
