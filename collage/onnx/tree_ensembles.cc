// Ensembles of decision trees (ai.onnx.ml) as compositions of gathers: all trees are walked at once, a level of all of them with each
// step (Nakandala et al., A Tensor Compiler for Unified Machine Learning Prediction Serving, OSDI 2020, section 4.1: tree traversal).

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>

#include "collage/onnx/class_scores.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/rows.h"
#include "collage/tensor/narrow.h"

namespace collage::onnx_io {
namespace {

enum class Test : uint8_t { kLessEqual, kLess, kGreaterEqual, kGreater, kEqual, kNotEqual, kMember };
constexpr size_t kTests = 7;

/// In the order of TreeEnsemble's enumeration.
constexpr std::array<const char*, kTests> kTestNames = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",   "BRANCH_GT",
                                                        "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER"};
constexpr std::array<const char*, 4> kAggregates = {"AVERAGE", "SUM", "MIN", "MAX"};

struct Branch {
  int64_t feature = 0;
  Test test = Test::kLessEqual;
  double split = 0;
  bool is_true_of_missing = false;  // NaN
  std::vector<double> members;      // of Test::kMember
  int64_t if_true = 0;              // a branch, or behind all of them a leaf
  int64_t if_false = 0;
};

/// What a leaf says of a target.
struct Vote {
  int64_t leaf;
  int64_t target;
  double weight;
};

struct Ensemble {
  std::vector<int64_t> roots;  // as the children of branches
  std::vector<Branch> branches;
  int64_t leaves = 0;
  std::vector<Vote> votes;
  int64_t targets = 1;
  std::string aggregate = "SUM";
};

Status CheckLength(const std::string& attribute, size_t found, size_t expected) {
  if (found == expected) return {};
  return Fail("attribute '" + attribute + "' has " + std::to_string(found) + " elements, expected " + std::to_string(expected));
}

Status CheckRange(const std::string& attribute, int64_t value, int64_t end) {
  if (value >= 0 && value < end) return {};
  return Fail("attribute '" + attribute + "' has " + std::to_string(value) + ", expected 0 to " + std::to_string(end - 1));
}

Result<int64_t> ReadTargets(const NodeReader& node) {
  const int64_t targets = COLLAGE_TRY(node.Int("n_targets", 1));
  if (targets < 1) return Fail("attribute 'n_targets' is " + std::to_string(targets) + "; 1 or more is right");
  return targets;
}

/// A branch that two others lead to would be walked in both of their trees; and no walk ends in a circle. Gives the most branches on a way
/// from a root to a leaf.
Result<size_t> DepthOf(const Ensemble& ensemble) {
  const auto is_branch = [&](int64_t node) { return node < static_cast<int64_t>(ensemble.branches.size()); };
  std::vector<bool> seen(ensemble.branches.size());
  std::vector<int64_t> level = ensemble.roots;
  size_t depth = 0;
  while (true) {
    std::vector<int64_t> next;
    bool has_branch = false;
    for (const int64_t node : level) {
      if (!is_branch(node)) continue;
      has_branch = true;
      const auto place = static_cast<size_t>(node);
      if (seen[place]) return Fail("two ways lead to branch " + std::to_string(node) + " of its trees");
      seen[place] = true;
      next.push_back(ensemble.branches[place].if_true);
      next.push_back(ensemble.branches[place].if_false);
    }
    if (!has_branch) return depth;
    ++depth;
    level = std::move(next);
  }
}

/// The walk from the roots to the leaves, and what the leaves say.
class Walk {
 public:
  /// Numbers are compared, and added up, in this type, float32 or float64.
  Walk(NodeReader& node, const Ensemble& ensemble, DType dtype) : node_(node), ensemble_(ensemble), formula_(node, dtype), dtype_(dtype) {}

