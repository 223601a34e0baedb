#include "collage/measure/worker_messages.h"

#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/ir/visit.h"
#include "collage/op/table.h"
#include "collage/support/hash.h"
#include "collage/support/mappings.h"
#include "collage/tensor/strings.h"

namespace collage {
namespace {

using Json = nlohmann::json;

constexpr int64_t kSmallConstant = 16384;  // elements
// Of weights' elements hardly two are alike; of a sample of a mask, a table of steps or a fill, hardly two are not.
constexpr size_t kFewValues = kSmallConstant / 16;

/// Elements at even distances, from the first to the last.
std::vector<float> SampleOf(const Tensor& constant) {
  std::vector<float> sample(kSmallConstant);
  const auto last = static_cast<double>(constant.ElementCount() - 1);
  for (int64_t i = 0; i < kSmallConstant; ++i)
    sample[static_cast<size_t>(i)] = constant.Data<float>()[static_cast<int64_t>(last * static_cast<double>(i) / (kSmallConstant - 1))];
  return sample;
}

/// `sample` is of its elements.
bool LooksLikeWeights(const Tensor& constant, std::vector<float> sample) {
  constexpr uint32_t kExponent = 0x7f800000;  // all ones in NaN and infinities
  bool is_finite = true;
  for (const float value : constant.Values<float>()) is_finite &= (std::bit_cast<uint32_t>(value) & kExponent) != kExponent;
  if (!is_finite) return false;
  if (std::all_of(sample.begin(), sample.end(), [](float value) { return value == std::floor(value); })) return false;
  std::sort(sample.begin(), sample.end());
  return std::unique(sample.begin(), sample.end()) - sample.begin() > static_cast<std::ptrdiff_t>(kFewValues);
}

/// All elements are the same, so that any sample is exact.
bool IsFill(const Tensor& constant) {
  const std::byte* bytes = constant.Bytes();
  return std::memcmp(bytes, bytes + sizeof(float), constant.ByteCount() - sizeof(float)) == 0;
}

Json Bytes(const void* data, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  return Json::binary(std::vector<uint8_t>(bytes, bytes + size));
}

/// Kernels of integers are made of weights that are multiples of steps, which a sample of them is in no order that a channel has.
bool HasBytes(const Expr& function) {
  bool found = false;
  PostOrder(function, [&](const Expr& expr) {
    const TensorType* type = expr->type().AsTensor();
    found |= type && (type->dtype == DType::kInt8 || type->dtype == DType::kUInt8);
  });
  return found;
}

Json ConstantMessage(const Tensor& constant, Weights weights) {
  if (constant.dtype() == DType::kString) {
    const std::string written = WriteStrings(constant);
    return {{"strings", Bytes(written.data(), written.size())}};
  }
  if (weights == Weights::kSamples && constant.dtype() == DType::kFloat32 && constant.ElementCount() > kSmallConstant) {
    const std::vector<float> sample = SampleOf(constant);
    if (IsFill(constant) || LooksLikeWeights(constant, sample)) return {{"sample", Bytes(sample.data(), sample.size() * sizeof(float))}};
  }
  return {{"bytes", Bytes(constant.Bytes(), constant.ByteCount())}};
}

/// Every element is one of the sample, at random.
Result<Tensor> DrawFrom(const std::vector<uint8_t>& sample, uint64_t seed, const TensorType& type) {
  const size_t count = sample.size() / sizeof(float);
  if (count == 0 || type.dtype != DType::kFloat32) return Fail("a sample of nothing, or of a type that is never sampled");
  std::vector<float> values(count);
  std::memcpy(values.data(), sample.data(), count * sizeof(float));
  Tensor tensor(type);
  auto* data = tensor.MutableData<float>();
  for (int64_t i = 0; i < tensor.ElementCount(); ++i) data[i] = values[HashCombine(seed, static_cast<uint64_t>(i)) % count];
  return tensor;
}

Result<Tensor> ConstantFromMessage(const Json& message, size_t index, const TensorType& type) {
  const std::string name = "constant " + std::to_string(index);
  if (index >= message.size()) return Fail(name + " was not sent");
  const Json& constant = message[index];
  if (constant.contains("sample")) return DrawFrom(constant.at("sample").get_binary(), index + 1, type);
  if (type.dtype == DType::kString) {
    const auto& written = constant.at("strings").get_binary();
    Result<Tensor> strings = ReadStrings(type.shape, {reinterpret_cast<const char*>(written.data()), written.size()});
    return strings ? std::move(strings) : Fail(name + ": " + strings.error().message);
  }
  const auto& bytes = constant.at("bytes").get_binary();
  Tensor tensor(type);
  if (bytes.size() != tensor.ByteCount()) return Fail(name + " has another size than its type");
  std::memcpy(tensor.MutableBytes(), bytes.data(), bytes.size());
  return tensor;
}

Json OptionsMessage(const MeasureOptions& options) {
  return {{"warm_up", options.warm_up},
          {"most_samples", options.most_samples},
          {"budget_seconds", options.budget_seconds},
          {"most_seconds", options.most_seconds},
          {"relative_width", options.relative_width},
          {"eviction_bytes", options.eviction_bytes},
          {"patience_seconds", options.patience_seconds}};
}

MeasureOptions OptionsFromMessage(const Json& message) {
  MeasureOptions options;
  message.at("warm_up").get_to(options.warm_up);
  message.at("most_samples").get_to(options.most_samples);
  message.at("budget_seconds").get_to(options.budget_seconds);
  message.at("most_seconds").get_to(options.most_seconds);
  message.at("relative_width").get_to(options.relative_width);
  message.at("eviction_bytes").get_to(options.eviction_bytes);
  message.at("patience_seconds").get_to(options.patience_seconds);
  return options;
}

Json RangeMessage(const ValueRange& range) { return {range.low, range.high}; }
ValueRange RangeFromMessage(const Json& message) { return {message.at(0), message.at(1)}; }

bool SendBytes(int socket, const void* data, size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = ::send(socket, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

bool ReceiveBytes(int socket, void* data, size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t received = ::recv(socket, at, size, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    at += received;
    size -= static_cast<size_t>(received);
  }
  return true;
}

}  // namespace

Json ToMessage(const KernelJob& job, Weights weights) {
  const PrintedText printed = PrintExpr(job.function);
  Json constants = Json::array();
  if (HasBytes(job.function)) weights = Weights::kAll;
  for (const Tensor& constant : printed.constants) {
    constants.push_back(ConstantMessage(constant, weights));
    GiveBack(constant.Bytes(), constant.ByteCount());
  }
  Json message = ToMessage(*job.backend, job.device);
  message.update({{"text", printed.text},
                  {"constants", std::move(constants)},
                  {"variant", job.variant.name},
                  {"options", OptionsMessage(job.options)}});
  if (job.inputs) message["inputs"] = {RangeMessage(job.inputs->numbers), RangeMessage(job.inputs->integers)};
  return message;
}

Json ToMessage(const Backend& backend, const Device& device) {
  return {
      {"backend", backend.Name()}, {"device_kind", static_cast<int>(device.kind)}, {"device_id", device.id}, {"threads", device.threads}};
}

Result<JobPlace> PlaceFromMessage(const Json& message) {
  try {
    const Device device{static_cast<DeviceKind>(message.at("device_kind").get<int>()), message.at("device_id"), message.at("threads")};
    return JobPlace{message.at("backend"), device};
  } catch (const Json::exception& error) {
    return Fail(std::string("malformed message: ") + error.what());
  }
}

Result<ReceivedJob> JobFromMessage(const Json& message) {
  try {
    ReceivedJob job;
    ParseOptions parse;
    parse.missing_constant = [&](size_t index, const TensorType& type) {
      return ConstantFromMessage(message.at("constants"), index, type);
    };
    job.function = COLLAGE_TRY(ParseExpr(message.at("text").get<std::string>(), Operators(), parse)).expr;
    if (!job.function->As<Function>()) return Fail("the text is no function");
    job.place = COLLAGE_TRY(PlaceFromMessage(message));
    message.at("variant").get_to(job.variant);
    job.options = OptionsFromMessage(message.at("options"));
    if (message.contains("inputs")) {
      const Json& inputs = message.at("inputs");
      job.inputs = InputRanges{RangeFromMessage(inputs.at(0)), RangeFromMessage(inputs.at(1))};
    }
    return job;
  } catch (const Json::exception& error) {
    return Fail(std::string("malformed message: ") + error.what());
  }
}

bool SendMessage(int socket, const Json& message) {
  const std::vector<uint8_t> bytes = Json::to_msgpack(message);
  const uint64_t size = bytes.size();
  return SendBytes(socket, &size, sizeof(size)) && SendBytes(socket, bytes.data(), bytes.size());
}

std::optional<Json> ReceiveMessage(int socket) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 32;
  uint64_t size = 0;
  if (!ReceiveBytes(socket, &size, sizeof(size)) || size > kMostBytes) return std::nullopt;
  std::vector<uint8_t> bytes(size);
  if (!ReceiveBytes(socket, bytes.data(), bytes.size())) return std::nullopt;
  Json message = Json::from_msgpack(bytes, /*strict=*/true, /*allow_exceptions=*/false);
  if (message.is_discarded()) return std::nullopt;
  return message;
}

}  // namespace collage
