#include "collage/driver/part_options.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "collage/ir/call_names.h"
#include "collage/ir/visit.h"

namespace collage {
namespace {

// Of the budget. A part whose work is small, or whose work is not known, has kernels to be measured, too.
constexpr double kLeastShare = 0.02;

bool Has(const CompiledPart& part, const std::string& node) {
  bool found = false;
  for (const Expr& function : part.functions) {
    const CallNames names(function);
    PostOrder(function, [&](const Expr& expr) { found = found || (CalledOp(expr) && names.IsCalled(expr, node)); });
  }
  return found;
}

std::string NodeOfPin(const std::string& flag) { return flag.substr(0, flag.rfind('=')); }

/// Empty where it is for all nodes.
std::string NodeOfForbid(const std::string& flag) {
  const size_t colon = flag.find(':');
  return colon == std::string::npos ? std::string() : flag.substr(colon + 1);
}

template <class NodeOf>
void Distribute(const std::vector<std::string>& flags, std::vector<std::string> UserConstraints::*list, const NodeOf& node_of,
                const std::vector<CompiledPart>& parts, size_t owner_of_unknown, std::vector<UserConstraints>& constraints) {
  for (const std::string& flag : flags) {
    const std::string node = node_of(flag);
    bool is_known = false;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!node.empty() && !Has(parts[i], node)) continue;
      (constraints[i].*list).push_back(flag);
      is_known = true;
    }
    if (!is_known) (constraints[owner_of_unknown].*list).push_back(flag);
  }
}

}  // namespace

PartOptions::PartOptions(const CompileOptions& options, const std::vector<CompiledPart>& parts, size_t owner_of_unknown)
    : options_(options), constraints_(parts.size()) {
  const auto add = [](double sum, const CompiledPart& part) { return sum + part.work; };
  const double all = std::accumulate(parts.begin(), parts.end(), 0.0, add);
  for (const CompiledPart& part : parts) shares_.push_back(std::max(kLeastShare, all > 0 ? part.work / all : 1));
  shares_left_ = std::accumulate(shares_.begin(), shares_.end(), 0.0);
  Distribute(options.constraints.pin, &UserConstraints::pin, NodeOfPin, parts, owner_of_unknown, constraints_);
  Distribute(options.constraints.forbid, &UserConstraints::forbid, NodeOfForbid, parts, owner_of_unknown, constraints_);
}

CompileOptions PartOptions::Begin(size_t part) {
  CompileOptions options = options_;
  options.seconds_spent = 0;
  options.constraints = constraints_[part];
  options.whole_budget_seconds = options_.WholeBudget();
  options.budget_seconds = std::max(0.0, options_.budget_seconds - SecondsSpent()) * shares_[part] / shares_left_;
  options.race_seconds = options_.race_seconds * std::min(1.0, shares_[part]);
  options.tuning_seconds = options_.tuning_seconds * std::min(1.0, shares_[part]);
  Skip(part);
  return options;
}

void PartOptions::Skip(size_t part) { shares_left_ -= std::exchange(shares_[part], 0); }

}  // namespace collage
