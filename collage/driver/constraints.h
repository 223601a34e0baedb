#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collage/candidate/rule.h"
#include "collage/form/form.h"
#include "collage/ir/call_names.h"

namespace collage {

/// What a user wants of the placement, as written.
struct UserConstraints {
  /// "conv1=dnnl": what comes from that ONNX node runs there; in place of the node may stand an operator, for all its calls, and
  /// where no model was read the number or place that the text form gives a call (CallNames).
  std::vector<std::string> pin;
  /// "dnnl": nothing runs there; "dnnl:conv1", "dnnl:nn.conv2d": nothing that holds such a node or operator does. "forms": nothing is
  /// computed in another form than the model's; "forms:conv1", "forms:nn.conv2d", "forms:transposed_convolution": not that node or
  /// operator, or not by that rule.
  std::vector<std::string> forbid;

  [[nodiscard]] bool Empty() const { return pin.empty() && forbid.empty(); }
};

/// Constraints as they apply to the candidates of one function.
class Constraints {
 public:
  /// Errors name the flag and what is wrong with it: a node, an operator or a backend that is not there, a node pinned twice, a pin on
  /// what is forbidden. `graph` must outlive the result.
  /// "forms:NAME" may name one of `forms`.
  static Result<Constraints> Resolve(const DataflowGraph& graph, const std::vector<std::string>& backends, const UserConstraints& said,
                                     const std::vector<FormRule>& forms = FormRules());

  /// Whether a candidate keeps to all of them, the libraries that it calls too. Host candidates keep to none of the pins.
  [[nodiscard]] bool Allow(const CandidatePartition& candidate) const;
  /// The backend that a node is pinned to; empty: none.
  [[nodiscard]] std::string PinOf(PostDfsIndex node) const;
  [[nodiscard]] bool HoldsPinned(const IndexSet& inside) const { return inside.Intersects(pinned_); }
  [[nodiscard]] bool Forbids(const std::string& backend, PostDfsIndex node) const { return !ForbiddingFlag(backend, node).empty(); }
  /// Whether these nodes may not be computed in another form by that rule.
  [[nodiscard]] bool ForbidsForm(const std::string& rule, const IndexSet& covered) const;
  /// "conv1, bn1 (nn.conv2d)".
  [[nodiscard]] std::string NameOf(PostDfsIndex node) const;

  /// Whether some candidate is left for every pinned node. `found` are the candidates before the constraints, `refusals` what the rules
  /// declined. Errors name node, backend, and the rules tried or the flag that is in the way.
  [[nodiscard]] Status Check(const std::vector<CandidatePartition>& found, const std::vector<Refusal>& refusals) const;
  /// For each backend, what its rules said of a node: "dnnl.conv2d: no primitive; native: no code for nn.foo".
  [[nodiscard]] std::string RulesTried(PostDfsIndex node, const std::vector<Refusal>& refusals) const;

  /// The constraints as written, for keys of what was measured under them; empty without any.
  [[nodiscard]] std::string ToString() const;
  [[nodiscard]] const UserConstraints& said() const { return said_; }

 private:
  struct Pin {
    std::string backend;
    std::string flag;
  };
  struct Forbidden {
    std::string backend;
    std::optional<IndexSet> nodes;  // nothing: all
    std::string flag;
  };

  Constraints(const DataflowGraph& graph, const std::vector<std::string>& backends)
      : graph_(&graph), backends_(backends), names_(graph.function()) {}
  /// The calls that a user may mean by a name.
  [[nodiscard]] IndexSet Called(const std::string& name) const;
  [[nodiscard]] std::string WhyNotCalled(const std::string& name) const;
  Status AddPin(const std::string& text);
  Status AddForbidden(const std::string& text);
  Status CheckBackend(const std::string& flag, const std::string& backend) const;
  /// The flag by which a backend may not hold a node; empty: it may.
  [[nodiscard]] std::string ForbiddingFlag(const std::string& backend, PostDfsIndex node) const;
  [[nodiscard]] bool IsBackend(const std::string& name) const;
  [[nodiscard]] std::string WhatRulesSaid(const std::string& backend, PostDfsIndex node, const std::vector<Refusal>& refusals) const;

  const DataflowGraph* graph_;
  std::vector<std::string> backends_;
  std::vector<std::string> forms_;  // rules, by name
  UserConstraints said_;
  CallNames names_;
  std::unordered_map<PostDfsIndex, Pin> pins_;
  IndexSet pinned_;
  std::vector<Forbidden> forbidden_;
  std::vector<std::string> forbidden_forms_;  // rules, by name
};

}  // namespace collage
