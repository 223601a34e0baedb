#include "collage/ir/target.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

namespace collage {
namespace {

constexpr std::array<std::string_view, 4> kAttributes = {"compiler", "libs", "partition_rule", "host"};

bool AddsToATarget(const std::string& attribute) { return attribute == "compiler" || attribute == "partition_rule"; }

using AttributeList = std::vector<std::pair<std::string, std::string>>;

AttributeList Sorted(AttributeList attributes) {
  std::sort(attributes.begin(), attributes.end());
  return attributes;
}

AttributeList PlainAttributes(const Target& target) {
  AttributeList plain = target.attributes;
  std::erase_if(plain, [](const auto& attribute) { return AddsToATarget(attribute.first); });
  return Sorted(std::move(plain));
}

}  // namespace

Result<Target> Target::Parse(const std::string& text) {
  std::istringstream words(text);
  std::string word;
  const auto fail = [&](const std::string& what) { return Fail("target '" + text + "': " + what); };
  if (!(words >> word)) return fail("is empty, expected a device kind (cpu, cuda, opencl), then attributes such as -compiler=dnnl");
  Target target;
  const std::optional<DeviceKind> kind = DeviceKindFromName(word);
  if (!kind) return fail("unknown device kind '" + word + "', expected cpu, cuda or opencl");
  target.kind = *kind;
  while (words >> word) {
    const size_t equals = word.find('=');
    if (word[0] != '-' || equals == std::string::npos) return fail("cannot read '" + word + "', expected -name=value");
    const std::string name = word.substr(1, equals - 1);
    const std::string value = word.substr(equals + 1);
    if (std::find(kAttributes.begin(), kAttributes.end(), name) == kAttributes.end()) {
      return fail("unknown attribute '-" + name + "', expected -compiler, -libs, -partition_rule or -host");
    }
    if (value.empty()) return fail("attribute '-" + name + "' has no value");
    if (!target.Attribute(name).empty()) return fail("attribute '-" + name + "' is given twice");
    target.attributes.emplace_back(name, value);
  }
  return target;
}

std::string Target::ToString() const {
  std::string text(Name(kind));
  for (const auto& [name, value] : attributes) text += " -" + name + "=" + value;
  return text;
}

std::string Target::Attribute(const std::string& name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return value;
  }
  return {};
}

std::string Target::CompilerName() const {
  const std::string compiler = Attribute("compiler");
  return compiler.empty() ? "native" : compiler;
}

bool SameTarget(const Target& a, const Target& b) { return a.kind == b.kind && Sorted(a.attributes) == Sorted(b.attributes); }

bool Refines(const Target& a, const Target& b) {
  const auto adds = [](const auto& attribute) { return AddsToATarget(attribute.first); };
  return a.kind == b.kind && PlainAttributes(a) == PlainAttributes(b) && std::any_of(a.attributes.begin(), a.attributes.end(), adds) &&
         std::none_of(b.attributes.begin(), b.attributes.end(), adds);
}

}  // namespace collage
