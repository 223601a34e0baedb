#include "collage/driver/compile_rows.h"

#include <algorithm>

#include "collage/driver/control_report.h"
#include "collage/driver/part_options.h"
#include "collage/explain/what_if_report.h"
#include "collage/ir/call_work.h"
#include "collage/ir/structural.h"
#include "collage/lower/profiles.h"
#include "collage/onnx/remainder.h"
#include "collage/transform/pass.h"

namespace collage {
namespace {

// A machine multiplies some 30 times in the time in which it loads a weight from memory, so fewer rows at a time would cost as much in
// large products. An eighth of it wastes at most three rows, and twice as many programs are compiled already.
constexpr int64_t kManyRows = 32;
constexpr int64_t kFewRows = 4;
/// A region for a number of rows.
struct Part {
  size_t region;
  int64_t rows;
  Expr function;
  uint64_t hash;
  std::string name;
};

class RowsCompile {
 public:
  RowsCompile(OnnxModel model, const CompileOptions& options, const CompileHead& compile_head, const CompileBlock& compile_block,
              RowPrograms& rows)
      : model_(std::move(model)), options_(options), compile_head_(compile_head), compile_block_(compile_block), rows_(rows) {}

  Result<CompiledModel> Run() {
    PartOptions options = COLLAGE_TRY(MakeParts());
    Remainder::Parts remainder = model_.remainder->parts();
    CompiledModel head = COLLAGE_TRY(compile_head_(std::move(model_), options.Begin(kHead)));
    CompileReport report = std::move(head.report);
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      options_.progress.Report({"rows", i + 1, parts_.size(), part.name});
      const UserConstraints& constraints = options.ConstraintsOf(kHead + 1 + i);
      std::optional<size_t> known = Find(part, constraints);
      CompileReport of_part;
      if (known) {
        options.Skip(kHead + 1 + i);
        of_part = rows_.programs[*known].report;
        of_part.candidates = {};  // were counted where it was compiled
      } else {
        Result<CompiledModel> compiled = compile_block_(part.function, options.Begin(kHead + 1 + i));
        if (!compiled) return Fail(compiled.error().At("@" + part.name));
        of_part = compiled->report;
        known = rows_.programs.size();
        rows_.programs.push_back({part.hash, constraints, std::move(compiled->lowered), std::move(compiled->report)});
      }
      const double microseconds = of_part.end_to_end.empty() ? of_part.estimated_us : of_part.end_to_end.front().median_ms * 1e3;
      remainder.regions[part.region].programs.push_back({part.rows, *known, microseconds});
      AddPlan({part.name, std::move(of_part)}, report);
    }
    head.lowered.remainders = {COLLAGE_TRY(CreateRemainder(std::move(remainder)))};
    report.remainder = head.lowered.remainders[0]->Summary();
    report.budget_seconds = options_.budget_seconds;
    report.elapsed_seconds = options.SecondsSpent();
    head.metadata = WithReport(head.metadata, OfEveryCompile(report));
    head.report = std::move(report);
    return head;
  }

 private:
  static constexpr size_t kHead = 0;  // among the parts of the compile

  Result<PartOptions> MakeParts() {
    CompiledPart head{{}, FlopsOf(model_.module)};
    for (const auto& [name, function] : model_.module.functions()) {
      if (function->As<Function>()) head.functions.push_back(function);
    }
    std::vector<CompiledPart> parts{std::move(head)};
    for (size_t i = 0; i < model_.regions.size(); ++i) {
      for (const auto& [rows, function] : model_.regions[i].functions) {
        const IRModule module = COLLAGE_TRY(RunPasses(IRModule::FromMain(function), SafeGlobalPasses()));
        parts_.push_back({i, rows, module.MainExpr(), ContentHash(module), "rows_" + std::to_string(i) + "_by_" + std::to_string(rows)});
        parts.push_back({{module.MainExpr()}, model_.regions[i].work * static_cast<double>(rows)});
      }
    }
    PartOptions options(options_, parts, kHead);
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (Find(parts_[i], options.ConstraintsOf(kHead + 1 + i))) options.Skip(kHead + 1 + i);
    }
    return options;
  }

  /// Its number among the programs that are there.
  [[nodiscard]] std::optional<size_t> Find(const Part& part, const UserConstraints& constraints) const {
    for (size_t i = 0; i < rows_.programs.size(); ++i) {
      const RowPrograms::Program& program = rows_.programs[i];
      if (program.hash == part.hash && program.constraints.pin == constraints.pin && program.constraints.forbid == constraints.forbid)
        return i;
    }
    return std::nullopt;
  }

  OnnxModel model_;
  const CompileOptions& options_;
  const CompileHead& compile_head_;
  const CompileBlock& compile_block_;
  RowPrograms& rows_;
  std::vector<Part> parts_;
};

}  // namespace

std::vector<int64_t> RowCounts() { return {kManyRows, kFewRows}; }

Result<CompiledModel> CompileRows(OnnxModel model, const CompileOptions& options, const CompileHead& compile_head,
                                  const CompileBlock& compile_block, RowPrograms& rows) {
  return RowsCompile(std::move(model), options, compile_head, compile_block, rows).Run();
}

Result<LoweredModel> AddRowPrograms(LoweredModel model, RowPrograms rows) {
  if (rows.programs.empty()) return model;
  const size_t others = std::max<size_t>(1, model.blocks.size());
  for (std::shared_ptr<const Remainder>& remainder : model.remainders) {
    if (remainder == nullptr) continue;
    Remainder::Parts parts = remainder->parts();
    for (Remainder::Region& region : parts.regions) {
      for (Remainder::RowProgram& program : region.programs) program.block += others;
    }
    remainder = COLLAGE_TRY(CreateRemainder(std::move(parts)));
  }
  std::vector<LoweredModel> blocks;
  for (RowPrograms::Program& program : rows.programs) blocks.push_back(std::move(program.lowered));
  return AddBlocks(std::move(model), std::move(blocks));
}

}  // namespace collage