  /// [N, targets]; of targets of which no leaf says anything zero.
  Result<Expr> Scores(const Expr& data) {
    const size_t depth = COLLAGE_TRY(DepthOf(ensemble_));
    const TensorType type = COLLAGE_TRY(TensorTypeOf(data));
    if (type.shape.empty() || type.shape.size() > 2) return Fail("input 0 is " + ToString(type) + ", expected rows of features");
    const int64_t features = type.shape.back();
    rows_ = type.shape.size() == 2 ? type.shape[0] : 1;
    for (const Branch& branch : ensemble_.branches) COLLAGE_TRY_STATUS(CheckRange("nodes_featureids", branch.feature, features));
    data_ = formula_.Cast(formula_.Reshape(data, {rows_, features}), dtype_);
    COLLAGE_TRY_STATUS(MakeTables());
    const auto trees = static_cast<int64_t>(ensemble_.roots.size());
    Expr at = MakeConstant(Tensor::FromVector(TensorType{{1, trees}, DType::kInt64}, ensemble_.roots));
    for (size_t step = 0; step < depth; ++step) at = Step(at);
    const Expr leaf = formula_.Broadcast(formula_.Call("subtract", at, Integer(Branches())), {rows_, trees});
    const Expr scores = COLLAGE_TRY(Aggregated(leaf));
    return COLLAGE_TRY(formula_.Done(scores)).front();
  }

 private:
  [[nodiscard]] int64_t Branches() const { return static_cast<int64_t>(ensemble_.branches.size()); }

  static Expr Integer(int64_t value) {
    Tensor tensor(TensorType{{}, DType::kInt64});
    *tensor.MutableData<int64_t>() = value;
    return MakeConstant(tensor);
  }

  Status Reserve(const Shape& shape, DType dtype) {
    COLLAGE_TRY_STATUS(CheckExtents(shape));
    return node_.folder().Reserve(static_cast<double>(TensorType{shape, dtype}.ByteCount()));
  }

  [[nodiscard]] Expr Table(const Shape& shape, const std::vector<double>& values) const {
    if (dtype_ == DType::kFloat64) return MakeConstant(Tensor::FromVector(TensorType{shape, dtype_}, values));
    return MakeConstant(Tensor::FromVector(TensorType{shape, dtype_}, std::vector<float>(values.begin(), values.end())));
  }

  /// What branches say, by their number. A leaf leads to itself, so a walk that has ended stays there.
  Status MakeTables() {
    const int64_t nodes = Branches() + ensemble_.leaves;
    COLLAGE_TRY_STATUS(Reserve({nodes, 6}, DType::kInt64));
    std::vector<int64_t> feature(static_cast<size_t>(nodes));
    std::vector<int64_t> test(feature.size());
    std::vector<int64_t> missing(feature.size());
    std::vector<int64_t> if_true(feature.size());
    std::vector<int64_t> if_false(feature.size());
    std::vector<double> split(feature.size());
    size_t most_members = 0;
    for (size_t i = 0; i < feature.size(); ++i) {
      if_true[i] = if_false[i] = static_cast<int64_t>(i);
      if (i >= ensemble_.branches.size()) continue;
      const Branch& branch = ensemble_.branches[i];
      feature[i] = branch.feature;
      test[i] = static_cast<int64_t>(branch.test);
      split[i] = branch.split;
      missing[i] = branch.is_true_of_missing ? 1 : 0;
      if_true[i] = branch.if_true;
      if_false[i] = branch.if_false;
      tests_.insert(branch.test);
      may_miss_ = may_miss_ || branch.is_true_of_missing;
      most_members = std::max(most_members, branch.members.size());
    }
    const TensorType integers{{nodes}, DType::kInt64};
    feature_ = MakeConstant(Tensor::FromVector(integers, feature));
    test_ = MakeConstant(Tensor::FromVector(integers, test));
    missing_ = MakeConstant(Tensor::FromVector(integers, missing));
    if_true_ = MakeConstant(Tensor::FromVector(integers, if_true));
    if_false_ = MakeConstant(Tensor::FromVector(integers, if_false));
    split_ = Table({nodes}, split);
    if (!tests_.contains(Test::kMember)) return {};
    const Shape of_members = {nodes, static_cast<int64_t>(std::max<size_t>(most_members, 1))};
    COLLAGE_TRY_STATUS(Reserve(of_members, dtype_));
    std::vector<double> members(static_cast<size_t>(ElementCount(of_members)), std::numeric_limits<double>::quiet_NaN());
    for (size_t i = 0; i < ensemble_.branches.size(); ++i) {
      const std::vector<double>& of_branch = ensemble_.branches[i].members;
      std::copy(of_branch.begin(), of_branch.end(), members.begin() + static_cast<ptrdiff_t>(i) * of_members[1]);
    }
    members_ = Table(of_members, members);
    return {};
  }

