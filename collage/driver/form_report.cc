#include "collage/driver/form_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace collage {
namespace {

std::string Places(size_t count, const std::string& kind = "") { return fmt::format("{} {}place{}", count, kind, count == 1 ? "" : "s"); }

}  // namespace

std::vector<std::string> DescribeStatedForms(const Placement& placement, const Plan& plan) {
  const std::vector<size_t> taken = FormsOf(placement, plan.result.choices);
  std::vector<std::string> sentences;
  for (const std::string& rule : placement.stated_forms) {
    const auto is_of_rule = [&](const auto& form) { return form.rule == rule; };
    const auto found = std::count_if(placement.formed.forms.begin(), placement.formed.forms.end(), is_of_rule);
    const auto in_plan = std::count_if(taken.begin(), taken.end(), [&](size_t form) { return is_of_rule(placement.formed.forms[form]); });
    std::map<std::string, std::vector<const RefusedForm*>> by_reason;
    for (const RefusedForm& refused : placement.formed.refused) {
      if (is_of_rule(refused)) by_reason[refused.reason].push_back(&refused);
    }
    const std::string name = "form " + rule + ": ";
    if (found > 0) sentences.push_back(name + fmt::format("fits at {}, {} of them in the plan", Places(found), in_plan));
    for (const auto& [reason, places] : by_reason) {
      const std::string first = placement.constraints->NameOf(places.front()->covered.Last());
      const std::string others = places.size() > 1 ? " and " + Places(places.size() - 1, "more ") : "";
      sentences.push_back(name + "refused at " + first + others + ": " + reason);
    }
    if (found == 0 && by_reason.empty()) sentences.push_back(name + "fits nowhere");
  }
  return sentences;
}

}  // namespace collage
