#include "tools/inputs.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "collage/runtime/device.h"
#include "collage/runtime/parallel.h"
#include "collage/support/hash.h"
#include "collage/tensor/extents.h"
#include "collage/tensor/narrow.h"
#include "collage/tensor/npy.h"
#include "tools/supervision.h"

namespace collage::tools {
namespace {

/// Where the name ends in "name=file.npy". Names and files may hold "=" themselves: the longest name that is an input counts, otherwise
/// the first one.
size_t EndOfName(const std::string& text, const std::vector<NamedType>& wanted) {
  for (size_t at = text.rfind('='); at != std::string::npos && at > 0; at = text.rfind('=', at - 1)) {
    const auto names = [&](const NamedType& input) { return text.compare(0, at, input.name) == 0; };
    if (std::any_of(wanted.begin(), wanted.end(), names)) return at;
  }
  return text.find('=');
}

Result<std::map<std::string, Tensor>> ReadGiven(const InputOptions& options, const std::vector<NamedType>& wanted) {
  std::map<std::string, Tensor> given;
  if (!options.archive.empty()) {
    for (NamedTensor& tensor : COLLAGE_TRY(ReadNpz(options.archive))) given.insert(std::move(tensor));
  }
  for (const std::string& text : options.files) {
    const size_t equals = EndOfName(text, wanted);
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      return Fail("--input " + text + ": expected name=file.npy");
    given.insert_or_assign(text.substr(0, equals), COLLAGE_TRY(ReadNpy(text.substr(equals + 1))));
  }
  return given;
}

std::string List(const std::vector<NamedType>& wanted) {
  std::string text;
  for (const NamedType& input : wanted) text += (text.empty() ? "'" : ", '") + input.name + "'";
  return text;
}

template <class Values>
Status CheckNames(const Values& given, const std::string& what, const std::vector<NamedType>& wanted) {
  for (const auto& entry : given) {
    const std::string& name = entry.first;
    if (std::none_of(wanted.begin(), wanted.end(), [&](const NamedType& input) { return input.name == name; }))
      return Fail(what + name + "': the model has no such input to be given; its inputs are " + List(wanted) +
                  "; an initializer among the model's inputs is one where --shape gives its shape");
  }
  return {};
}

/// Why a profile does not fit; empty when it does.
std::string Objection(const std::map<std::string, Tensor>& given, const InputShapes& asked, const ShapeProfile& profile) {
  for (const auto& [name, type] : profile.inputs) {
    const auto tensor = given.find(name);
    if (tensor != given.end() && !(tensor->second.type() == type))
      return "input '" + name + "': is " + ToString(tensor->second.type()) + ", expected " + ToString(type);
    const auto shape = asked.find(name);
    if (shape != asked.end() && shape->second != type.shape)
      return "--shape " + name + "=" + ExtentsText(shape->second) + ": input '" + name + "' is " + ToString(type);
  }
  return {};
}

Result<size_t> ChooseProfile(const std::map<std::string, Tensor>& given, const InputShapes& asked,
                             const std::vector<ShapeProfile>& profiles) {
  for (size_t i = 0; i < profiles.size(); ++i) {
    if (Objection(given, asked, profiles[i]).empty()) return i;
  }
  if (profiles.size() == 1) return Fail(Objection(given, asked, profiles[0]));
  std::string wanted;
  for (const auto& [name, tensor] : given)
    wanted += " " + name + "=" + ExtentsText(tensor.shape()) + " (" + std::string(Name(tensor.dtype())) + ")";
  for (const auto& [name, shape] : asked) wanted += " --shape " + name + "=" + ExtentsText(shape);
  return Fail("no profile of this program takes" + wanted + "; it has " + ListOf(profiles));
}

Result<Tensor> RandomInput(const InputOptions& options, const std::string& name, const TensorType& type) {
  if (!options.random_seed) {
    return Fail("input '" + name + "' (" + ToString(type) + ") is missing; give --input " + name +
                "=file.npy, --inputs file.npz or --random SEED");
  }
  if (IsNarrow(type.dtype)) return Fail("input '" + name + "': --random cannot fill " + ToString(type) + "; give a file");
  Tensor tensor(type);
  FillRandom(tensor, HashCombine(*options.random_seed, HashBytes(name)));
  return tensor;
}

}  // namespace

void AddInputOptions(CLI::App& command, InputOptions& options) {
  command.add_option("--input", options.files, "An input of the model: name=file.npy (may be given several times)");
  command.add_option("--inputs", options.archive, "All inputs of the model: file.npz, its arrays named as the inputs");
  command.add_option("--random", options.random_seed, "Fill the inputs that are not given with random values from this seed")
      ->check(NumberBetween(0, 1e15));
}

Result<GatheredInputs> GatherInputs(const InputOptions& options, const std::vector<ShapeProfile>& profiles, const InputShapes& asked) {
  std::map<std::string, Tensor> given = COLLAGE_TRY(ReadGiven(options, profiles[0].inputs));
  COLLAGE_TRY_STATUS(CheckNames(given, "input '", profiles[0].inputs));
  COLLAGE_TRY_STATUS(CheckNames(asked, "--shape: input '", profiles[0].inputs));
  GatheredInputs gathered;
  gathered.profile = COLLAGE_TRY(ChooseProfile(given, asked, profiles));
  for (const auto& [name, type] : profiles[gathered.profile].inputs) {
    const auto at = given.find(name);
    gathered.tensors.push_back(at != given.end() ? at->second : COLLAGE_TRY(RandomInput(options, name, type)));
  }
  return gathered;
}

Result<size_t> ProfileOf(const InputShapes& asked, const std::vector<ShapeProfile>& profiles) {
  COLLAGE_TRY_STATUS(CheckNames(asked, "--shape: input '", profiles[0].inputs));
  return ChooseProfile({}, asked, profiles);
}

Result<std::optional<InputShapes>> OtherShapes(const InputOptions& options, const std::vector<ShapeProfile>& profiles,
                                               const InputShapes& asked) {
  const std::vector<NamedType>& wanted = profiles[0].inputs;
  const std::map<std::string, Tensor> given = COLLAGE_TRY(ReadGiven(options, wanted));
  InputShapes shapes = asked;
  for (const auto& one : given) {
    const std::string& name = one.first;
    const Tensor& tensor = one.second;
    const auto same = [&](const NamedType& input) { return input.name == name && input.type.dtype == tensor.dtype(); };
    const bool is_contradicted = asked.contains(name) && asked.at(name) != tensor.shape();
    if (is_contradicted || std::none_of(wanted.begin(), wanted.end(), same)) return std::nullopt;
    shapes[name] = tensor.shape();
  }
  if (!CheckNames(asked, "", wanted)) return std::nullopt;
  return std::optional(std::move(shapes));
}

Result<std::pair<std::string, Shape>> ParseShapeOption(const std::string& text) {
  const auto malformed = [&] { return Fail("--shape " + text + ": expected name=1x3x224x224"); };
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) return malformed();
  Shape shape;
  const char* at = text.data() + equals + 1;
  const char* end = text.data() + text.size();
  while (at < end) {
    int64_t extent = 0;
    const auto [next, error] = std::from_chars(at, end, extent);
    if (error != std::errc() || *at == '-' || (next != end && (*next != 'x' || next + 1 == end))) return malformed();
    shape.push_back(extent);
    at = next == end ? end : next + 1;
  }
  return std::pair{text.substr(0, equals), std::move(shape)};
}

