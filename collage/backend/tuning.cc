#include "collage/backend/tuning.h"

#include <algorithm>
#include <charconv>

namespace collage {
namespace {

constexpr char kMark = '@';

bool IsAllowed(const std::vector<TuningParameter>& parameters, const std::map<std::string, int>& values) {
  return std::all_of(values.begin(), values.end(), [&](const auto& value) {
    const auto parameter =
        std::find_if(parameters.begin(), parameters.end(), [&](const TuningParameter& one) { return one.name == value.first; });
    return parameter != parameters.end() &&
           std::find(parameter->values.begin(), parameter->values.end(), value.second) != parameter->values.end();
  });
}

}  // namespace

Variant TunedVariant(const Variant& base, const std::vector<TuningParameter>& parameters, const TuningChoice& choice) {
  Variant tuned = base;
  char separator = kMark;
  for (size_t p = 0; p < parameters.size() && p < choice.size(); ++p) {
    if (choice[p] == 0) continue;
    tuned.name += separator + parameters[p].name + "=" + std::to_string(parameters[p].values[choice[p]]);
    separator = ',';
  }
  return tuned;
}

std::string_view TemplateName(std::string_view variant_name) { return variant_name.substr(0, variant_name.find(kMark)); }

std::map<std::string, int> TunedValues(std::string_view variant_name) {
  std::map<std::string, int> values;
  const size_t mark = variant_name.find(kMark);
  if (mark == std::string_view::npos) return values;
  for (std::string_view rest = variant_name.substr(mark + 1); !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const size_t equals = part.find('=');
    int value = 0;
    if (equals == std::string_view::npos || equals == 0) continue;
    const char* end = part.data() + part.size();
    const auto [parsed, error] = std::from_chars(part.data() + equals + 1, end, value);
    if (error == std::errc() && parsed == end) values.emplace(part.substr(0, equals), value);
  }
  return values;
}

Result<Variant> FindVariant(const Backend& backend, const Function& function, const Device& device, const std::string& name) {
  std::string known;
  for (Variant& variant : backend.Variants(function, device)) {
    if (variant.name == name) return std::move(variant);
    if (variant.name == TemplateName(name)) {
      const std::map<std::string, int> values = TunedValues(name);
      if (values.empty() || !IsAllowed(backend.Tuning(function, device, variant), values))
        return Fail("backend '" + std::string(backend.Name()) + "' cannot tune its variant '" + variant.name + "' to '" + name + "'");
      variant.name = name;
      return std::move(variant);
    }
    known += (known.empty() ? "" : ", ") + variant.name;
  }
  return Fail("backend '" + std::string(backend.Name()) + "' has no variant '" + name + "' for it; it has: " + known);
}

}  // namespace collage
