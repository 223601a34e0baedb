#include "collage/driver/compile_rows.h"

#include "collage/driver/control_report.h"
#include "collage/driver/part_options.h"
#include "collage/explain/what_if_report.h"
#include "collage/ir/call_work.h"
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
  std::string name;
};

class RowsCompile {
 public:
  RowsCompile(OnnxModel model, const CompileOptions& options, const CompileHead& compile_head, const CompileBlock& compile_block)
      : model_(std::move(model)), options_(options), compile_head_(compile_head), compile_block_(compile_block) {}

  Result<CompiledModel> Run() {
    PartOptions options = COLLAGE_TRY(MakeParts());
    Remainder::Parts remainder = model_.remainder->parts();
    CompiledModel head = COLLAGE_TRY(compile_head_(std::move(model_), options.Begin(kHead)));
    const size_t of_head = std::max<size_t>(1, head.lowered.blocks.size());
    std::vector<LoweredModel> blocks;
    CompileReport report = std::move(head.report);
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      options_.progress.Report({"rows", i + 1, parts_.size(), part.name});
      Result<CompiledModel> compiled = compile_block_(part.function, options.Begin(kHead + 1 + i));
      if (!compiled) return Fail(compiled.error().At("@" + part.name));
      const CompileReport& of_part = compiled->report;
      const double microseconds = of_part.end_to_end.empty() ? of_part.estimated_us : of_part.end_to_end.front().median_ms * 1e3;
      remainder.regions[part.region].programs.push_back({part.rows, of_head + blocks.size(), microseconds});
      blocks.push_back(std::move(compiled->lowered));
      AddPlan({part.name, std::move(compiled->report)}, report);
    }
    head.lowered = COLLAGE_TRY(AddBlocks(std::move(head.lowered), std::move(blocks)));
    head.lowered.remainder = COLLAGE_TRY(CreateRemainder(std::move(remainder)));
    report.remainder = head.lowered.remainder->Summary();
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
        parts_.push_back({i, rows, module.MainExpr(), "rows_" + std::to_string(i) + "_by_" + std::to_string(rows)});
        parts.push_back({{module.MainExpr()}, model_.regions[i].work * static_cast<double>(rows)});
      }
    }
    return PartOptions(options_, parts, kHead);
  }

  OnnxModel model_;
  const CompileOptions& options_;
  const CompileHead& compile_head_;
  const CompileBlock& compile_block_;
  std::vector<Part> parts_;
};

}  // namespace

std::vector<int64_t> RowCounts() { return {kManyRows, kFewRows}; }

Result<CompiledModel> CompileRows(OnnxModel model, const CompileOptions& options, const CompileHead& compile_head,
                                  const CompileBlock& compile_block) {
  return RowsCompile(std::move(model), options, compile_head, compile_block).Run();
}

}  // namespace collage
