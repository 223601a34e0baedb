#include "collage/lower/shared_program.h"

#include <utility>

namespace collage {
namespace {

/// Backends make one kernel at a time, whichever program it is for: libraries behind them keep tables of their own.
std::mutex& MakingKernels() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

Result<std::unique_ptr<SharedProgram>> SharedProgram::Create(OpenedProgram opened, const BuildOptions& options, MachineCode machine_code) {
  const std::lock_guard making(MakingKernels());
  ProgramInfo info = COLLAGE_TRY(opened.Info());
  KernelLoader loader(opened.container, COLLAGE_TRY(opened.Beside(options)), machine_code);
  LoweredModel model = COLLAGE_TRY(loader.LoadAll(opened));
  std::unique_ptr<SharedProgram> program(new SharedProgram(std::move(info), std::move(opened), std::move(loader)));
  program->idle_.push_back(&program->executables_.emplace_back(std::move(model.executable)));
  return program;
}

Result<Executable*> SharedProgram::Lend() {
  const Executable* original = nullptr;
  {
    const std::lock_guard lock(mutex_);
    original = &executables_.front();
    if (!idle_.empty()) {
      Executable* executable = idle_.back();
      idle_.pop_back();
      return executable;
    }
  }
  const std::lock_guard making(MakingKernels());
  Result<Executable> twin = original->Twin([&](size_t block, size_t call) { return loader_.Load(Part(block), call); });
  if (!twin) return Fail(twin.error().At(opened_.name));
  const std::lock_guard lock(mutex_);
  return &executables_.emplace_back(std::move(*twin));
}

void SharedProgram::TakeBack(Executable* executable) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(executable);
}

}  // namespace collage
