#include "collage/query/query.h"

#include <algorithm>
#include <array>

#include "collage/query/queries.h"

namespace collage {
namespace {

using Answer = Result<Json> (*)(const QueryProgram&, const JsonReader&);

struct Kind {
  const char* field;
  Answer answer;
};

// A query is of the first kind whose field it has: some share fields with those before them.
constexpr std::array<Kind, 15> kKinds = {{{"plan-devices", AnswerPlanDevices},
                                          {"hoist-devices", AnswerHoistDevices},
                                          {"devices", AnswerDeviceSearch},
                                          {"passes", AnswerPasses},
                                          {"pass", AnswerPasses},
                                          {"assignment", AnswerPasses},
                                          {"regions", AnswerPasses},
                                          {"subgraph", AnswerSubGraph},
                                          {"targets", AnswerSearch},
                                          {"rules", AnswerSearch},
                                          {"price", AnswerPrice},
                                          {"price_in_turn", AnswerPrice},
                                          {"rule", AnswerRule},
                                          {"forms", AnswerForms},
                                          {"pattern", AnswerPattern}}};

// The library prints by recursion.
constexpr size_t kDeepestJson = 1000;

size_t Nesting(std::string_view text) {
  size_t depth = 0;
  size_t deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') ++i;
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if ((c == ']' || c == '}') && depth > 0) --depth;
  }
  return deepest;
}

Result<Json> AnswerCase(const JsonReader& entry) {
  const JsonReader query = COLLAGE_TRY(entry.At("query"));
  if (!query.IsObject()) return query.Expected("an object");
  if (query.Has("virtual-device")) return AnswerVirtualDevice(query);
  const QueryProgram program = COLLAGE_TRY(QueryProgram::Read(entry));
  std::string all = "virtual-device";
  for (const Kind& kind : kKinds) {
    if (query.Has(kind.field)) return kind.answer(program, query);
    all += ", " + std::string(kind.field);
  }
  return query.Wrong("asks nothing that is known, expected one of the fields " + all);
}

/// Places in errors begin with "case", without a file's name, so that they do not depend on where a case lies.
Json AnswerNamed(const Json& entry) {
  Json named = Json::object();
  const auto name = entry.is_object() ? entry.find("name") : entry.end();
  named["name"] = entry.is_object() && name != entry.end() ? *name : Json();
  Result<Json> answer = AnswerCase(JsonReader(entry, "case"));
  if (answer) {
    named["answer"] = std::move(*answer);
  } else {
    named["error"] = answer.error().message;
  }
  return named;
}

}  // namespace

Result<Json> AnswerQueries(std::string_view text) {
  if (Nesting(text) > kDeepestJson) return Fail("lists and objects are nested more than " + std::to_string(kDeepestJson) + " deep");
  Json document;
  // The library reports where a text stops being JSON by an exception, which must not leave this function.
  try {
    document = Json::parse(text);
  } catch (const Json::exception& error) {
    return Fail(std::string("not JSON: ") + error.what());
  }
  if (document.is_object()) document = Json::array({std::move(document)});
  if (!document.is_array()) return Fail("expected a case (an object) or a list of cases");
  Json answers = Json::array();
  for (const Json& entry : document) answers.push_back(AnswerNamed(entry));
  return answers;
}

}  // namespace collage
