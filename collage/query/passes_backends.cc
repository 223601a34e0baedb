#include <algorithm>

#include "collage/query/conditions_json.h"
#include "collage/query/passes_json.h"

namespace collage {
namespace {

constexpr const char* kNative = "native";

bool IsOneSupport(const JsonReader& supports) { return supports.Has("operator") && supports.value()["operator"].is_string(); }

/// A list of {"backend", "operator", ..}.
bool IsByItem(const JsonReader& supports) {
  if (!supports.IsList() || supports.value().empty()) return false;
  const std::vector<JsonReader> items = supports.ItemsOrSelf();
  return std::all_of(items.begin(), items.end(),
                     [](const JsonReader& item) { return item.Has("backend") && item.value()["backend"].is_string(); });
}

/// The same as an object by name of the backend.
Json GroupedByBackend(const Json& list) {
  Json by_name = Json::object();
  for (Json item : list) {
    const std::string name = item["backend"];
    item.erase("backend");
    by_name[name].push_back(std::move(item));
  }
  return by_name;
}

/// "dnnl" of "dnnl.conv2d_relu"; empty without a dot.
std::string BackendOfLabel(const std::string& label) {
  const size_t dot = label.find('.');
  return dot == std::string::npos ? std::string() : label.substr(0, dot);
}

}  // namespace

void QueryBackends::Add(const std::string& name) {
  if (name == kNative || std::find(names_.begin(), names_.end(), name) != names_.end()) return;
  names_.push_back(name);
  rules_[name].style = BackendRules::Style::kPredicate;
}

Status QueryBackends::Support(const std::string& name, const JsonReader& supports) {
  CallPredicate predicate = COLLAGE_TRY(SupportsFrom(supports));
  // The native backend supports everything, whatever is said of it.
  if (name != kNative) rules_[name].supports = std::move(predicate);
  return {};
}

Status QueryBackends::ReadNames(const JsonReader& backends) {
  if (backends.IsObject()) {
    for (const auto& [name, value] : COLLAGE_TRY(backends.Fields())) {
      Add(name);
      if (value.Has("supports")) COLLAGE_TRY_STATUS(Support(name, COLLAGE_TRY(value.At("supports"))));
      if (value.IsList() || IsOneSupport(value)) COLLAGE_TRY_STATUS(Support(name, value));
    }
    return {};
  }
  for (const JsonReader& item : backends.ItemsOrSelf()) {
    if (item.IsObject()) COLLAGE_TRY_STATUS(item.OnlyFields({"name", "supports"}));
    const JsonReader field = item.IsObject() ? COLLAGE_TRY(item.At("name")) : item;
    const std::string name = COLLAGE_TRY(field.String());
    if (name.empty()) return field.Expected("the name of a backend");
    if (rules_.contains(name)) return field.Wrong("the backend \"" + name + "\" is given twice");
    Add(name);
    if (item.Has("supports")) COLLAGE_TRY_STATUS(Support(name, COLLAGE_TRY(item.At("supports"))));
  }
  return {};
}

Status QueryBackends::ReadSupports(const JsonReader& supports, bool names_are_stated) {
  if (IsByItem(supports)) {
    const Json by_name = GroupedByBackend(supports.value());
    return ReadSupports(JsonReader(by_name, supports.place()), names_are_stated);
  }
  if (!supports.IsObject() || IsOneSupport(supports)) {
    if (names_.size() != 1) return supports.Expected("an object: what each backend supports, by its name");
    return Support(names_[0], supports);
  }
  for (const auto& [name, list] : COLLAGE_TRY(supports.Fields())) {
    if (names_are_stated && name != kNative && !rules_.contains(name)) {
      return list.Wrong("\"backends\" does not name \"" + name + "\"");
    }
    Add(name);
    COLLAGE_TRY_STATUS(Support(name, list));
  }
  return {};
}

Result<QueryBackends> QueryBackends::Read(const PassRequest& annotate, const std::vector<std::string>& labels) {
  QueryBackends backends;
  const std::optional<JsonReader> names = annotate.Find("backends");
  if (names) COLLAGE_TRY_STATUS(backends.ReadNames(*names));
  if (const std::optional<JsonReader> supports = annotate.Find("supports")) {
    COLLAGE_TRY_STATUS(backends.ReadSupports(*supports, names.has_value()));
    backends.is_asked_ = true;
  }
  if (!names) {
    for (const std::string& label : labels) {
      if (!BackendOfLabel(label).empty()) backends.Add(BackendOfLabel(label));
    }
  }
  backends.is_asked_ = backends.is_asked_ || names || !backends.names_.empty();
  return backends;
}

Result<QueryBackends> QueryBackends::ReadAll(const std::vector<PassRequest>& passes, const JsonReader& query,
                                             const std::vector<std::string>& labels) {
  QueryBackends backends;
  for (const PassRequest& annotate : AnnotatePasses(passes, query)) {
    const QueryBackends asked = COLLAGE_TRY(Read(annotate, labels));
    for (const std::string& name : asked.names()) backends.Add(name);
  }
  if (query.Has("assignment")) {
    for (const auto& [name, list] : COLLAGE_TRY(COLLAGE_TRY(query.At("assignment")).Fields())) backends.Add(name);
  }
  if (query.Has("regions")) {
    const JsonReader field = COLLAGE_TRY(query.At("regions"));
    const Json list = RegionList(field);
    for (const JsonReader& region : COLLAGE_TRY(JsonReader(list, field.place()).Items())) {
      backends.Add(COLLAGE_TRY(COLLAGE_TRY(region.At("backend")).String()));
    }
  }
  return backends;
}

std::vector<NamedRules> QueryBackends::Rules() const {
  std::vector<NamedRules> rules;
  for (const std::string& name : names_) rules.push_back({name, &rules_.at(name)});
  return rules;
}

Result<size_t> QueryBackends::PositionOf(const std::string& name, const JsonReader& place) const {
  if (name == kNative) return native();
  const auto at = std::find(names_.begin(), names_.end(), name);
  if (at == names_.end()) return place.Wrong("there is no backend \"" + name + "\"");
  return static_cast<size_t>(at - names_.begin());
}

Result<PreferRegion> PriorityFrom(const PassRequest& pass, const QueryBackends& backends) {
  const std::optional<JsonReader> priority = pass.Find("priority");
  if (!priority) return PreferRegion();
  std::vector<std::string> names;
  for (const JsonReader& item : priority->ItemsOrSelf()) {
    names.push_back(COLLAGE_TRY(item.String()));
    COLLAGE_TRY(backends.PositionOf(names.back(), item));
  }
  return PreferInOrder(names, backends.Rules());
}

}  // namespace collage
