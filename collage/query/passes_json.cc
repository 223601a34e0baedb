#include "collage/query/passes_json.h"

#include <algorithm>
#include <array>

#include "collage/query/conditions_json.h"
#include "collage/query/pattern_json.h"

namespace collage {
namespace {

struct PassFields {
  std::string_view name;
  std::vector<std::string_view> fields;
  std::string_view needs;  ///< the pass that runs before it
};

const std::array<PassFields, 7>& Passes() {
  static const std::array<PassFields, 7> passes = {{{"merge-composite", {"patterns", "pattern", "label", "check"}, ""},
                                                    {"annotate", {"backends", "supports"}, ""},
                                                    {"deconflict", {"priority"}, "annotate"},
                                                    {"merge", {}, "deconflict"},
                                                    {"partition", {"bind_constants"}, "merge"},
                                                    {"fuse", {"level", "max_operators"}, ""},
                                                    {"inline", {"backends"}, ""}}};
  return passes;
}

const PassFields* Find(std::string_view name) {
  const auto at = std::find_if(Passes().begin(), Passes().end(), [&](const PassFields& pass) { return pass.name == name; });
  return at == Passes().end() ? nullptr : &*at;
}

Status CheckName(const JsonReader& place, const std::string& name) {
  if (Find(name)) return {};
  std::string all;
  for (const PassFields& known : Passes()) all += (all.empty() ? "" : ", ") + std::string(known.name);
  return place.Wrong("there is no pass \"" + name + "\", expected one of " + all);
}

/// The parameters of a pass and of those that it may have to run first, as far as `done` says that they did not run.
std::vector<std::string_view> FieldsOf(std::string_view name, const std::vector<PassRequest>& done) {
  std::vector<std::string_view> fields;
  for (const PassFields* pass = Find(name); pass; pass = Find(pass->needs)) {
    const bool ran = std::any_of(done.begin(), done.end(), [&](const PassRequest& request) { return request.name == pass->name; });
    if (ran && pass->name != name) break;
    fields.insert(fields.end(), pass->fields.begin(), pass->fields.end());
  }
  return fields;
}

Result<PassRequest> Request(const JsonReader& place, const std::string& name, const JsonReader& query, const std::optional<JsonReader>& own,
                            const std::vector<PassRequest>& before) {
  COLLAGE_TRY_STATUS(CheckName(place, name));
  PassRequest request{name, {}};
  const std::vector<std::string_view> allowed = FieldsOf(name, before);
  if (own && own->IsObject()) {
    std::vector<std::string_view> with_name = allowed;
    for (const char* field : {"pass", "name"}) {
      if (own->Has(field)) with_name.emplace_back(field);
    }
    COLLAGE_TRY_STATUS(own->OnlyFields(with_name));
    request.places.push_back(*own);
  } else if (own && !own->IsNull() && !own->value().is_boolean()) {
    return own->Expected("an object: the parameters of the pass");
  }
  if (query.Has(name)) {
    COLLAGE_TRY_STATUS(COLLAGE_TRY(query.At(name)).OnlyFields(allowed));
    request.places.push_back(COLLAGE_TRY(query.At(name)));
  }
  request.places.push_back(query);
  return request;
}

/// Every field of an object is a pass, with its parameters.
Status AddFields(const JsonReader& object, const JsonReader& query, std::vector<PassRequest>& passes) {
  for (const auto& [name, parameters] : COLLAGE_TRY(object.Fields())) {
    passes.push_back(COLLAGE_TRY(Request(object, name, query, parameters, passes)));
  }
  return {};
}

Status AddItem(const JsonReader& item, const JsonReader& query, std::vector<PassRequest>& passes) {
  if (!item.IsObject() || item.Has("pass") || item.Has("name")) {
    const char* field = item.Has("pass") ? "pass" : "name";
    const JsonReader name = item.IsObject() ? COLLAGE_TRY(item.At(field)) : item;
    const std::optional<JsonReader> own = item.IsObject() ? std::optional(item) : std::nullopt;
    passes.push_back(COLLAGE_TRY(Request(name, COLLAGE_TRY(name.String()), query, own, passes)));
    return {};
  }
  if (item.value().empty()) return item.Expected("a pass");
  return AddFields(item, query, passes);
}

/// A parameter that no pass of the query has is a mistake, as is one that stands where nobody looks for it.
Status CheckFields(const JsonReader& query, const std::vector<PassRequest>& passes) {
  std::vector<std::string_view> allowed = {"passes", "pass", "assignment", "regions"};
  if (query.Has("assignment") || query.Has("regions")) allowed.emplace_back("function");
  for (const PassRequest& pass : passes) {
    allowed.push_back(pass.name);
    for (const std::string_view field : FieldsOf(pass.name, {})) {
      if (std::find(allowed.begin(), allowed.end(), field) == allowed.end()) allowed.push_back(field);
    }
  }
  return query.OnlyFields(allowed);
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
    COLLAGE_TRY_STATUS(CheckFields(query, passes));
    return passes;
  }
  const JsonReader field = COLLAGE_TRY(query.At(query.Has("passes") ? "passes" : "pass"));
  for (const JsonReader& item : field.ItemsOrSelf()) COLLAGE_TRY_STATUS(AddItem(item, query, passes));
  if (passes.empty()) return field.Expected("at least one pass");
  COLLAGE_TRY_STATUS(CheckFields(query, passes));
  return passes;
}

std::vector<PassRequest> AnnotatePasses(const std::vector<PassRequest>& passes, const JsonReader& query) {
  std::vector<PassRequest> annotate;
  for (const PassRequest& pass : passes) {
    const bool begins_later = pass.name != "deconflict" && (query.Has("assignment") || query.Has("regions"));
    const bool needs_it = pass.name == "deconflict" || pass.name == "merge" || pass.name == "partition";
    if (pass.name == "annotate" || (annotate.empty() && needs_it && !begins_later)) annotate.push_back({"annotate", pass.places});
  }
  return annotate;
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
