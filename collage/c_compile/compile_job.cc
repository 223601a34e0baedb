#include "collage/c_compile/compile_job.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "collage/c/objects.h"
#include "collage/c_compile/compiler_process.h"
#include "collage/support/clock.h"

namespace collage::c_abi {
namespace {

using Json = nlohmann::json;

// Within a stage. Often enough for a user who presses Ctrl-C, and rarely enough to cost nothing beside what is measured.
constexpr int kMillisecondsBetweenCalls = 50;

/// Passes on what the compile says, and the caller's wish to stop.
class Listener {
 public:
  Listener(collage_progress progress, void* user) : progress_(progress), user_(user) {}

  /// Of the compile's lines. One that is none of ours is what a library has printed.
  void Hear(const std::string& line) {
    Json message = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!message.is_object()) return;
    if (message.contains("stage")) {
      event_ = std::move(message);
    } else {
      end_ = std::move(message);
    }
  }

  /// What the caller wants, who hears of every stage, and not too often within one.
  int Tell() {
    if (!progress_) return COLLAGE_GO_ON;
    const std::string stage = event_.value("stage", "start");
    if (stage == stage_told_ && Clock::SecondsSince(told_) * 1000 < kMillisecondsBetweenCalls) return COLLAGE_GO_ON;
    told_ = Clock::now();
    stage_told_ = stage;
    const std::string detail = event_.value("detail", "");
    return progress_(user_, stage.c_str(), event_.value("done", uint64_t{0}), event_.value("total", uint64_t{0}), detail.c_str());
  }

  /// The last line: {"saved": path}, or {"error": message, "kind": of it}.
  [[nodiscard]] const std::optional<Json>& end() const { return end_; }

 private:
  collage_progress progress_;
  void* user_;
  Json event_ = Json::object();
  std::optional<Json> end_;
  Clock::time_point told_ = {};
  std::string stage_told_;
};

}  // namespace

collage_error* RunCompiler(const std::vector<std::string>& job, collage_progress progress, void* user, std::string* saved) {
  Listener listener(progress, user);
  Result<CompilerProcess> process = CompilerProcess::Start(CompilerProcess::Program(), job);
  if (!process) return MakeError(COLLAGE_ERROR_COMPILE, process.error().message);
  bool is_finishing = false;
  while (std::optional<std::vector<std::string>> lines = process->ReadLines(kMillisecondsBetweenCalls)) {
    // Without news the caller is still asked.
    if (lines->empty()) lines->emplace_back();
    for (const std::string& line : *lines) {
      listener.Hear(line);
      const int wish = listener.Tell();
      if (wish == COLLAGE_GIVE_UP) return MakeError(COLLAGE_ERROR_STOPPED, "stopped by the caller; nothing was saved");
      if (wish == COLLAGE_FINISH && !std::exchange(is_finishing, true)) process->Stop();
    }
  }
  const std::string how = process->Await();
  if (!listener.end()) return MakeError(COLLAGE_ERROR_COMPILE, "the compile ended without a result: " + how);
  const Json& end = *listener.end();
  if (end.contains("saved")) {
    if (saved) *saved = end.value("saved", "");
    return nullptr;
  }
  const std::string message = end.value("error", end.dump());
  return end.value("kind", "") == "argument" ? Refuse(message) : MakeError(COLLAGE_ERROR_COMPILE, message);
}

}  // namespace collage::c_abi