  Expr At(const Expr& table, const Expr& place) { return formula_.Apply("take", {table, place}, {{"axis", 0}}); }

  Expr Passes(Test test, const Expr& at, const Expr& value) {
    static constexpr std::array<const char*, kTests - 1> kOps = {"less_equal", "less", "greater_equal", "greater", "equal", "not_equal"};
    if (test != Test::kMember) return formula_.Call(kOps[static_cast<size_t>(test)], value, At(split_, at));
    Shape with_members = Formula::ShapeOf(value);
    with_members.push_back(1);
    const Expr equal = formula_.Call("equal", formula_.Reshape(value, with_members), At(members_, at));
    return formula_.Cast(formula_.Reduce("max", formula_.Cast(equal, DType::kInt64), {2}, false), DType::kBool);
  }

  /// From branches [N or 1, trees] to their children [N, trees].
  Expr Step(const Expr& at) {
    const Expr feature = At(feature_, at);
    // At the roots all rows ask for the same features.
    const bool is_root = feature != nullptr && feature->As<Constant>() != nullptr;
    const Expr value = is_root ? formula_.Apply("take", {data_, formula_.Reshape(feature, {Formula::ShapeOf(feature)[1]})}, {{"axis", 1}})
                               : formula_.Apply("gather", {data_, feature}, {{"axis", 1}});
    Expr passes;
    for (const Test test : tests_) {
      Expr by_test = Passes(test, at, value);
      if (tests_.size() > 1) {
        const Expr is_its = formula_.Call("equal", At(test_, at), Integer(static_cast<int64_t>(test)));
        by_test = formula_.Call("logical_and", by_test, is_its);
      }
      passes = passes == nullptr ? by_test : formula_.Call("logical_or", passes, by_test);
    }
    if (may_miss_) {
      const Expr is_true = formula_.Cast(At(missing_, at), DType::kBool);
      passes = formula_.Call("logical_or", passes, formula_.Call("logical_and", formula_.Call("isnan", value), is_true));
    }
    return formula_.Call("where", passes, At(if_true_, at), At(if_false_, at));
  }

  /// From the leaves [N, trees] that rows have come to.
  Result<Expr> Aggregated(const Expr& leaf) {
    const bool is_least = ensemble_.aggregate == "MIN";
    const bool is_most = ensemble_.aggregate == "MAX";
    const double silent = is_least ? std::numeric_limits<double>::infinity() : is_most ? -std::numeric_limits<double>::infinity() : 0;
    const Shape shape = {ensemble_.leaves, ensemble_.targets};
    COLLAGE_TRY_STATUS(Reserve(shape, DType::kFloat64));
    std::vector<double> said(static_cast<size_t>(ElementCount(shape)), silent);
    for (const Vote& vote : ensemble_.votes) {
      double& value = said[static_cast<size_t>(vote.leaf * ensemble_.targets + vote.target)];
      value = is_least ? std::min(value, vote.weight) : is_most ? std::max(value, vote.weight) : value + vote.weight;
    }
    const Expr of_trees = At(Table(shape, said), leaf);
    if (!is_least && !is_most) {
      const Expr sum = formula_.Reduce("sum", of_trees, {1}, false);
      if (ensemble_.aggregate == "SUM") return sum;
      return formula_.Call("divide", sum, static_cast<double>(ensemble_.roots.size()));
    }
    const Expr extreme = formula_.Reduce(is_least ? "min" : "max", of_trees, {1}, false);
    return formula_.Call("where", formula_.Call("equal", extreme, silent), 0.0, extreme);
  }

