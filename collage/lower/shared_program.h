#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "collage/lower/opened_program.h"

namespace collage {

/// A saved program for many threads: it lends each an executable of its own. All share the weights where kernels permit that
/// (Executable::Twin). Every method may be called from several threads at once.
class SharedProgram {
 public:
  /// Loads all kernels. Errors are those of LoadProgram.
  static Result<std::unique_ptr<SharedProgram>> Create(OpenedProgram opened, const BuildOptions& options, MachineCode machine_code);

  [[nodiscard]] const ProgramInfo& info() const { return info_; }

  /// An executable that nobody else has until it is given back: an idle one, or else a new one. Errors when that one cannot be made.
  Result<Executable*> Lend();
  /// It is kept for the next who asks.
  void TakeBack(Executable* executable);

 private:
  SharedProgram(ProgramInfo info, OpenedProgram opened, KernelLoader loader)
      : info_(std::move(info)), opened_(std::move(opened)), loader_(std::move(loader)) {}
  StoredProgram& Part(size_t block) { return opened_.stored.blocks.empty() ? opened_.stored : opened_.stored.blocks[block]; }

  ProgramInfo info_;
  OpenedProgram opened_;
  KernelLoader loader_;
  std::mutex mutex_;
  std::deque<Executable> executables_;
  std::vector<Executable*> idle_;
};

}  // namespace collage
