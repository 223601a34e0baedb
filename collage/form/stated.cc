#include "collage/form/stated.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <unordered_set>

#include "collage/dataflow/sub_graph.h"
#include "collage/ir/visit.h"
#include "collage/op/reference_sample.h"
#include "collage/op/table.h"

namespace collage {
namespace {

// A wrong replacement may be right for numbers of one sign. Six random ones are of one sign in one case of 32, which is rarer than the
// one of twenty in which other statements may be wrong (Declared). A tensor that has as many elements needs one sample.
constexpr int64_t kLeastNumbers = 6;

using Parameters = std::unordered_map<const ExprNode*, Expr>;

/// What is computed outside and the originals do not read, or what they compute themselves; null: nothing.
Expr ReadsWrongly(const DataflowGraph& graph, const Parameters& inputs, const Expr& replacement) {
  std::vector<Expr> pending = {replacement};
  std::unordered_set<const ExprNode*> seen;
  while (!pending.empty()) {
    const Expr expr = pending.back();
    pending.pop_back();
    if (inputs.contains(expr.get()) || !seen.insert(expr.get()).second) continue;
    const bool is_computed = !expr->As<Constant>() && !expr->As<Op>();
    if (is_computed && graph.Find(expr) != DataflowGraph::kNone) return expr;
    for (const Expr& child : Children(expr)) pending.push_back(child);
  }
  return nullptr;
}

/// Behind tuples and projections of them.
Expr GiverOf(Expr expr) {
  while (const TupleGetItem* item = expr->As<TupleGetItem>()) {
    const Tuple* tuple = item->tuple->As<Tuple>();
    expr = tuple ? tuple->fields.at(item->index) : item->tuple;
  }
  return expr;
}

/// A form stands for a tensor that a call gives, and gives it by a call of its own.
std::string WhyNoForm(const DataflowGraph& graph, const FormResult& result) {
  if (!CalledOp(result.original) || !result.original->type().AsTensor()) return "what it replaces is no call that gives one tensor";
  if (result.replacement->type() != result.original->type())
    return "makes " + ToString(result.replacement->type()) + " of " + ToString(result.original->type());
  const Expr giver = GiverOf(result.replacement);
  return CalledOp(giver) && graph.Find(giver) == DataflowGraph::kNone ? "" : "its replacement computes nothing";
}

/// In which each input has as many numbers.
uint64_t SamplesOf(const std::vector<Expr>& parameters) {
  int64_t fewest = kLeastNumbers;
  for (const Expr& parameter : parameters) {
    for (const TensorType& tensor : FlattenTensors(parameter->type()))
      fewest = std::min(fewest, std::max(ElementCount(tensor.shape), int64_t{1}));
  }
  return static_cast<uint64_t>((kLeastNumbers + fewest - 1) / fewest);
}

Result<Verdict> Compared(const DataflowGraph& graph, const FoundForm& form, const InterpreterOptions& options) {
  const SubGraph covered(graph, form.covered);
  Parameters inputs;
  std::vector<Expr> parameters;
  for (const PostDfsIndex node : covered.input()) {
    if (graph[node].Is<Constant>()) continue;
    parameters.push_back(MakeVar("x" + std::to_string(parameters.size()), graph[node].expr->type()));
    inputs.emplace(graph[node].expr.get(), parameters.back());
  }
  std::vector<Expr> originals;
  std::vector<Expr> replacements;
  for (const FormResult& result : form.results) {
    if (std::string reason = WhyNoForm(graph, result); !reason.empty()) return Verdict::Reject(std::move(reason));
    if (const Expr read = ReadsWrongly(graph, inputs, result.replacement)) {
      const OpDef* op = CalledOp(read);
      return Verdict::Reject("its replacement reads " + (op ? "what " + op->name + " gives" : "a value of the program") +
                             ", which is none of the inputs of what it replaces");
    }
    originals.push_back(result.original);
    replacements.push_back(result.replacement);
  }
  const auto function_of = [&](std::vector<Expr> results) -> Result<Expr> {
    return MakeFunction(parameters, COLLAGE_TRY(Substitute(MakeTuple(std::move(results)), inputs)));
  };
  const Expr original = COLLAGE_TRY(function_of(std::move(originals)));
  const Expr replacement = COLLAGE_TRY(function_of(std::move(replacements)));
  const uint64_t samples = SamplesOf(parameters);
  for (uint64_t seed = 1; seed <= samples; ++seed) {
    // Inputs that suit the original alone: one that is wrong below zero, such as a square root, would have none there.
    const ReferenceSample sample = COLLAGE_TRY(SampleReference(original, seed, options));
    const std::vector<Tensor> found = COLLAGE_TRY(InterpretFunction(replacement, sample.inputs, options));
    for (size_t i = 0; i < found.size(); ++i) {
      const std::string objection = Objection(sample.CompareOutput(i, found[i]), sample.tolerance);
      if (!objection.empty()) return Verdict::Reject(objection);
    }
  }
  return Verdict::Accept();
}

}  // namespace

FormRule StatedForm(std::string name, Pattern pattern, std::function<Verdict(const Match&)> condition,
                    std::function<Result<std::vector<Expr>>(const std::vector<Match>&)> replacement) {
  FormRule rule{std::move(name), std::move(pattern), std::move(condition), std::move(replacement)};
  rule.is_stated = true;
  return rule;
}

std::vector<FormRule> AllForms(const std::vector<FormRule>& stated) {
  std::vector<FormRule> all = FormRules();
  all.insert(all.end(), stated.begin(), stated.end());
  return all;
}

Status CheckNamesOfStated(const std::vector<FormRule>& stated) {
  std::set<std::string> taken;
  for (const FormRule& rule : FormRules()) taken.insert(rule.name);
  for (const FormRule& rule : stated) {
    const auto is_right = [](char letter) { return std::isalnum(static_cast<unsigned char>(letter)) || letter == '_' || letter == '.'; };
    if (rule.name.empty() || !std::all_of(rule.name.begin(), rule.name.end(), is_right))
      return Fail("a form is named \"" + rule.name + "\", expected letters, digits, \"_\" and \".\"");
    if (!taken.insert(rule.name).second) return Fail("the name \"" + rule.name + "\" is that of another form");
  }
  return {};
}

Verdict ComputesTheSame(const DataflowGraph& graph, const FoundForm& form, const std::function<bool()>& should_stop) {
  InterpreterOptions options;
  options.should_stop = should_stop;
  const Result<Verdict> verdict = Compared(graph, form, options);
  return verdict ? *verdict : Verdict::Reject("could not be compared: " + verdict.error().message);
}

Result<Expr> WithConstantsComputed(const DataflowGraph& graph, const Expr& replacement) {
  const auto is_new = [&](const Expr& expr) { return !expr->As<Op>() && graph.Find(expr) == DataflowGraph::kNone; };
  const auto compute = [&](const Expr&, const Expr& expr) -> Result<Expr> {
    const Call* call = expr->As<Call>();
    const auto is_constant = [](const Expr& argument) { return argument->As<Constant>() != nullptr; };
    if (!call || !is_new(expr) || !expr->type().AsTensor() || call->args.empty() ||
        !std::all_of(call->args.begin(), call->args.end(), is_constant))
      return expr;
    const std::vector<Tensor> values = COLLAGE_TRY(InterpretFunction(COLLAGE_TRY(MakeFunction({}, expr)), {}));
    return MakeConstant(values.front());
  };
  return Rewrite(replacement, compute, is_new);
}

}  // namespace collage