  NodeReader& node_;
  const Ensemble& ensemble_;
  Formula formula_;
  DType dtype_;
  int64_t rows_ = 0;
  std::set<Test> tests_;
  bool may_miss_ = false;
  Expr data_, feature_, test_, missing_, if_true_, if_false_, split_, members_;
};

Result<std::vector<double>> Numbers(const NodeReader& node, const std::string& name) {
  if (!node.HasAttribute(name)) return std::vector<double>();
  return COLLAGE_TRY(node.TensorAttribute(name)).ToDouble();
}

/// Sets of members of branches that test for one, in their order, with NaN between.
Status ReadMembers(const NodeReader& node, std::vector<Branch>& branches) {
  const std::vector<double> values = COLLAGE_TRY(Numbers(node, "membership_values"));
  std::vector<std::vector<double>> sets(1);
  for (const double value : values) {
    if (std::isnan(value)) {
      sets.emplace_back();
    } else {
      sets.back().push_back(value);
    }
  }
  if (sets.size() > 1 && sets.back().empty()) sets.pop_back();
  size_t next = 0;
  for (Branch& branch : branches) {
    if (branch.test != Test::kMember) continue;
    if (next == sets.size()) return Fail("attribute 'membership_values' has fewer sets than there are branches that test for members");
    branch.members = std::move(sets[next++]);
  }
  return {};
}

Result<Ensemble> ReadEnsemble(const NodeReader& node) {
  const auto ints = [&](const char* name) { return node.Ints(name, {}); };
  const std::vector<int64_t> features = COLLAGE_TRY(ints("nodes_featureids"));
  const std::vector<double> modes = COLLAGE_TRY(Numbers(node, "nodes_modes"));
  const std::vector<double> splits = COLLAGE_TRY(Numbers(node, "nodes_splits"));
  const std::vector<int64_t> missing = COLLAGE_TRY(ints("nodes_missing_value_tracks_true"));
  const std::vector<double> weights = COLLAGE_TRY(Numbers(node, "leaf_weights"));
  const std::vector<int64_t> targets = COLLAGE_TRY(ints("leaf_targetids"));
  const std::vector<int64_t> true_nodes = COLLAGE_TRY(ints("nodes_truenodeids"));
  const std::vector<int64_t> false_nodes = COLLAGE_TRY(ints("nodes_falsenodeids"));
  const std::vector<int64_t> true_leafs = COLLAGE_TRY(ints("nodes_trueleafs"));
  const std::vector<int64_t> false_leafs = COLLAGE_TRY(ints("nodes_falseleafs"));
  COLLAGE_TRY_STATUS(CheckLength("nodes_modes", modes.size(), features.size()));
  COLLAGE_TRY_STATUS(CheckLength("nodes_splits", splits.size(), features.size()));
  if (!missing.empty()) COLLAGE_TRY_STATUS(CheckLength("nodes_missing_value_tracks_true", missing.size(), features.size()));
  COLLAGE_TRY_STATUS(CheckLength("nodes_truenodeids", true_nodes.size(), features.size()));
  COLLAGE_TRY_STATUS(CheckLength("nodes_falsenodeids", false_nodes.size(), features.size()));
  COLLAGE_TRY_STATUS(CheckLength("nodes_trueleafs", true_leafs.size(), features.size()));
  COLLAGE_TRY_STATUS(CheckLength("nodes_falseleafs", false_leafs.size(), features.size()));
  COLLAGE_TRY_STATUS(CheckLength("leaf_targetids", targets.size(), weights.size()));
  Ensemble ensemble;
  const auto branches = static_cast<int64_t>(features.size());
  ensemble.leaves = static_cast<int64_t>(weights.size());
  const auto child = [&](const char* name, int64_t place, bool is_leaf) -> Result<int64_t> {
    COLLAGE_TRY_STATUS(CheckRange(name, place, is_leaf ? ensemble.leaves : branches));
    return is_leaf ? branches + place : place;
  };
  for (size_t i = 0; i < features.size(); ++i) {
    COLLAGE_TRY_STATUS(CheckRange("nodes_modes", static_cast<int64_t>(modes[i]), kTests));
    Branch branch{features[i], static_cast<Test>(modes[i]), splits[i], !missing.empty() && missing[i] != 0, {}, 0, 0};
    branch.if_true = COLLAGE_TRY(child("nodes_truenodeids", true_nodes[i], true_leafs[i] != 0));
    branch.if_false = COLLAGE_TRY(child("nodes_falsenodeids", false_nodes[i], false_leafs[i] != 0));
    ensemble.branches.push_back(std::move(branch));
  }
  COLLAGE_TRY_STATUS(ReadMembers(node, ensemble.branches));
  ensemble.targets = COLLAGE_TRY(ReadTargets(node));
  for (int64_t leaf = 0; leaf < ensemble.leaves; ++leaf) {
    const auto place = static_cast<size_t>(leaf);
    COLLAGE_TRY_STATUS(CheckRange("leaf_targetids", targets[place], ensemble.targets));
    ensemble.votes.push_back({leaf, targets[place], weights[place]});
  }
  ensemble.roots = COLLAGE_TRY(ints("tree_roots"));
  for (const int64_t root : ensemble.roots) COLLAGE_TRY_STATUS(CheckRange("tree_roots", root, branches));
  const int64_t aggregate = COLLAGE_TRY(node.Int("aggregate_function", 1));
  COLLAGE_TRY_STATUS(CheckRange("aggregate_function", aggregate, kAggregates.size()));
  ensemble.aggregate = kAggregates[static_cast<size_t>(aggregate)];
  if (ensemble.roots.empty()) return Fail("attribute 'tree_roots' has no trees");
  return ensemble;
}

Result<std::vector<Expr>> ReadTreeEnsemble(NodeReader& node) {
  const Ensemble ensemble = COLLAGE_TRY(ReadEnsemble(node));
  const int64_t transform = COLLAGE_TRY(node.Int("post_transform", 0));
  COLLAGE_TRY_STATUS(CheckRange("post_transform", transform, kScoreTransforms.size()));
  const DType given = COLLAGE_TRY(node.InputType(0)).dtype;
  const DType dtype = WideType(given);
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64)
    return Fail("input 0 is " + std::string(Name(given)) + ", expected floating point");
  const Expr scores = COLLAGE_TRY(Walk(node, ensemble, dtype).Scores(COLLAGE_TRY(node.Input(0))));
  Formula formula(node, dtype);
  return formula.Done(formula.Cast(Transformed(formula, kScoreTransforms[static_cast<size_t>(transform)], scores), given));
}

