#include "collage/driver/constraints.h"

#include <algorithm>
#include <set>

#include "collage/backend/in_place.h"
#include "collage/candidate/in_place.h"
#include "collage/candidate/library_calls.h"

namespace collage {
namespace {

/// Stands for a backend in what a user forbids.
constexpr const char* kForms = "forms";

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

Result<Constraints> Constraints::Resolve(const DataflowGraph& graph, const std::vector<std::string>& backends, const UserConstraints& said,
                                         const std::vector<FormRule>& forms) {
  Constraints constraints(graph, backends);
  constraints.said_ = said;
  for (const FormRule& rule : forms) constraints.forms_.push_back(rule.name);
  for (const std::string& text : said.forbid) COLLAGE_TRY_STATUS(constraints.AddForbidden(text));
  for (const std::string& text : said.pin) COLLAGE_TRY_STATUS(constraints.AddPin(text));
  return constraints;
}

bool Constraints::ForbidsForm(const std::string& rule, const IndexSet& covered) const {
  if (std::find(forbidden_forms_.begin(), forbidden_forms_.end(), rule) != forbidden_forms_.end()) return true;
  bool forbids = false;
  covered.ForEach([&](PostDfsIndex node) { forbids = forbids || Forbids(kForms, node); });
  return forbids;
}

Status Constraints::CheckBackend(const std::string& flag, const std::string& backend) const {
  if (IsBackend(backend)) return {};
  return Fail(flag + ": there is no backend '" + backend + "' among the targets, expected one of " + Joined(backends_));
}

bool Constraints::IsBackend(const std::string& name) const {
  return std::find(backends_.begin(), backends_.end(), name) != backends_.end();
}

std::string Constraints::NameOf(PostDfsIndex node) const { return names_.Describe((*graph_)[node].expr); }

IndexSet Constraints::Called(const std::string& name) const {
  IndexSet called;
  for (PostDfsIndex node = 0; node < graph_->size(); ++node) {
    const Expr& expr = (*graph_)[node].expr;
    if (CalledOp(expr) && names_.IsCalled(expr, name)) called.Add(node);
  }
  return called;
}

// Constants remember what they were folded from.
std::string Constraints::WhyNotCalled(const std::string& name) const {
  for (PostDfsIndex node = 0; node < graph_->size(); ++node) {
    const Expr& expr = (*graph_)[node].expr;
    if (expr->As<Constant>() && names_.IsCalled(expr, name))
      return "node '" + name + "' was computed when the model was read, so nothing runs it";
  }
  return "the program has no node and calls no operator '" + name + "'; collage explain --operators lists them";
}

Status Constraints::AddForbidden(const std::string& text) {
  const std::string flag = "--forbid " + text;
  const size_t colon = text.find(':');
  Forbidden forbidden{text.substr(0, colon), std::nullopt, flag};
  const bool is_of_forms = forbidden.backend == kForms;
  if (!is_of_forms && forbidden.backend != kInPlace) COLLAGE_TRY_STATUS(CheckBackend(flag, forbidden.backend));
  if (colon != std::string::npos) {
    const std::string name = text.substr(colon + 1);
    if (is_of_forms && std::find(forms_.begin(), forms_.end(), name) != forms_.end()) {
      forbidden_forms_.push_back(name);
      return {};
    }
    forbidden.nodes = Called(name);
    if (forbidden.nodes->Empty()) return Fail(flag + ": " + WhyNotCalled(name));
  }
  forbidden_.push_back(std::move(forbidden));
  return {};
}

Status Constraints::AddPin(const std::string& text) {
  const std::string flag = "--pin " + text;
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return Fail(flag + ": expected NODE=BACKEND, such as conv1=native");
  const std::string name = text.substr(0, equals);
  const std::string backend = text.substr(equals + 1);
  COLLAGE_TRY_STATUS(CheckBackend(flag, backend));
  const IndexSet called = Called(name);
  if (called.Empty()) return Fail(flag + ": " + WhyNotCalled(name));
  for (size_t node = called.First(); node != IndexSet::npos; node = called.NextFrom(node + 1)) {
    if (const auto earlier = pins_.find(node); earlier != pins_.end() && earlier->second.backend != backend)
      return Fail(flag + ": " + NameOf(node) + " is pinned to " + earlier->second.backend + " by " + earlier->second.flag);
    if (const std::string forbidding = ForbiddingFlag(backend, node); !forbidding.empty())
      return Fail(flag + ": " + NameOf(node) + " cannot run on " + backend + ", which " + forbidding + " forbids");
    pins_[node] = {backend, flag};
    pinned_.Add(node);
  }
  return {};
}

std::string Constraints::ForbiddingFlag(const std::string& backend, PostDfsIndex node) const {
  for (const Forbidden& forbidden : forbidden_) {
    if (forbidden.backend == backend && (!forbidden.nodes || forbidden.nodes->Contains(node))) return forbidden.flag;
  }
  return {};
}

bool Constraints::Allow(const CandidatePartition& candidate) const {
  const IndexSet& inside = candidate.sub_graph.inside();
  const bool is_host = candidate.spec->is_host;
  bool allowed = true;
  if (!pinned_.Empty() && inside.Intersects(pinned_)) {
    (inside & pinned_).ForEach([&](PostDfsIndex node) { allowed = allowed && !is_host && pins_.at(node).backend == candidate.spec->name; });
  }
  if (is_host && !IsInPlace(candidate)) return allowed;
  for (const LibraryPart& part : LibraryParts(candidate)) {
    part.inside.ForEach([&](PostDfsIndex node) {
      const bool is_elsewhere = pinned_.Contains(node) && pins_.at(node).backend != part.library && IsBackend(part.library);
      allowed = allowed && !is_elsewhere && !Forbids(part.library, node);
    });
  }
  if (forbidden_.empty()) return allowed;
  inside.ForEach([&](PostDfsIndex node) { allowed = allowed && !Forbids(candidate.spec->name, node); });
  return allowed;
}

std::string Constraints::PinOf(PostDfsIndex node) const {
  const auto pin = pins_.find(node);
  return pin == pins_.end() ? std::string() : pin->second.backend;
}

Status Constraints::Check(const std::vector<CandidatePartition>& found, const std::vector<Refusal>& refusals) const {
  std::vector<bool> is_taken(graph_->size(), false);
  std::unordered_map<PostDfsIndex, const CandidatePartition*> refused;  // candidates of the right backend that another flag excludes
  for (const CandidatePartition& candidate : found) {
    if (candidate.spec->is_host || !candidate.sub_graph.inside().Intersects(pinned_)) continue;
    const bool allowed = Allow(candidate);
    (candidate.sub_graph.inside() & pinned_).ForEach([&](PostDfsIndex node) {
      if (pins_.at(node).backend != candidate.spec->name) return;
      is_taken[node] = is_taken[node] || allowed;
      refused.emplace(node, &candidate);
    });
  }
  for (PostDfsIndex node = 0; node < graph_->size(); ++node) {
    if (!pinned_.Contains(node) || is_taken[node]) continue;
    const Pin& pin = pins_.at(node);
    const auto other = refused.find(node);
    if (other == refused.end()) {
      return Fail(pin.flag + ": " + pin.backend + " does not take " + NameOf(node) + "; " + WhatRulesSaid(pin.backend, node, refusals));
    }
    std::string clash;
    other->second->sub_graph.inside().ForEach([&](PostDfsIndex inside) {
      if (!clash.empty()) return;
      const auto rival = pins_.find(inside);
      if (rival != pins_.end() && rival->second.backend != pin.backend)
        clash = NameOf(inside) + ", which " + rival->second.flag + " excludes";
      if (Forbids(pin.backend, inside)) clash = NameOf(inside) + ", which " + ForbiddingFlag(pin.backend, inside) + " excludes";
    });
    return Fail(pin.flag + ": " + pin.backend + " takes " + NameOf(node) + " only together with " + clash);
  }
  return {};
}

std::string Constraints::WhatRulesSaid(const std::string& backend, PostDfsIndex node, const std::vector<Refusal>& refusals) const {
  constexpr size_t kMostNamed = 3;
  std::set<std::string> said;
  for (const Refusal& refusal : refusals) {
    if (refusal.backend == backend && refusal.inside.Contains(node)) said.insert("rule " + refusal.rule + " refused: " + refusal.reason);
  }
  if (said.empty()) return "none of the rules of " + backend + " matches there";
  std::vector<std::string> named(said.begin(), said.end());
  if (named.size() > kMostNamed) {
    named.resize(kMostNamed);
    named.push_back("and " + std::to_string(said.size() - kMostNamed) + " more");
  }
  return Joined(named);
}

std::string Constraints::RulesTried(PostDfsIndex node, const std::vector<Refusal>& refusals) const {
  std::string text;
  for (const std::string& backend : backends_) {
    const std::string pin = PinOf(node);
    if (!pin.empty() && pin != backend) continue;
    const std::string forbidding = ForbiddingFlag(backend, node);
    text += (text.empty() ? "" : "; ") + backend + ": " +
            (forbidding.empty() ? WhatRulesSaid(backend, node, refusals) : "forbidden by " + forbidding);
  }
  return text;
}

std::string Constraints::ToString() const {
  std::string text;
  for (const std::string& pin : said_.pin) text += " --pin " + pin;
  for (const std::string& forbid : said_.forbid) text += " --forbid " + forbid;
  return text;
}

}  // namespace collage
