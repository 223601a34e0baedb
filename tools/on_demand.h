#pragma once

#include <filesystem>

#include "tools/inputs.h"
#include "tools/program.h"

namespace collage::tools {

/// A program that is ready for inputs of a run.
struct ReadyRun {
  Executable executable;
  std::shared_ptr<const Remainder> remainder;  ///< behind the profile of the inputs; null where nothing is
  GatheredInputs inputs;
};

/// Loads or compiles, and gathers the inputs. Where the options name the model of a compiled file and no profile takes the shapes of the
/// inputs, one is compiled for them, once: it is kept in a folder beside the file, <file>.profiles, and every later run takes it from
/// there. Processes that want the same one meanwhile wait for the first. Errors: as of LoadOrCompile and GatherInputs; and the model is not
/// that of the file.
Result<ReadyRun> PrepareRun(const ProgramOptions& program, const InputOptions& inputs);

}  // namespace collage::tools
