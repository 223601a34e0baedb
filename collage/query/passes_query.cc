#include "collage/query/classic_run.h"
#include "collage/query/queries.h"

namespace collage {

/// One pass gives its answer. Of several each is given three ways: in order in "passes", by its name, and field by field beside each
/// other, where what a later pass says of a field stands.
Result<Json> AnswerPasses(const QueryProgram& program, const JsonReader& query) {
  const std::vector<PassRequest> passes = COLLAGE_TRY(PassesFrom(query));
  ClassicRun run = COLLAGE_TRY(ClassicRun::Start(program, query, passes));
  Json fields = Json::object();
  Json list = Json::array();
  Json by_name = Json::object();
  for (const PassRequest& pass : passes) {
    const Json answer = COLLAGE_TRY(run.Run(pass));
    fields.update(answer);
    by_name[pass.name] = answer;
    Json entry = {{"pass", pass.name}};
    entry.update(answer);
    list.push_back(std::move(entry));
  }
  const bool is_one = !query.Has("passes") && passes.size() == 1;
  if (is_one) return fields;
  fields.update(by_name);
  fields["passes"] = std::move(list);
  return fields;
}

}  // namespace collage
