#include "collage/provider/options.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "collage/runtime/parallel.h"
#include "collage/support/cache_folder.h"

namespace collage::provider {
namespace {

using Json = nlohmann::json;

Json Parsed(const std::string& text) { return Json::parse(text, nullptr, /*allow_exceptions=*/false); }

tl::unexpected<Error> Wrong(const std::string& text, const std::string& expected) {
  return Fail("is '" + text + "', expected " + expected);
}

Result<Json> Seconds(const std::string& text) {
  const Json value = Parsed(text);
  if (!value.is_number() || value <= 0) return Wrong(text, "a number of seconds above zero");
  return value;
}

Result<Json> Threads(const std::string& text) {
  const Json value = Parsed(text);
  if (!value.is_number_integer() || value < 1 || value > kMostThreads)
    return Wrong(text, "a whole number from 1 to " + std::to_string(kMostThreads));
  return value;
}

Result<Json> Flag(const std::string& text) {
  if (text == "1" || text == "true") return Json(true);
  if (text == "0" || text == "false") return Json(false);
  return Wrong(text, "'1' or '0'");
}

Result<Json> Text(const std::string& text) {
  if (text.empty()) return Wrong(text, "something");
  return Json(text);
}

/// Of JSON, or one string as it is.
Result<Json> Strings(const std::string& text) {
  if (!text.starts_with('[')) return Json::array({text});
  const Json value = Parsed(text);
  const bool is_list = value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& one) { return one.is_string(); });
  if (!is_list) return Wrong(text, "one string, or a list of them as JSON");
  return value;
}

bool IsShape(const Json& value) {
  const auto is_extent = [](const Json& extent) { return extent.is_number_integer() && extent >= 0; };
  return value.is_array() && std::all_of(value.begin(), value.end(), is_extent);
}

/// A list of profiles.
Result<Json> Shapes(const std::string& text) {
  Json value = Parsed(text);
  if (value.is_object()) value = Json::array({value});
  const auto is_profile = [](const Json& profile) {
    return profile.is_object() && std::all_of(profile.begin(), profile.end(), [](const Json& shape) { return IsShape(shape); });
  };
  const bool is_right = value.is_array() && !value.empty() && std::all_of(value.begin(), value.end(), is_profile);
  if (!is_right) return Wrong(text, R"(JSON as {"input": [1, 3, 224, 224]}, or a list of such objects)");
  return value;
}

struct Option {
  std::function<Result<Json>(const std::string&)> read;
  /// A program that was compiled with another value of it is another program.
  bool is_of_program;
};

/// Those of collage_compile, but for the file of prices, which is "prices" here: "cache" is the folder of programs.
const std::map<std::string, Option>& Options() {
  static const auto* options = new std::map<std::string, Option>{
      {"cache", {Text, false}},     {"prices", {Text, false}},       {"budget", {Seconds, false}},     {"threads", {Threads, true}},
      {"shapes", {Shapes, true}},   {"targets", {Strings, true}},    {"tune", {Seconds, false}},       {"cache_only", {Flag, false}},
      {"eager", {Flag, false}},     {"pin", {Strings, true}},        {"forbid", {Strings, true}},      {"search", {Text, true}},
      {"plugins", {Strings, true}}, {"processors", {Strings, true}}, {"choose_devices", {Flag, true}}, {"precision", {Text, true}},
  };
  return *options;
}

std::string KnownOptions() {
  std::string known;
  for (const auto& [name, unused] : Options()) known += (known.empty() ? "'" : ", '") + name + "'";
  return known;
}

}  // namespace

Result<ProviderOptions> ReadProviderOptions(const std::map<std::string, std::string>& options) {
  Json read = Json::object();
  for (const auto& [name, text] : options) {
    const auto option = Options().find(name);
    if (option == Options().end()) return Fail("unknown option '" + name + "'; there are " + KnownOptions());
    Result<Json> value = option->second.read(text);
    if (!value) return Fail("option '" + name + "' " + value.error().message);
    read[name] = std::move(*value);
  }
  ProviderOptions result;
  result.programs = read.contains("cache") ? std::filesystem::path(read["cache"].get<std::string>()) : CacheFolder() / "onnxruntime";
  if (read.contains("budget")) result.budget = read["budget"].get<double>();
  if (read.contains("shapes")) result.profiles = read["shapes"].get<std::vector<InputShapes>>();
  Json load = Json::object();
  Json compile = Json::object();
  for (const auto& [name, value] : read.items()) {
    if (Options().at(name).is_of_program) result.identity += name + "=" + value.dump() + ";";
    if (name == "threads" || name == "plugins") load[name] = value;
    if (name == "cache" || name == "budget") continue;
    compile[name == "prices" ? "cache" : name] = value;
  }
  result.compile = compile.dump();
  result.load = load.dump();
  return result;
}

}  // namespace collage::provider
