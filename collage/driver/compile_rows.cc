#include "collage/driver/compile_rows.h"

#include <algorithm>

#include "collage/driver/control_report.h"
#include "collage/explain/what_if_report.h"
#include "collage/ir/call_names.h"
#include "collage/ir/structural.h"
#include "collage/ir/visit.h"
#include "collage/lower/profiles.h"
#include "collage/onnx/remainder.h"
#include "collage/support/clock.h"
#include "collage/transform/pass.h"

namespace collage {
namespace {

// A machine multiplies some 30 times in the time in which it loads a weight from memory, so fewer rows at a time would cost as much in
// large products. An eighth of it wastes at most three rows, and twice as many programs are compiled already.
constexpr int64_t kManyRows = 32;
constexpr int64_t kFewRows = 4;
// Of the budget, as of blocks of control flow: small work has kernels to be measured, too.
constexpr double kLeastShare = 0.02;

double WorkOf(const IRModule& module) {
  double flops = 0;
  for (const auto& [name, function] : module.functions()) {
    PostOrder(function, [&](const Expr& expr) {
      const OpDef* op = CalledOp(expr);
      if (op == nullptr || !op->work) return;
      const Call& call = *expr->As<Call>();
      std::vector<Type> types;
      for (const Expr& arg : call.args) types.push_back(arg->type());
      flops += op->work(types, expr->type(), call.attributes).flops;
    });
  }
  return flops;
}

/// A region for a number of rows.
struct Part {
  size_t region;
  int64_t rows;
  Expr function;
  uint64_t hash;
  std::string name;
  UserConstraints constraints = {};
  double share = 0;
};

class RowsCompile {
 public:
  RowsCompile(OnnxModel model, const CompileOptions& options, const CompileHead& compile_head, const CompileBlock& compile_block,
              RowPrograms& rows)
      : model_(std::move(model)), options_(options), compile_head_(compile_head), compile_block_(compile_block), rows_(rows) {}

  Result<CompiledModel> Run() {
    COLLAGE_TRY_STATUS(MakeParts());
    Remainder::Parts remainder = model_.remainder->parts();
    CompiledModel head = COLLAGE_TRY(compile_head_(std::move(model_), OptionsOf(head_constraints_, head_share_)));
    CompileReport report = std::move(head.report);
    size_t done = 0;
    for (const Part& part : parts_) {
      options_.progress.Report({"rows", ++done, parts_.size(), part.name});
      std::optional<size_t> known = Find(part);
      CompileReport of_part;
      if (known) {
        of_part = rows_.programs[*known].report;
        of_part.candidates = {};  // were counted where it was compiled
      } else {
        Result<CompiledModel> compiled = compile_block_(part.function, OptionsOf(part.constraints, part.share));
        if (!compiled) return Fail(compiled.error().At("@" + part.name));
        of_part = compiled->report;
        known = rows_.programs.size();
        rows_.programs.push_back({part.hash, part.constraints, std::move(compiled->lowered), std::move(compiled->report)});
      }
      const double microseconds = of_part.end_to_end.empty() ? of_part.estimated_us : of_part.end_to_end.front().median_ms * 1e3;
      remainder.regions[part.region].programs.push_back({part.rows, *known, microseconds});
      AddPlan({part.name, std::move(of_part)}, report);
    }
    head.lowered.remainders = {COLLAGE_TRY(CreateRemainder(std::move(remainder)))};
    report.remainder = head.lowered.remainders[0]->Summary();
    report.budget_seconds = options_.budget_seconds;
    report.elapsed_seconds = options_.seconds_spent + Clock::SecondsSince(start_);
    head.metadata = WithReport(head.metadata, OfEveryCompile(report));
    head.report = std::move(report);
    return head;
  }

 private:
  Status MakeParts() {
    std::vector<double> work{WorkOf(model_.module)};
    for (size_t i = 0; i < model_.regions.size(); ++i) {
      for (const auto& [rows, function] : model_.regions[i].functions) {
        const IRModule module = COLLAGE_TRY(RunPasses(IRModule::FromMain(function), SafeGlobalPasses()));
        parts_.push_back({i, rows, module.MainExpr(), ContentHash(module), "rows_" + std::to_string(i) + "_by_" + std::to_string(rows)});
        work.push_back(model_.regions[i].work * static_cast<double>(rows));
      }
    }
    double all = 0;
    for (const double flops : work) all += flops;
    std::vector<double> shares;
    for (const double flops : work) shares.push_back(std::max(kLeastShare, all > 0 ? flops / all : 1));
    for (size_t i = 0; i < parts_.size(); ++i) parts_[i].share = shares[i + 1];
    Distribute(options_.constraints.pin, &UserConstraints::pin, [](const std::string& flag) { return flag.substr(0, flag.rfind('=')); });
    Distribute(options_.constraints.forbid, &UserConstraints::forbid, [](const std::string& flag) {
      const size_t colon = flag.find(':');
      return colon == std::string::npos ? std::string() : flag.substr(colon + 1);
    });
    head_share_ = shares[0];
    shares_left_ = head_share_;
    for (Part& part : parts_) {
      if (Find(part)) part.share = 0;
      shares_left_ += part.share;
    }
    return {};
  }

  /// Its number among the programs that are there.
  [[nodiscard]] std::optional<size_t> Find(const Part& part) const {
    for (size_t i = 0; i < rows_.programs.size(); ++i) {
      const RowPrograms::Program& program = rows_.programs[i];
      if (program.hash == part.hash && program.constraints.pin == part.constraints.pin &&
          program.constraints.forbid == part.constraints.forbid)
        return i;
    }
    return std::nullopt;
  }

  /// Flags that name a node of regions are for these, those that name none are for all, and the others are the head's.
  template <class Node>
  void Distribute(const std::vector<std::string>& flags, std::vector<std::string> UserConstraints::*list, const Node& node) {
    for (const std::string& flag : flags) {
      const std::string name = node(flag);
      bool is_taken = false;
      for (Part& part : parts_) {
        if (!name.empty() && !Has(part.function, name)) continue;
        (part.constraints.*list).push_back(flag);
        is_taken = !name.empty();
      }
      if (!is_taken) (head_constraints_.*list).push_back(flag);
    }
  }

  static bool Has(const Expr& function, const std::string& node) {
    const CallNames names(function);
    bool found = false;
    PostOrder(function, [&](const Expr& expr) { found = found || (CalledOp(expr) && names.IsCalled(expr, node)); });
    return found;
  }

  /// What a part leaves of its time is for those behind it.
  CompileOptions OptionsOf(const UserConstraints& constraints, double share) {
    CompileOptions options = options_;
    options.seconds_spent = 0;
    options.constraints = constraints;
    const double seconds = std::max(0.0, options_.budget_seconds - options_.seconds_spent - Clock::SecondsSince(start_));
    options.budget_seconds = seconds * share / shares_left_;
    options.race_seconds = options_.race_seconds * std::min(1.0, share);
    options.tuning_seconds = options_.tuning_seconds * std::min(1.0, share);
    shares_left_ -= share;
    return options;
  }

  OnnxModel model_;
  const CompileOptions& options_;
  const CompileHead& compile_head_;
  const CompileBlock& compile_block_;
  RowPrograms& rows_;
  Clock::time_point start_ = Clock::now();
  std::vector<Part> parts_;
  UserConstraints head_constraints_;
  double head_share_ = 0;
  double shares_left_ = 0;
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
