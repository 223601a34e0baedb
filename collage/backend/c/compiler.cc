#include "collage/backend/c/compiler.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

#include "collage/support/clock.h"
#include "collage/support/process.h"

namespace collage::c_source {
namespace {

/// A file that has no name and is gone with its descriptors.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view content = {}) : descriptor_(::memfd_create("collage", MFD_CLOEXEC)) {
    while (!content.empty()) {
      const ssize_t count = ::write(descriptor_, content.data(), content.size());
      if (count <= 0) break;  // no memory: the compiler will say that it ends too early
      content.remove_prefix(static_cast<size_t>(count));
    }
    ::lseek(descriptor_, 0, SEEK_SET);
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] std::string Content() const {
    const off_t size = ::lseek(descriptor_, 0, SEEK_END);
    std::string content(static_cast<size_t>(std::max<off_t>(size, 0)), '\0');
    const ssize_t count = ::pread(descriptor_, content.data(), content.size(), 0);
    content.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    return content;
  }

 private:
  int descriptor_;
};

/// Where the program finds the file that it is to write.
constexpr int kResult = 3;  // the first after the standard ones
constexpr const char* kResultPath = "/proc/self/fd/3";

struct Ended {
  bool in_time = true;
  int status = 0;
  std::string messages;
  std::string result;
};

/// Waits for the end of a process of a group of its own; false, and it is ended, when that takes too long.
bool Await(pid_t process, double most_seconds, int& status) {
  const auto ends_within = [&](double seconds) {
    // A descriptor that becomes readable when the process ends.
    const int handle = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
    const Clock::time_point start = Clock::now();
    double left = seconds;
    int ready = 0;
    do {
      pollfd poll{handle, POLLIN, 0};
      ready = ::poll(&poll, 1, static_cast<int>(left * 1000));
      left = seconds - Clock::SecondsSince(start);
    } while (ready < 0 && errno == EINTR && left > 0);
    ::close(handle);
    return ready > 0;
  };
  const bool in_time = ends_within(most_seconds);
  if (!in_time) {
    constexpr double kSecondsToCleanUp = 2;  // a compiler removes its temporary files
    ::kill(-process, SIGTERM);
    if (!ends_within(kSecondsToCleanUp)) ::kill(-process, SIGKILL);
  }
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return in_time;
}

Result<Ended> RunProgram(const std::filesystem::path& program, const std::vector<std::string>& arguments, const std::string& input,
                         double most_seconds) {
  const MemoryFile in(input);
  const MemoryFile messages;
  const MemoryFile result;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in.descriptor(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, messages.descriptor(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, messages.descriptor(), STDERR_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, result.descriptor(), kResult);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const Result<pid_t> process = Spawn(program, arguments, actions, &attributes);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (!process) return Fail(process.error());
  Ended ended;
  ended.in_time = Await(*process, most_seconds, ended.status);
  ended.messages = messages.Content();
  ended.result = result.Content();
  return ended;
}

/// "<stdin>:12:5: error: unknown type name 'flaot'": the first error, and the line of the source that it is about.
std::string FirstError(const std::string& messages, const std::string& source) {
  std::istringstream lines(messages);
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    if (first.empty() || line.find("error") != std::string::npos) first = line;
    if (line.find("error") != std::string::npos) break;
  }
  const size_t place = first.find("<stdin>:");
  int number = 0;
  if (place != std::string::npos) {
    const char* digits = first.data() + place + std::strlen("<stdin>:");
    std::from_chars(digits, first.data() + first.size(), number);
  }
  std::istringstream text(source);
  std::string line;
  for (int i = 0; i < number && std::getline(text, line); ++i) {
  }
  constexpr size_t kMost = 300;  // characters: some lines of a terminal
  return first.substr(0, kMost) + (number > 0 ? ", in the line \"" + line.substr(0, kMost) + "\"" : "");
}

}  // namespace

Result<std::filesystem::path> FindCompiler() {
  const char* chosen = std::getenv("COLLAGE_CC");
  const std::string name = chosen && *chosen ? chosen : "cc";
  const auto is_program = [](const std::filesystem::path& path) {
    return std::filesystem::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) {
    if (is_program(name)) return std::filesystem::absolute(name);
    return Fail("there is no program " + name + ", which COLLAGE_CC names");
  }
  const char* places = std::getenv("PATH");
  std::istringstream path(places ? places : "");
  for (std::string place; std::getline(path, place, ':');) {
    if (is_program(std::filesystem::path(place) / name)) return std::filesystem::path(place) / name;
  }
  return Fail("there is no C compiler '" + name + "' on PATH; install one such as gcc, or name one by COLLAGE_CC");
}

Result<std::string> VersionOf(const std::filesystem::path& compiler) {
  constexpr double kMostSeconds = 10;  // of what prints one line, from a slow disk too
  const Ended ended = COLLAGE_TRY(RunProgram(compiler, {"--version"}, "", kMostSeconds));
  const std::string line = ended.messages.substr(0, ended.messages.find('\n'));
  if (!ended.in_time || ended.status != 0 || line.empty()) return Fail(compiler.string() + " does not tell its version");
  return line;
}

Result<std::string> CompileSource(const std::filesystem::path& compiler, const std::string& source, double most_seconds) {
  // What would make the code depend on more than the functions that it calls, and on errno and traps that nobody asks for, is left out.
  // -pipe keeps the assembler's input out of files too.
  const std::vector<std::string> arguments = {"-std=gnu11",
                                              "-O3",
                                              "-march=native",
                                              "-fPIC",
                                              "-fno-math-errno",
                                              "-fno-trapping-math",
                                              "-fno-asynchronous-unwind-tables",
                                              "-fno-stack-protector",
                                              "-w",
                                              "-pipe",
                                              "-x",
                                              "c",
                                              "-c",
                                              "-",
                                              "-o",
                                              kResultPath};
  const Ended ended = COLLAGE_TRY(RunProgram(compiler, arguments, source, most_seconds));
  const std::string name = compiler.string();
  if (!ended.in_time) return Fail(name + " took longer than " + std::to_string(static_cast<int>(most_seconds)) + " s, and was ended");
  if (ended.status != 0) return Fail(name + ": " + WaitStatusToString(ended.status) + ": " + FirstError(ended.messages, source));
  if (ended.result.empty()) return Fail(name + " has written nothing");
  return ended.result;
}

}  // namespace collage::c_source
