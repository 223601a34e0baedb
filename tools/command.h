#pragma once

#include <CLI/CLI.hpp>

namespace collage::tools {

/// Exit codes: 0 done; 1 the answer is no (a comparison that fails); 2 something the user can mend. Our own bugs abort.
inline constexpr int kDone = 0;
inline constexpr int kNo = 1;
inline constexpr int kUserError = 2;

// Each adds one sub-command; its callback leaves the exit code in `code`.
void AddBackendsCommand(CLI::App& app, int& code);
void AddCompileCommand(CLI::App& app, int& code);
void AddRunCommand(CLI::App& app, int& code);
void AddBenchCommand(CLI::App& app, int& code);
void AddCompareCommand(CLI::App& app, int& code);
void AddExplainCommand(CLI::App& app, int& code);
void AddConvertCommand(CLI::App& app, int& code);
void AddOptCommand(CLI::App& app, int& code);
void AddQueryCommand(CLI::App& app, int& code);
void AddCacheCommand(CLI::App& app, int& code);
void AddWorkerCommand(CLI::App& app, int& code);
/// `completion` and `man`, which print what the definitions of all commands say.
void AddTextCommands(CLI::App& app, int& code);

}  // namespace collage::tools