/// NAME_as_tensor (which may be of doubles), or NAME.
Result<std::vector<double>> FloatsOrTensor(const NodeReader& node, const std::string& name) {
  if (node.HasAttribute(name + "_as_tensor")) return Numbers(node, name + "_as_tensor");
  const std::vector<float> values = COLLAGE_TRY(node.Floats(name, {}));
  return std::vector<double>(values.begin(), values.end());
}

/// As TreeEnsembleRegressor and TreeEnsembleClassifier have it: nodes of all trees, leaves among them, by the numbers of tree and node; and
/// a list of what leaves say, whose attributes begin with `prefix`.
Result<Ensemble> ReadNumberedEnsemble(const NodeReader& node, const std::string& prefix, int64_t targets) {
  const auto ints = [&](const std::string& name) { return node.Ints(name, {}); };
  const std::vector<int64_t> trees = COLLAGE_TRY(ints("nodes_treeids"));
  const std::vector<int64_t> numbers = COLLAGE_TRY(ints("nodes_nodeids"));
  const std::vector<int64_t> features = COLLAGE_TRY(ints("nodes_featureids"));
  const std::vector<std::string> modes = COLLAGE_TRY(node.Strings("nodes_modes", {}));
  const std::vector<double> splits = COLLAGE_TRY(FloatsOrTensor(node, "nodes_values"));
  const std::vector<int64_t> true_nodes = COLLAGE_TRY(ints("nodes_truenodeids"));
  const std::vector<int64_t> false_nodes = COLLAGE_TRY(ints("nodes_falsenodeids"));
  const std::vector<int64_t> missing = COLLAGE_TRY(ints("nodes_missing_value_tracks_true"));
  COLLAGE_TRY_STATUS(CheckLength("nodes_nodeids", numbers.size(), trees.size()));
  COLLAGE_TRY_STATUS(CheckLength("nodes_featureids", features.size(), trees.size()));
  COLLAGE_TRY_STATUS(CheckLength("nodes_modes", modes.size(), trees.size()));
  COLLAGE_TRY_STATUS(CheckLength("nodes_values", splits.size(), trees.size()));
  COLLAGE_TRY_STATUS(CheckLength("nodes_truenodeids", true_nodes.size(), trees.size()));
  COLLAGE_TRY_STATUS(CheckLength("nodes_falsenodeids", false_nodes.size(), trees.size()));
  if (!missing.empty()) COLLAGE_TRY_STATUS(CheckLength("nodes_missing_value_tracks_true", missing.size(), trees.size()));
  if (trees.empty()) return Fail("attribute 'nodes_treeids' has no nodes");

  constexpr std::string_view kLeaf = "LEAF";
  Ensemble ensemble;
  ensemble.targets = targets;
  const int64_t leaves = std::count(modes.begin(), modes.end(), kLeaf);
  const auto branches = static_cast<int64_t>(modes.size()) - leaves;
  std::map<std::pair<int64_t, int64_t>, int64_t> places;  // of tree and node: as children of branches
  std::vector<int64_t> order;                             // of trees
  int64_t next_branch = 0;
  for (size_t i = 0; i < trees.size(); ++i) {
    const int64_t place = modes[i] == kLeaf ? branches + ensemble.leaves++ : next_branch++;
    if (!places.emplace(std::pair(trees[i], numbers[i]), place).second)
      return Fail("node " + std::to_string(numbers[i]) + " of tree " + std::to_string(trees[i]) + " is there twice");
    if (std::find(order.rbegin(), order.rend(), trees[i]) == order.rend()) order.push_back(trees[i]);
  }
  const auto place_of = [&](const std::string& attribute, int64_t tree, int64_t number) -> Result<int64_t> {
    const auto found = places.find({tree, number});
    if (found != places.end()) return found->second;
    return Fail("attribute '" + attribute + "' has node " + std::to_string(number) + " of tree " + std::to_string(tree) +
                ", which is none");
  };
  std::set<int64_t> children;
  for (size_t i = 0; i < trees.size(); ++i) {
    if (modes[i] == kLeaf) continue;
    const size_t test = COLLAGE_TRY(PlaceOf(modes[i], kTestNames, "nodes_modes"));
    if (static_cast<Test>(test) == Test::kMember) return Fail("attribute 'nodes_modes' has BRANCH_MEMBER, which only TreeEnsemble has");
    Branch branch{features[i], static_cast<Test>(test), splits[i], !missing.empty() && missing[i] != 0, {}, 0, 0};
    branch.if_true = COLLAGE_TRY(place_of("nodes_truenodeids", trees[i], true_nodes[i]));
    branch.if_false = COLLAGE_TRY(place_of("nodes_falsenodeids", trees[i], false_nodes[i]));
    children.insert({branch.if_true, branch.if_false});
    ensemble.branches.push_back(std::move(branch));
  }
  std::map<int64_t, int64_t> root_of;
  for (const auto& [node_of_tree, place] : places) {
    if (children.contains(place)) continue;
    if (!root_of.emplace(node_of_tree.first, place).second)
      return Fail("tree " + std::to_string(node_of_tree.first) + " has two nodes that no other leads to; a tree has one root");
  }
  for (const int64_t tree : order) {
    const auto root = root_of.find(tree);
    if (root == root_of.end()) return Fail("tree " + std::to_string(tree) + " has no root: each of its nodes has another that leads to it");
    ensemble.roots.push_back(root->second);
  }

  const std::vector<int64_t> voting_trees = COLLAGE_TRY(ints(prefix + "_treeids"));
  const std::vector<int64_t> voting_nodes = COLLAGE_TRY(ints(prefix + "_nodeids"));
  const std::vector<int64_t> voted_for = COLLAGE_TRY(ints(prefix + "_ids"));
  const std::vector<double> weights = COLLAGE_TRY(FloatsOrTensor(node, prefix + "_weights"));
  COLLAGE_TRY_STATUS(CheckLength(prefix + "_nodeids", voting_nodes.size(), voting_trees.size()));
  COLLAGE_TRY_STATUS(CheckLength(prefix + "_ids", voted_for.size(), voting_trees.size()));
  COLLAGE_TRY_STATUS(CheckLength(prefix + "_weights", weights.size(), voting_trees.size()));
  for (size_t i = 0; i < weights.size(); ++i) {
    COLLAGE_TRY_STATUS(CheckRange(prefix + "_ids", voted_for[i], targets));
    const int64_t place = COLLAGE_TRY(place_of(prefix + "_nodeids", voting_trees[i], voting_nodes[i]));
    // Exporters write weights of branches, too, where no walk ends.
    if (place >= branches) ensemble.votes.push_back({place - branches, voted_for[i], weights[i]});
  }
  return ensemble;
}

