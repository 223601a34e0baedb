#pragma once

// What a compile and its worker process say to each other, over one stream socket: frames of a length (8 bytes, native order) and
// as many bytes of MessagePack.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "collage/measure/kernel_timer.h"

namespace collage {

/// A job as the worker needs it. Constants go as they are, but for large ones of float32 that look like weights: finite, with fractions,
/// and hardly two alike. Of these a sample goes, and the worker draws all elements from that, so that sign, size and spread are those of
/// the model: hundreds of megabytes would have to be copied for every kernel that is timed, and sharing memory with the worker would hold
/// all weights twice. What is no weight keeps its values: masks (of -inf, or of 0 and 1), indices and other whole numbers, fills. So does
/// every constant of a function that has tensors of 8-bit integers.
///
/// With kAll nothing is drawn: a function that carries a model holds constants of two kinds, the model's and what was computed of them,
/// and the two forms agree on those only.
enum class Weights { kSamples, kAll };
nlohmann::json ToMessage(const KernelJob& job, Weights weights = Weights::kSamples);

/// The stage of a worker that was asked to wait (`"waits": true`): its kernel is compiled, and the next message lets it be timed.
inline constexpr const char* kWaiting = "waiting";

/// Beside "invalid": the worker's device does nothing any more for that process, which is of no further use.
inline constexpr const char* kLostItsDevice = "lost its device";

/// Where a kernel is made, and where it runs.
struct JobPlace {
  std::string backend;
  Device device;
};
nlohmann::json ToMessage(const Backend& backend, const Device& device);
/// Of such a message, or of a job's. Errors on any other.
Result<JobPlace> PlaceFromMessage(const nlohmann::json& message);

struct ReceivedJob {
  Expr function;
  JobPlace place;
  std::string variant;
  MeasureOptions options;
  std::optional<InputRanges> inputs = {};
};
/// Errors on a message that ToMessage does not write.
Result<ReceivedJob> JobFromMessage(const nlohmann::json& message);

/// False when the other side is gone. Never raises SIGPIPE.
bool SendMessage(int socket, const nlohmann::json& message);
/// Nothing when the other side is gone, or sent something else than a frame.
std::optional<nlohmann::json> ReceiveMessage(int socket);

}  // namespace collage
