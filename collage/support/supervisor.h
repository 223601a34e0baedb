#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collage/support/result.h"

namespace collage {

/// What a process is doing, in memory that its supervisor shares and that outlives a crash.
class Activity {
 public:
  /// Errors when the system gives no memory for it.
  static Result<Activity> Create();
  /// That of the supervisor of this process, with which it dies from now on, and under whose first argument `ps` lists it; nothing where
  /// nobody supervises it. To be asked once.
  static std::optional<Activity> OfSupervisor();
  Activity(Activity&& other) noexcept;
  Activity& operator=(Activity&&) = delete;
  ~Activity();

  /// Forgets all that was said, for the next process.
  void Clear();
  /// Wall time since Create(), also in the supervised process.
  [[nodiscard]] double SecondsSinceCreated() const;

  /// Number of a line of text, from 1; equal lines have the same. Zero when there is no room left.
  uint32_t NumberOf(const std::string& line);
  /// What is being done now: zero for nothing that could be anybody's fault; otherwise the number of a line in the low 32 bits, and
  /// above it anything that changes whenever something begins, so that progress can be told from a hang.
  [[nodiscard]] std::atomic<uint64_t>& now() const;
  /// The line of what is being done now; empty for nothing.
  [[nodiscard]] std::string CurrentLine() const;

  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  struct Shared;
  Activity(int descriptor, Shared* shared) : descriptor_(descriptor), shared_(shared) {}
  static Result<Activity> Map(int descriptor);

  int descriptor_;
  Shared* shared_;
  std::unordered_map<std::string, uint32_t> numbers_;
};

/// How a supervised process ended.
struct SupervisedEnd {
  int wait_status = 0;       ///< as waitpid gives it (WaitStatusToString)
  bool was_hanging = false;  ///< it was killed because nothing changed for too long
  std::string line;          ///< what it was doing then; empty for nothing of note
  int requested = 0;         ///< the last signal by which the user asked to stop; 0: none
  [[nodiscard]] bool Crashed() const;
};

/// The signal by which a supervisor tells its process that the user asked to stop, by SIGINT or SIGTERM.
int StopSignal();

/// To be called by a supervised process when it can be told to stop, with what is to be done then (SIG_DFL: to end). One that came before
/// has waited until now.
void AcceptStopSignal(void (*handler)(int signal));

/// Runs a program with these arguments, the first of which is its name, and waits for its end. It gets the standard streams of this
/// process, and dies with it once it has asked for Activity::OfSupervisor(). While `activity` says the same for `most_seconds`, other than
/// nothing, it hangs and is killed. SIGINT and SIGTERM are passed on as StopSignal(); the process is to ignore them otherwise, because a
/// terminal sends them to both. Where `is_stop_requested`, it is told to stop from the start.
Result<SupervisedEnd> Supervise(const std::string& program, const std::vector<std::string>& arguments, const Activity& activity,
                                double most_seconds, const std::atomic<bool>* is_stop_requested = nullptr);

}  // namespace collage
