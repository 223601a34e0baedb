#include <algorithm>
#include <optional>
#include <unordered_map>

#include "collage/form/rules.h"
#include "collage/op/axis_parts.h"

namespace collage {
namespace {

class Recomputations {
 public:
  explicit Recomputations(const DataflowGraph& graph) : graph_(graph) {}

  Result<std::vector<FoundForm>> Find() const {
    std::vector<FoundForm> found;
    for (PostDfsIndex node = 0; node < graph_.size(); ++node) {
      if (!IsCheap(node) || TakesNoTime(node)) continue;
      const std::optional<std::vector<PostDfsIndex>> users = UsersOf(node);
      const auto may_read_its_own = [&](PostDfsIndex user) { return MayBeMadeAgain(user) && !graph_[user].op->is_view; };
      if (!users || users->size() < 2 || !std::all_of(users->begin(), users->end(), may_read_its_own)) continue;
      const IndexSet cone = ConeOf(node);
      if (!cone.Empty()) found.push_back(COLLAGE_TRY(ComputedForEach(*users, cone)));
    }
    return found;
  }

 private:
  [[nodiscard]] bool MayBeMadeAgain(PostDfsIndex node) const {
    const DataflowGraph::Node& call = graph_[node];
    return call.op && call.block == 0 && !call.op->is_identity && call.expr->type().AsTensor();
  }
  /// A view, or what may lie in place.
  [[nodiscard]] bool TakesNoTime(PostDfsIndex node) const {
    return graph_[node].op->is_view || PartsAlongAxis(*graph_[node].expr->As<Call>(), graph_[node].expr->type());
  }
  /// No sum is computed twice.
  [[nodiscard]] bool IsCheap(PostDfsIndex node) const { return MayBeMadeAgain(node) && graph_[node].op->kind <= OpKind::kInjective; }

  /// The calls that read a call, ascending, also as a field of a tuple; none where something else uses it.
  [[nodiscard]] std::optional<std::vector<PostDfsIndex>> UsersOf(PostDfsIndex node) const {
    if (graph_[node].external) return std::nullopt;
    std::vector<PostDfsIndex> users;
    for (const PostDfsIndex output : graph_[node].outputs) {
      const bool is_tuple = graph_[output].Is<Tuple>() && !graph_[output].external;
      if (!is_tuple && !graph_[output].op) return std::nullopt;
      if (!is_tuple) users.push_back(output);
      for (size_t i = 0; is_tuple && i < graph_[output].outputs.size(); ++i) {
        if (!graph_[graph_[output].outputs[i]].op) return std::nullopt;
        users.push_back(graph_[output].outputs[i]);
      }
    }
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    return users;
  }

  [[nodiscard]] double BytesOf(PostDfsIndex node) const {
    double bytes = 0;
    for (const TensorType& type : FlattenTensors(graph_[node].expr->type())) bytes += static_cast<double>(type.ByteCount());
    return bytes;
  }

  /// Whether all that reads a call is in this set. Ends at the first that is not, so it takes no longer where many read it.
  [[nodiscard]] bool Serves(PostDfsIndex node, const IndexSet& set) const {
    const auto is_read_within = [&](PostDfsIndex reader) { return set.Contains(reader); };
    const auto is_within = [&](PostDfsIndex output) {
      const DataflowGraph::Node& read_by = graph_[output];
      const bool is_tuple = read_by.Is<Tuple>() && !read_by.external;
      return is_tuple ? std::all_of(read_by.outputs.begin(), read_by.outputs.end(), is_read_within) : set.Contains(output);
    };
    const DataflowGraph::Node& call = graph_[node];
    return !call.external && std::all_of(call.outputs.begin(), call.outputs.end(), is_within);
  }

  [[nodiscard]] std::vector<PostDfsIndex> InputsOf(const IndexSet& inside) const {
    IndexSet inputs;
    std::vector<PostDfsIndex> pending = inside.ToVector();
    while (!pending.empty()) {
      const PostDfsIndex node = pending.back();
      pending.pop_back();
      for (const PostDfsIndex input : graph_[node].inputs) {
        if (graph_[input].Is<Tuple>()) pending.push_back(input);
        if (!graph_[input].Is<Tuple>() && !graph_[input].inlined && !inside.Contains(input)) inputs.Add(input);
      }
    }
    return inputs.ToVector();
  }

  [[nodiscard]] double BytesRead(const IndexSet& inside) const {
    double bytes = 0;
    for (const PostDfsIndex input : InputsOf(inside)) bytes += BytesOf(input);
    return bytes;
  }

  /// The operator, and those in front of it that serve it alone, as far as reading more of them reads no more bytes; empty where the result
  /// is not larger than what is read: then it may as well be stored. With a user it is no more than a candidate may hold.
  [[nodiscard]] IndexSet ConeOf(PostDfsIndex result) const {
    IndexSet cone({result});
    double read = BytesRead(cone);
    for (bool grows = true; grows;) {
      grows = false;
      for (const PostDfsIndex input : InputsOf(cone)) {
        if (!IsCheap(input) || !Serves(input, cone)) continue;
        IndexSet larger = cone;
        larger.Add(input);
        if (const double with_input = BytesRead(larger); with_input <= read && larger.Count() < kMostOperatorsAroundForms) {
          read = with_input;
          cone = std::move(larger);
          grows = true;
        }
      }
    }
    return read < BytesOf(result) ? cone : IndexSet();
  }

  /// A call with what has an image in place of it.
  static Result<Expr> MadeAgain(const Expr& expr, const std::unordered_map<const ExprNode*, Expr>& image) {
    const auto image_of = [&](const Expr& argument) {
      const auto at = image.find(argument.get());
      return at == image.end() ? argument : at->second;
    };
    const Call& call = *expr->As<Call>();
    std::vector<Expr> arguments;
    for (const Expr& argument : call.args) {
      const Tuple* tuple = argument->As<Tuple>();
      std::vector<Expr> fields;
      for (size_t i = 0; tuple && i < tuple->fields.size(); ++i) fields.push_back(image_of(tuple->fields[i]));
      const bool has_changed = tuple && fields != tuple->fields;
      arguments.push_back(has_changed ? MakeTuple(std::move(fields)) : image_of(argument));
    }
    return MakeCall(call.callee, std::move(arguments), call.attributes, expr->origin());
  }

  [[nodiscard]] Result<FoundForm> ComputedForEach(const std::vector<PostDfsIndex>& users, const IndexSet& cone) const {
    FoundForm form{cone, {}};
    for (const PostDfsIndex user : users) {
      std::unordered_map<const ExprNode*, Expr> image;
      for (const PostDfsIndex node : cone.ToVector())
        image.emplace(graph_[node].expr.get(), COLLAGE_TRY(MadeAgain(graph_[node].expr, image)));
      form.results.push_back({graph_[user].expr, COLLAGE_TRY(MadeAgain(graph_[user].expr, image)), IndexSet({user})});
      form.covered.Add(user);
    }
    return form;
  }

  const DataflowGraph& graph_;
};

}  // namespace

FormRule RecomputationForm() {
  return {"recomputation", pattern::Wildcard(), {}, {}, {}, [](const DataflowGraph& graph) { return Recomputations(graph).Find(); }};
}

}  // namespace collage
