#include "collage/measure/worker_server.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "collage/backend/host_reference_team.h"
#include "collage/backend/tuning.h"
#include "collage/measure/verification.h"
#include "collage/measure/worker_messages.h"
#include "collage/support/clock.h"
#include "collage/support/memory.h"

namespace collage {
namespace {

using Json = nlohmann::json;
using FindBackendFunction = std::function<Result<const Backend*>(const std::string& name, const Device& device)>;

class Server {
 public:
  Server(int socket, const FindBackendFunction& find_backend) : socket_(socket), find_backend_(find_backend) {}

  Json Do(const Json& request) {
    const Result<Json> answer = Answer(request);
    return answer ? *answer : Json{{"invalid", answer.error().message}};
  }

  /// See KernelTimer::CheckDevice.
  [[nodiscard]] Status CheckDevice(const Json& request) {
    const auto [name, device] = COLLAGE_TRY(PlaceFromMessage(request.at("job")));
    if (device.kind == DeviceKind::kCpu) return {};
    Say("checking its device");
    return CheckDeviceHere(*COLLAGE_TRY(find_backend_(name, device)), device);
  }

 private:
  void Say(const char* stage) { SendMessage(socket_, {{"stage", stage}}); }

  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const ReceivedJob& job) const {
    const auto& [name, device] = job.place;
    const Backend* backend = COLLAGE_TRY(find_backend_(name, device));
    const Function& function = *job.function->As<Function>();
    const Variant variant = COLLAGE_TRY(FindVariant(*backend, function, device, job.variant));
    return backend->Compile(function, device, variant);
  }

  Result<Json> Answer(const Json& request) {
    if (request.at("action") == "check") {
      COLLAGE_TRY_STATUS(CheckDevice(request));
      return Json::object();
    }
    const ReceivedJob job = COLLAGE_TRY(JobFromMessage(request.at("job")));
    Say("compiling");
    const Clock::time_point start = Clock::now();
    const std::unique_ptr<Kernel> kernel = COLLAGE_TRY(Compile(job));
    const double compile_seconds = Clock::SecondsSince(start);
    TrimHeap();
    if (request.at("action") == "difference") {
      const auto say = [this](const char* stage) { Say(stage); };
      const HostReferenceTeam team(job.place.device.threads);
      const double difference = COLLAGE_TRY(DifferenceFromReference(*kernel, job.function, kKernelInputSeed, say));
      return Json{{"difference", difference}};
    }
    const std::vector<Tensor> inputs = COLLAGE_TRY(InputsOf(job.function, job.inputs, job.place.device));
    if (request.value("waits", false)) {
      Say(kWaiting);
      if (!ReceiveMessage(socket_)) return Fail("nobody waits for it any more");
    }
    Say("running");
    Measurement measurement = MeasureKernel(*kernel, inputs, job.place.device, job.options);
    if (!measurement.invalid_reason.empty()) return Fail(measurement.invalid_reason);
    return Json{
        {"samples", std::move(measurement.samples)}, {"anchors", std::move(measurement.anchors)}, {"compile_seconds", compile_seconds}};
  }

  int socket_;
  const FindBackendFunction& find_backend_;
};

/// Whatever a library throws past its backend is that kernel's failure, not the worker's end.
Json DoSafely(Server& server, const Json& request) {
  try {
    return server.Do(request);
  } catch (const std::exception& error) {
    return {{"invalid", std::string("threw an exception: ") + error.what()}};
  } catch (...) {
    return {{"invalid", "threw an exception"}};
  }
}

}  // namespace

void ServeKernelJobs(int socket, const FindBackendFunction& find_backend) {
  Server server(socket, find_backend);
  while (const std::optional<Json> request = ReceiveMessage(socket)) {
    Json answer = DoSafely(server, *request);
    // What comes next would find fault with kernels that are right.
    if (answer.contains("invalid") && !server.CheckDevice(*request)) answer[kLostItsDevice] = true;
    TrimHeap();
    if (!SendMessage(socket, answer)) return;
  }
}

}  // namespace collage