/// float64 where data or numbers are, else float32: integers of features are exact up to 2^24.
Result<DType> DTypeOfNumbers(const NodeReader& node) {
  const bool is_double = COLLAGE_TRY(node.InputType(0)).dtype == DType::kFloat64;
  return is_double || node.HasAttribute("nodes_values_as_tensor") ? DType::kFloat64 : DType::kFloat32;
}

Expr Row(Formula& formula, const std::vector<double>& values) {
  std::vector<Expr> parts;
  for (const double value : values) parts.push_back(formula.Reshape(formula.Number(value), {1, 1}));
  return formula.Concatenate(parts, 1);
}

Result<std::vector<Expr>> ReadTreeEnsembleRegressor(NodeReader& node) {
  const int64_t targets = COLLAGE_TRY(ReadTargets(node));
  Ensemble ensemble = COLLAGE_TRY(ReadNumberedEnsemble(node, "target", targets));
  ensemble.aggregate = COLLAGE_TRY(node.String("aggregate_function", "SUM"));
  COLLAGE_TRY(PlaceOf(ensemble.aggregate, kAggregates, "aggregate_function"));
  const std::string transform = COLLAGE_TRY(ScoreTransform(node));
  const std::vector<double> base = COLLAGE_TRY(FloatsOrTensor(node, "base_values"));
  const DType dtype = COLLAGE_TRY(DTypeOfNumbers(node));
  Formula formula(node, dtype);
  Expr scores = COLLAGE_TRY(Walk(node, ensemble, dtype).Scores(COLLAGE_TRY(node.Input(0))));
  if (!base.empty()) {
    COLLAGE_TRY_STATUS(CheckLength("base_values", base.size(), static_cast<size_t>(targets)));
    scores = formula.Call("add", scores, Row(formula, base));
  }
  return formula.Done(formula.Cast(Transformed(formula, transform, scores), DType::kFloat32));
}

