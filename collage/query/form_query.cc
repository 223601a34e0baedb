#include "collage/ir/print.h"
#include "collage/query/form_json.h"
#include "collage/query/queries.h"

namespace collage {

Result<Json> AnswerForms(const QueryProgram& program, const JsonReader& query) {
  COLLAGE_TRY_STATUS(query.OnlyFields({"forms", "function"}));
  const std::vector<FormRule> rules = COLLAGE_TRY(StatedFormsFrom(COLLAGE_TRY(query.At("forms"))));
  Json forms = Json::array();
  Json refused = Json::array();
  for (const NamedFunction* function : COLLAGE_TRY(program.FunctionsOf(query))) {
    const std::shared_ptr<const DataflowGraph> graph(std::shared_ptr<void>(), &function->graph());  // the program owns it
    const FormedGraph formed = COLLAGE_TRY(FindForms(graph, rules));
    for (size_t i = 0; i < formed.forms.size(); ++i) {
      const AppliedForms applied = COLLAGE_TRY(ApplyForms(formed, {i}));
      forms.push_back(function->Tagged({{"form", formed.forms[i].rule},
                                        {"covered", function->NamesOf(formed.forms[i].covered)},
                                        {"rewritten", Print(applied.function)}}));
    }
    for (const RefusedForm& one : formed.refused)
      refused.push_back(function->Tagged({{"form", one.rule}, {"covered", function->NamesOf(one.covered)}, {"reason", one.reason}}));
  }
  return Json{{"forms", std::move(forms)}, {"refused", std::move(refused)}};
}

}  // namespace collage
