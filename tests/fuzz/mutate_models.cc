// Valid models with changed structure: each is read, and maybe run on the reference executor, or refused in one line. Each block of seeds
// runs in a process of its own, so that a crash, a hang or a want of memory is one seed's, and the next goes on behind it.
//
// Usage: mutate_models FIRST LAST [--run] [--memory GIB] FOLDER...      seeds FIRST to LAST - 1; models are all small .onnx files there

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "collage/driver/model_checks.h"
#include "collage/ir/call_work.h"
#include "collage/onnx/reader.h"
#include "collage/op/interpreter.h"
#include "collage/op/reference_sample.h"
#include "collage/support/file.h"
#include "collage/support/memory.h"
#include "collage/transform/pass.h"
#include "tests/fuzz/model_mutator.h"

namespace collage {
namespace {

constexpr unsigned kMostSeconds = 10;
constexpr uintmax_t kLargestModel = 256 << 10;

struct Arguments {
  uint64_t first = 0;
  uint64_t last = 0;
  bool run = false;
  double memory = 0;  // bytes
  std::vector<std::string> models;
};

/// What the child says to the parent, in memory of both.
struct Shared {
  volatile uint64_t seed;
  uint64_t refused;
  uint64_t read;
  uint64_t ran;
  uint64_t wrong;  ///< messages that are no one line
};

bool IsOneLine(const std::string& message) { return !message.empty() && message.find('\n') == std::string::npos; }

/// Small enough for the reference executor to end in a second.
bool IsQuick(const IRModule& module) { return CheckMemory(module, 64 << 20).has_value() && FlopsOf(module) <= 1e8; }

void TakeMessage(uint64_t seed, const std::string& message, Shared& shared) {
  ++shared.refused;
  if (IsOneLine(message)) return;
  ++shared.wrong;
  std::printf("seed %lu: no one line: %s\n", seed, message.c_str());
}

void Try(uint64_t seed, const Arguments& arguments, Shared& shared) {
  std::mt19937_64 random(seed);
  const std::string& original = arguments.models[random() % arguments.models.size()];
  const Result<OnnxModel> model = ReadOnnx(MutatedModel(original, random));
  if (!model) return TakeMessage(seed, model.error().message, shared);
  const Result<IRModule> module = RunPasses(model->module, SafeGlobalPasses());
  if (!module) return TakeMessage(seed, module.error().message, shared);
  ++shared.read;
  if (const Status fits = CheckMemory(*module, static_cast<size_t>(arguments.memory)); !fits)
    return TakeMessage(seed, fits.error().message, shared);
  if (!arguments.run || !IsQuick(*module)) return;
  const Result<ReferenceSample> sample = SampleReference(module->MainExpr(), seed);
  if (!sample) return TakeMessage(seed, sample.error().message, shared);
  ++shared.ran;
}

/// Until the end, or until something ends it.
[[noreturn]] void Child(uint64_t from, const Arguments& arguments, Shared& shared) {
  const auto bytes = static_cast<rlim_t>(arguments.memory);
  const rlimit memory{bytes, bytes};
  ::setrlimit(RLIMIT_AS, &memory);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  for (uint64_t seed = from; seed < arguments.last; ++seed) {
    shared.seed = seed;
    ::alarm(kMostSeconds);
    Try(seed, arguments, shared);
  }
  std::fflush(stdout);
  ::_exit(0);
}

int Main(const Arguments& arguments) {
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& shared = *new (memory) Shared();
  uint64_t failures = 0;
  uint64_t next = arguments.first;
  while (next < arguments.last) {
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) Child(next, arguments, shared);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    const bool is_hang = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    std::printf("seed %lu: %s\n", shared.seed, is_hang ? "hangs" : WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "ends the process");
    ++failures;
    next = shared.seed + 1;
  }
  std::printf("seeds %lu to %lu: %lu read (%lu of them run), %lu refused, %lu not in one line, %lu crashed or hung\n", arguments.first,
              arguments.last, shared.read, shared.ran, shared.refused, shared.wrong, failures);
  return failures + shared.wrong > 0 || shared.read == 0 || shared.refused == 0 ? 1 : 0;
}

}  // namespace
}  // namespace collage

int main(int count, char** words) {
  collage::Arguments arguments;
  arguments.memory = static_cast<double>(collage::FreeMemory());
  std::vector<std::filesystem::path> paths;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (i == 1) {
      arguments.first = std::stoull(word);
    } else if (i == 2) {
      arguments.last = std::stoull(word);
    } else if (word == "--run") {
      arguments.run = true;
    } else if (word == "--memory" && i + 1 < count) {
      arguments.memory = std::stod(words[++i]) * 0x1p30;
    } else {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(word)) {
        if (entry.path().extension() == ".onnx" && entry.file_size() <= collage::kLargestModel) paths.push_back(entry.path());
      }
    }
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) arguments.models.push_back(collage::ReadFile(path).value());
  if (arguments.models.empty()) return std::fprintf(stderr, "no models\n"), 2;
  return collage::Main(arguments);
}