/// The leaves that a tree may lead to.
std::set<int64_t> LeavesOf(const Ensemble& ensemble, int64_t root) {
  const auto branches = static_cast<int64_t>(ensemble.branches.size());
  std::set<int64_t> leaves;
  std::set<int64_t> seen{root};
  std::vector<int64_t> pending{root};
  while (!pending.empty()) {
    const int64_t place = pending.back();
    pending.pop_back();
    if (place >= branches) {
      leaves.insert(place - branches);
      continue;
    }
    const Branch& branch = ensemble.branches[static_cast<size_t>(place)];
    for (const int64_t child : {branch.if_true, branch.if_false}) {
      if (seen.insert(child).second) pending.push_back(child);
    }
  }
  return leaves;
}

/// Whether some row may go to leaves none of which votes for some class: no tree does so with each of its leaves.
bool MayLackVotes(const Ensemble& ensemble) {
  std::map<int64_t, size_t> tree_of;
  std::vector<size_t> sizes;
  for (const int64_t root : ensemble.roots) {
    const std::set<int64_t> leaves = LeavesOf(ensemble, root);
    for (const int64_t leaf : leaves) tree_of[leaf] = sizes.size();
    sizes.push_back(leaves.size());
  }
  std::set<std::pair<int64_t, int64_t>> voters;  // leaves and the classes that they vote for
  std::map<std::pair<size_t, int64_t>, size_t> counts;
  std::set<int64_t> certain;
  for (const Vote& vote : ensemble.votes) {
    const auto tree = tree_of.find(vote.leaf);
    if (tree == tree_of.end() || !voters.emplace(vote.leaf, vote.target).second) continue;
    if (++counts[{tree->second, vote.target}] == sizes[tree->second]) certain.insert(vote.target);
  }
  return static_cast<int64_t>(certain.size()) < ensemble.targets;
}