Result<std::vector<InputShapes>> ParseProfiles(const std::vector<std::string>& shapes) {
  std::map<std::string, std::vector<Shape>> of_input;
  size_t count = 1;
  for (const std::string& text : shapes) {
    auto [name, shape] = COLLAGE_TRY(ParseShapeOption(text));
    of_input[name].push_back(std::move(shape));
    count = std::max(count, of_input[name].size());
  }
  std::vector<InputShapes> profiles(count);
  for (const auto& [name, given] : of_input) {
    if (given.size() != 1 && given.size() != count) {
      return Fail("--shape: '" + name + "' is given " + std::to_string(given.size()) + " shapes and another input " +
                  std::to_string(count) + "; give each input one shape for all profiles, or one for each");
    }
    for (size_t i = 0; i < count; ++i) profiles[i][name] = given[given.size() == 1 ? 0 : i];
  }
  return profiles;
}

Result<double> ParseDuration(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, value);
  const std::string unit(next, end);
  const double seconds = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : unit == "d" ? 86400 : 0;
  if (error != std::errc() || seconds == 0 || !(value > 0)) return Fail("'" + text + "' is no duration; expected 90s, 5m, 1h or 30d");
  return value * seconds;
}

CLI::Validator NumberBetween(double low, double high) {
  const auto check = [low, high](const std::string& text) {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && next == end && value >= low && value <= high) return std::string();
    return fmt::format("'{}' is no number from {} to {}", text, low, high);
  };
  return CLI::Validator(check, fmt::format("{} to {}", low, high));
}

CLI::Validator ThreadCount() {
  const CLI::Validator is_count = NumberBetween(1, kMostThreads);
  const auto check = [is_count](const std::string& text) {
    std::string wrong = is_count(text);
    const int processors = AvailableThreads();
    // A supervised process is told what its parent has been told.
    if (wrong.empty() && std::stoi(text) > processors && SupervisedActivity() == nullptr)
      spdlog::warn("--threads {}: this process may use {}; threads that wait for a processor keep the others waiting", text,
                   processors == 1 ? "1 processor" : std::to_string(processors) + " processors");
    return wrong;
  };
  return CLI::Validator(check, fmt::format("{} to {}", 1, kMostThreads));
}

}  // namespace collage::tools
