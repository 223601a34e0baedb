#include "collage/query/passes_json.h"

#include <algorithm>
#include <array>

#include "collage/query/conditions_json.h"
#include "collage/query/pattern_json.h"

namespace collage {
namespace {

constexpr std::array<const char*, 7> kPasses = {"merge-composite", "annotate", "deconflict", "merge", "partition", "fuse", "inline"};

Status CheckName(const JsonReader& place, const std::string& name) {
  std::string all;
  for (const char* known : kPasses) {
    if (name == known) return {};
    all += (all.empty() ? "" : ", ") + std::string(known);
  }
  return place.Wrong("there is no pass \"" + name + "\", expected one of " + all);
}

Result<PassRequest> Request(const JsonReader& place, const std::string& name, const JsonReader& query,
                            const std::optional<JsonReader>& own) {
  COLLAGE_TRY_STATUS(CheckName(place, name));
  PassRequest request{name, {}};
  if (own && own->IsObject()) {
    COLLAGE_TRY_STATUS(own->OnlyFields({"pass", "name", "patterns", "pattern", "label", "check", "backends", "supports", "priority",
                                        "bind_constants", "level", "max_operators"}));
    request.places.push_back(*own);
  } else if (own && !own->IsNull() && !own->value().is_boolean()) {
    return own->Expected("an object: the parameters of the pass");
  }
  if (query.Has(name) && query.value()[name].is_object()) request.places.push_back(COLLAGE_TRY(query.At(name)));
  request.places.push_back(query);
  return request;
}

/// Every field of an object is a pass, with its parameters.
Status AddFields(const JsonReader& object, const JsonReader& query, std::vector<PassRequest>& passes) {
  for (const auto& [name, parameters] : COLLAGE_TRY(object.Fields())) {
    passes.push_back(COLLAGE_TRY(Request(object, name, query, parameters)));
  }
  return {};
}

Status AddItem(const JsonReader& item, const JsonReader& query, std::vector<PassRequest>& passes) {
  if (!item.IsObject() || item.Has("pass") || item.Has("name")) {
    const char* field = item.Has("pass") ? "pass" : "name";
    const JsonReader name = item.IsObject() ? COLLAGE_TRY(item.At(field)) : item;
    const std::optional<JsonReader> own = item.IsObject() ? std::optional(item) : std::nullopt;
    passes.push_back(COLLAGE_TRY(Request(name, COLLAGE_TRY(name.String()), query, own)));
    return {};
  }
  if (item.value().empty()) return item.Expected("a pass");
  return AddFields(item, query, passes);
}

Result<PatternRule> PatternRuleFrom(const JsonReader& reader) {
  const JsonReader field = COLLAGE_TRY(reader.At("label"));
  std::string label = COLLAGE_TRY(field.String());
  if (label.empty()) return field.Wrong("the label is empty, expected one such as \"dnnl.conv2d_relu\"");
  Pattern pattern = COLLAGE_TRY(PatternFrom(COLLAGE_TRY(reader.At("pattern"))));
  return PatternRule{std::move(label), std::move(pattern), COLLAGE_TRY(OptionalCheck(reader))};
}

}  // namespace

std::optional<JsonReader> PassRequest::Find(const std::string& field) const {
  for (const JsonReader& place : places) {
    if (place.Has(field) && !place.value()[field].is_null()) return *place.At(field);
  }
  return std::nullopt;
}

Result<std::vector<PassRequest>> PassesFrom(const JsonReader& query) {
  std::vector<PassRequest> passes;
  if (!query.Has("passes") && !query.Has("pass")) {
    if (query.Has("assignment")) passes.push_back({"merge", {query}});
    passes.push_back({"partition", {query}});
    return passes;
  }
  const JsonReader field = COLLAGE_TRY(query.At(query.Has("passes") ? "passes" : "pass"));
  for (const JsonReader& item : field.ItemsOrSelf()) COLLAGE_TRY_STATUS(AddItem(item, query, passes));
  if (passes.empty()) return field.Expected("at least one pass");
  return passes;
}

Result<std::vector<PatternRule>> PatternTableFrom(const PassRequest& pass) {
  std::vector<PatternRule> table;
  if (const std::optional<JsonReader> patterns = pass.Find("patterns")) {
    for (const JsonReader& item : COLLAGE_TRY(patterns->Items())) {
      COLLAGE_TRY_STATUS(item.OnlyFields({"label", "pattern", "check"}));
      table.push_back(COLLAGE_TRY(PatternRuleFrom(item)));
    }
    return table;
  }
  for (const JsonReader& place : pass.places) {
    if (!place.Has("pattern")) continue;
    table.push_back(COLLAGE_TRY(PatternRuleFrom(place)));
    return table;
  }
  return pass.places.front().Wrong("merge-composite needs the field \"patterns\", or \"pattern\" and \"label\"");
}

}  // namespace collage
