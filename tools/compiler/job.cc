#include "tools/compiler/job.h"

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "collage/query/form_json.h"
#include "collage/query/rule_json.h"
#include "collage/runtime/parallel.h"
#include "collage/search/searcher.h"
#include "tools/default_cache.h"
#include "tools/plugins.h"

namespace collage::tools {
namespace {

using Json = nlohmann::json;
using Reader = std::function<Status(const Json& value)>;

/// Into `target`, where the value is one that `is_right` takes.
template <class T, class IsRight>
Reader Into(T& target, IsRight is_right, std::string expected) {
  return [&target, is_right, expected = std::move(expected)](const Json& value) -> Status {
    if (!is_right(value)) return Fail("is " + value.dump() + ", expected " + expected);
    target = value.get<T>();
    return {};
  };
}

Reader Flag(bool& target) {
  return Into(
      target, [](const Json& value) { return value.is_boolean(); }, "true or false");
}

Reader Seconds(double& target) {
  return Into(
      target, [](const Json& value) { return value.is_number() && value > 0; }, "a number of seconds above zero");
}

Reader Strings(std::vector<std::string>& target) {
  const auto are_strings = [](const Json& value) {
    return value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& one) { return one.is_string(); });
  };
  return Into(target, are_strings, "a list of strings");
}

bool IsShape(const Json& value) {
  const auto is_extent = [](const Json& extent) { return extent.is_number_integer() && extent >= 0; };
  return value.is_array() && std::all_of(value.begin(), value.end(), is_extent);
}

/// Of one profile, or a list of them.
Reader Shapes(std::vector<InputShapes>& target) {
  return [&target](const Json& value) -> Status {
    const Json profiles = value.is_array() && !value.empty() ? value : Json::array({value});
    target.assign(profiles.size(), {});
    for (size_t i = 0; i < profiles.size(); ++i) {
      if (!profiles[i].is_object())
        return Fail("is " + value.dump() + ", expected {\"input\": [1, 3, 224, 224]}, or a list of such objects");
      for (const auto& [name, shape] : profiles[i].items()) {
        if (!IsShape(shape)) return Fail("of '" + name + "' is " + shape.dump() + ", expected whole numbers, none below zero");
        target[i][name] = shape.get<Shape>();
      }
    }
    return {};
  };
}

Reader Rules(StatedRules& target) {
  return [&target](const Json& value) -> Status {
    const nlohmann::ordered_json document = value;
    Result<StatedRules> rules = StatedRulesFrom(JsonReader(document, "partition_rules"));
    if (!rules) return Fail("is wrong: " + rules.error().message);
    target = std::move(*rules);
    return {};
  };
}

Reader Forms(std::vector<FormRule>& target) {
  return [&target](const Json& value) -> Status {
    const nlohmann::ordered_json document = value;
    Result<std::vector<FormRule>> forms = StatedFormsFrom(JsonReader(document, "forms"));
    if (!forms) return Fail("is wrong: " + forms.error().message);
    target = std::move(*forms);
    return {};
  };
}

/// "cpu:1=2-3".
Reader Cpus(std::vector<CpuStatement>& target) {
  return [&target](const Json& value) -> Status {
    std::vector<std::string> texts;
    COLLAGE_TRY_STATUS(Strings(texts)(value));
    for (const std::string& text : texts) {
      Result<CpuStatement> cpu = CpuStatement::ParseStated(text);
      if (!cpu) return Fail("is wrong: " + cpu.error().message);
      target.push_back(std::move(*cpu));
    }
    return {};
  };
}

Reader Searcher(std::string& target) {
  return [&target](const Json& value) -> Status {
    if (!value.is_string()) return Fail("is " + value.dump() + ", expected the name of a searcher");
    target = value.get<std::string>();
    const auto found = FindSearcher(target);
    return found ? Status{} : Fail("is wrong: " + found.error().message);
  };
}

Reader Permit(std::optional<Precision>& target) {
  return [&target](const Json& value) -> Status {
    if (!value.is_string()) return Fail("is " + value.dump() + ", expected a string such as \"bf16=0.02\"");
    Result<Precision> precision = Precision::Parse(value.get<std::string>());
    if (!precision) return Fail(precision.error().message);
    target = *precision;
    return {};
  };
}

}  // namespace

Result<CompileOptions> ReadJobOptions(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Fail("options are '" + text + "', expected a JSON object");
  CompileOptions options;
  std::string cache = DefaultCache();
  std::string constants;
  std::vector<std::string> plugins;
  const auto is_count = [](const Json& value) { return value.is_number_integer() && value >= 1 && value <= kMostThreads; };
  const std::map<std::string, Reader> readers = {
      {"targets", Strings(options.targets)},
      {"constants", Into(
                        constants, [](const Json& value) { return value.is_string(); }, "the path of a file")},
      {"shapes", Shapes(options.profiles)},
      {"budget", Seconds(options.budget_seconds)},
      {"threads", Into(options.threads, is_count, "a whole number from 1 to " + std::to_string(kMostThreads))},
      {"processors", Cpus(options.cpus)},
      {"choose_devices", Flag(options.choose_devices)},
      {"cache", Into(
                    cache, [](const Json& value) { return value.is_string(); }, "the path of a file")},
      {"precision", Permit(options.precision)},
      {"search", Searcher(options.search)},
      {"partition_rules", Rules(options.partition_rules)},
      {"forms", Forms(options.forms)},
      {"tune", Seconds(options.tuning_seconds)},
      {"cache_only", Flag(options.cache_only)},
      {"eager", Flag(options.eager)},
      {"pin", Strings(options.constraints.pin)},
      {"forbid", Strings(options.constraints.forbid)},
      {"plugins", Strings(plugins)},
  };
  for (const auto& [name, value] : json.items()) {
    const auto reader = readers.find(name);
    if (reader == readers.end()) {
      std::string known;
      for (const auto& [other, unused] : readers) known += (known.empty() ? "'" : ", '") + other + "'";
      return Fail("unknown option '" + name + "'; there are " + known);
    }
    const Status status = reader->second(value);
    if (!status) return Fail("option '" + name + "' " + status.error().message);
  }
  COLLAGE_TRY_STATUS(UsePlugins(plugins));
  options.cache = cache;
  options.constants = constants;
  return options;
}

}  // namespace collage::tools