/// The class of the highest score among those that a row has votes for; as ONNX Runtime has it, others are none, even where all have
/// negative scores.
Result<Expr> HighestClass(NodeReader& node, Formula& formula, const Ensemble& ensemble, const Expr& scores) {
  const bool is_positive = std::all_of(ensemble.votes.begin(), ensemble.votes.end(), [](const Vote& vote) { return vote.weight > 0; });
  if (is_positive || !MayLackVotes(ensemble)) return formula.Reduce("argmax", scores, {1}, false);
  Ensemble counts = ensemble;
  for (Vote& vote : counts.votes) vote.weight = 1;
  const Expr votes = COLLAGE_TRY(Walk(node, counts, formula.dtype()).Scores(COLLAGE_TRY(node.Input(0))));
  const Expr has_votes = formula.Call("greater", votes, 0.0);
  const Expr eligible = formula.Call("where", has_votes, scores, -std::numeric_limits<double>::infinity());
  return formula.Reduce("argmax", eligible, {1}, false);
}

/// The label of the highest score, and all scores. Of two classes one alone may have weights: then they are the second one's, of which no
/// negative one makes it shares of one, and others margins.
Result<std::vector<Expr>> ReadTreeEnsembleClassifier(NodeReader& node) {
  const Tensor labels = COLLAGE_TRY(ClassLabels(node, "classlabels_int64s"));
  const int64_t classes = labels.ElementCount();
  const Ensemble ensemble = COLLAGE_TRY(ReadNumberedEnsemble(node, "class", classes));
  const std::string transform = COLLAGE_TRY(ScoreTransform(node));
  const std::vector<double> base = COLLAGE_TRY(FloatsOrTensor(node, "base_values"));
  const DType dtype = COLLAGE_TRY(DTypeOfNumbers(node));
  std::set<int64_t> with_weights;
  for (const Vote& vote : ensemble.votes) with_weights.insert(vote.target);
  const bool is_binary = classes == 2 && with_weights.size() == 1;
  Formula formula(node, dtype);
  Expr scores = COLLAGE_TRY(Walk(node, ensemble, dtype).Scores(COLLAGE_TRY(node.Input(0))));
  Expr place;
  if (is_binary) {
    if (base.size() > 1)
      return Fail("attribute 'base_values' has " + std::to_string(base.size()) + " elements, expected 1 where one class has weights");
    Expr positive = formula.Slice(scores, 1, *with_weights.begin(), *with_weights.begin() + 1);
    if (!base.empty()) positive = formula.Call("add", positive, base.front());
    const bool is_share = std::all_of(ensemble.votes.begin(), ensemble.votes.end(), [](const Vote& vote) { return vote.weight >= 0; });
    place = formula.Reshape(formula.Cast(formula.Call("greater", positive, is_share ? 0.5 : 0.0), DType::kInt64),
                            {Formula::ShapeOf(positive)[0]});
    // As ONNX Runtime has it: other functions than LOGISTIC are for more classes.
    const bool is_logistic = transform == "LOGISTIC";
    const Expr other = is_share && !is_logistic ? formula.Call("subtract", 1.0, positive) : formula.Call("negative", positive);
    scores = formula.Concatenate({other, positive}, 1);
    if (is_logistic) scores = Transformed(formula, transform, scores);
  } else {
    if (base.empty()) {
      place = COLLAGE_TRY(HighestClass(node, formula, ensemble, scores));
    } else {
      COLLAGE_TRY_STATUS(CheckLength("base_values", base.size(), static_cast<size_t>(classes)));
      scores = formula.Call("add", scores, Row(formula, base));
      place = formula.Reduce("argmax", scores, {1}, false);
    }
    scores = Transformed(formula, transform, scores);
  }
  const Expr label = formula.Apply("take", {MakeConstant(labels), place}, {{"axis", 0}});
  return formula.DoneAll({label, formula.Cast(scores, DType::kFloat32)});
}

}  // namespace

OperatorFamily TreeEnsembleFamily() {
  static constexpr ReadRow kRead[] = {{"ai.onnx.ml.TreeEnsemble", ReadTreeEnsemble},
                                      {"ai.onnx.ml.TreeEnsembleClassifier", ReadTreeEnsembleClassifier},
                                      {"ai.onnx.ml.TreeEnsembleRegressor", ReadTreeEnsembleRegressor}};
  return {kRead, {}};
}

}  // namespace collage::onnx_io
