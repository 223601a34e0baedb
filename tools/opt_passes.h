#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collage/device/configuration.h"
#include "collage/driver/compile.h"
#include "collage/driver/placement.h"
#include "tools/opt_data.h"

namespace collage::tools {

/// A program on its way through `collage opt`, and the data that stages of the classic flow have put beside it. Data lasts until a pass
/// changes the program.
class OptRun {
 public:
  /// `targets` as on the command line, in order of priority; empty: all that are present. Errors name a wrong one.
  static Result<OptRun> Create(IRModule module, std::vector<std::string> targets, CompileOptions compile);

  /// The names of all passes.
  [[nodiscard]] std::vector<std::string> PassNames() const;
  /// Where the pass collage writes its plan, and where the pass apply-plan reads one; empty: nowhere.
  void SetPlanFiles(std::string written, std::string read) {
    plan_written_ = std::move(written);
    plan_read_ = std::move(read);
  }
  /// What plan-devices and hoist-devices plan for; without it, one CPU.
  void SetDevices(DeviceConfiguration devices) { devices_ = std::move(devices); }
  /// Runs one. A stage of the classic flow whose predecessors have not run runs them first.
  Status Run(const std::string& pass);

  [[nodiscard]] const IRModule& module() const { return module_; }
  /// When the last pass gave data beside the program: that, as JSON beside `program`, the text of it.
  [[nodiscard]] bool GivesData() const { return gives_data_; }
  [[nodiscard]] nlohmann::ordered_json Data(const std::string& program) const;

 private:
  struct Entry {
    std::string name;
    std::function<Status()> run;
  };

  [[nodiscard]] std::vector<NamedRules> LibrariesAndCompilers() const;
  [[nodiscard]] std::vector<std::string> BackendNames() const;
  [[nodiscard]] std::vector<Entry> Passes();
  /// Takes the result of a pass that changes the program, verified.
  Status Accept(Result<IRModule> changed);
  Status MergeComposites();
  Status Annotate();
  Status Deconflict();
  Status Merge();
  Status Partition();
  Status PartitionFor(const std::string& backend, const BackendRules& rules);
  Status OptimizeFor(const std::string& backend, const BackendRules& rules);
  Status Place();
  Status ApplyPlan();

  IRModule module_;
  std::optional<DeviceConfiguration> devices_;
  std::vector<std::string> target_texts_;
  CompileOptions compile_;
  std::vector<PlacementTarget> targets_;  // those that take part
  std::vector<PlacementTarget> present_;  // all that are present
  std::vector<FunctionData> functions_;
  DataStage stage_ = DataStage::kSupported;
  bool gives_data_ = false;
  std::string plan_written_;
  std::string plan_read_;
};

}  // namespace collage::tools
