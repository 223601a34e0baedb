#include "collage/transform/cancel_movement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "collage/ir/visit.h"
#include "collage/op/rules.h"
#include "collage/op/table.h"
#include "collage/transform/constants.h"
#include "collage/transform/function_pass.h"
#include "collage/transform/movement.h"

namespace collage {
namespace {

constexpr int64_t kInserted = Movement::kInserted;

const Shape* ShapeOf(const Expr& expr) {
  const TensorType* type = expr->type().AsTensor();
  return type ? &type->shape : nullptr;
}

enum class Kind { kNone, kPointwise, kBias, kConcatenation, kReduction };

bool IsReduction(const OpDef& op) {
  static const std::set<std::string> reductions = {"sum", "mean", "max", "min", "prod"};
  return reductions.contains(op.name);
}

/// Elements of the result depend on those of the arguments at the same place, and no attribute speaks of dimensions.
bool IsPointwise(const OpDef& op) {
  if ((op.kind != OpKind::kElementwise && op.kind != OpKind::kBroadcast) || op.is_view || op.is_identity) return false;
  return std::none_of(op.attributes.begin(), op.attributes.end(),
                      [](const AttributeSpec& spec) { return spec.form == "ints" || spec.form == "list" || spec.name == "axis"; });
}

/// The tensors that share the region's dimensions; constants among them. Those of a concatenation lie in its tuple.
std::vector<Expr> Operands(const Call& call, Kind kind) {
  if (kind == Kind::kConcatenation) return call.args[0]->As<Tuple>()->fields;
  return kind == Kind::kBias || kind == Kind::kReduction ? std::vector<Expr>{call.args[0]} : call.args;
}

Kind KindOf(const Expr& expr) {
  const OpDef* op = CalledOp(expr);
  const Shape* shape = ShapeOf(expr);
  if (!op || !shape) return Kind::kNone;
  const Call& call = *expr->As<Call>();
  Kind kind = Kind::kNone;
  if (op->name == "nn.bias_add") {
    kind = Kind::kBias;
  } else if (op->name == "concatenate") {
    kind = call.args[0]->As<Tuple>() ? Kind::kConcatenation : Kind::kNone;
  } else if (IsReduction(*op)) {
    const bool keeps = BoolAttribute(call.attributes, "keepdims", false) && !BoolAttribute(call.attributes, "exclude", false);
    kind = keeps ? Kind::kReduction : Kind::kNone;
  } else if (IsPointwise(*op) || ((op->name == "qnn.quantize" || op->name == "qnn.dequantize") && HasOneScale(expr))) {
    kind = Kind::kPointwise;
  }
  if (kind == Kind::kNone) return kind;
  bool computes = false;
  for (const Expr& operand : Operands(call, kind)) {
    const Shape* of_operand = ShapeOf(operand);
    if (!of_operand) return Kind::kNone;
    if (AsConstant(operand)) continue;
    computes = true;
    if (of_operand->size() != shape->size()) return Kind::kNone;
  }
  return computes ? kind : Kind::kNone;
}

struct Cost {
  double bytes = 0;
  int64_t views = 0;
  void Add(const Movement& movement, const Expr& moved, int sign) {
    if (movement.IsView())
      views += sign;
    else
      bytes += sign * static_cast<double>(moved->type().AsTensor()->ByteCount());
  }
  [[nodiscard]] bool IsLess() const { return bytes < 0 || (bytes == 0 && views < 0); }
};

class Canceller {
 public:
  explicit Canceller(const Expr& function) : function_(function), order_(PostOrderList(function)) {}

  Result<Expr> Run() {
    FindRegions();
    FindUsers();
    for (const auto& [root, members] : members_) Decide(root, members);
    return Rewrite(
        function_, [&](const Expr& original, const Expr& expr) { return Moved(original, expr); }, MayEnter);
  }

 private:
  void FindRegions() {
    for (const Expr* expr : order_) {
      const Kind kind = KindOf(*expr);
      if (kind == Kind::kNone) continue;
      const size_t number = parents_.size();
      parents_.push_back(number);
      number_.emplace(expr->get(), number);
      kinds_.push_back(kind);
      nodes_.push_back(expr);
      for (const Expr& operand : Operands(*(*expr)->As<Call>(), kind)) {
        const auto found = number_.find(operand.get());
        if (found != number_.end()) parents_[RootOf(found->second)] = RootOf(number);
      }
    }
    for (size_t i = 0; i < nodes_.size(); ++i) members_[RootOf(i)].push_back(i);
  }

  size_t RootOf(size_t number) {
    while (parents_[number] != number) number = parents_[number] = parents_[parents_[number]];
    return number;
  }

  // A concatenation uses the fields of its tuple.
  void FindUsers() {
    std::unordered_set<const ExprNode*> passed;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (kinds_[i] == Kind::kConcatenation) passed.insert((*nodes_[i])->As<Call>()->args[0].get());
    }
    for (const Expr* expr : order_) {
      const auto number = number_.find(expr->get());
      if (number != number_.end() && kinds_[number->second] == Kind::kConcatenation) {
        for (const Expr& field : Operands(*(*expr)->As<Call>(), Kind::kConcatenation)) users_[field.get()].insert(expr->get());
        continue;
      }
      ForEachChild(**expr, [&](const Expr& child) {
        if (!passed.contains(expr->get())) users_[child.get()].insert(expr->get());
        // Somebody else has the tuple as such.
        if (passed.contains(child.get())) {
          for (const Expr& field : child->As<Tuple>()->fields) users_[field.get()].insert(expr->get());
        }
      });
    }
    for (const Expr* expr : order_) expr_of_.emplace(expr->get(), expr);
  }

  bool IsIn(const ExprNode* node, size_t root) {
    const auto number = number_.find(node);
    return number != number_.end() && RootOf(number->second) == root;
  }

  void Decide(size_t root, const std::vector<size_t>& members) {
    // By how much less is moved: what most of the inputs come through.
    std::map<Movement, Cost> through;
    std::unordered_set<const ExprNode*> seen;
    for (const size_t member : members) {
      for (const Expr& operand : Operands(*(*nodes_[member])->As<Call>(), kinds_[member])) {
        const std::optional<Movement> movement = MovementOf(operand);
        if (movement && seen.insert(operand.get()).second) through[*movement].Add(*movement, operand, 1);
      }
    }
    const auto most = std::max_element(through.begin(), through.end(), [](const auto& a, const auto& b) {
      return std::tie(a.second.bytes, a.second.views) < std::tie(b.second.bytes, b.second.views);
    });
    if (most == through.end() || !MayBeBefore(most->first, members)) return;
    if (Change(root, most->first, members).IsLess()) movement_.emplace(root, most->first);
  }

  // Whether every value and attribute has its place before the movement.
  bool MayBeBefore(const Movement& movement, const std::vector<size_t>& members) const {
    const auto fits = [&](const Expr& value) {
      const Shape& shape = *ShapeOf(value);
      if (shape.size() > movement.source.size()) return false;
      const size_t missing = movement.source.size() - shape.size();  // of a constant's dimensions, which are as of extent 1
      for (size_t i = 0; i < shape.size(); ++i) {
        if (movement.source[missing + i] == kInserted && shape[i] != 1) return false;
      }
      return true;
    };
    return std::all_of(members.begin(), members.end(), [&](size_t member) {
      const Expr& node = *nodes_[member];
      const Call& call = *node->As<Call>();
      if (ShapeOf(node)->size() != movement.source.size() || !fits(node)) return false;
      const std::vector<Expr> operands = Operands(call, kinds_[member]);
      if (!std::all_of(operands.begin(), operands.end(), fits)) return false;
      const std::vector<int64_t> axes = AxesOf(call, kinds_[member]);
      return std::all_of(axes.begin(), axes.end(), [&](int64_t axis) { return movement.source[static_cast<size_t>(axis)] != kInserted; });
    });
  }

  // The dimensions that an operator's attributes name, all from the front.
  static std::vector<int64_t> AxesOf(const Call& call, Kind kind) {
    const Expr& data = kind == Kind::kConcatenation ? call.args[0]->As<Tuple>()->fields[0] : call.args[0];
    const auto rank = static_cast<int64_t>(ShapeOf(data)->size());
    std::vector<int64_t> axes;
    if (kind == Kind::kBias) axes = {IntAttribute(call.attributes, "axis", 1)};
    if (kind == Kind::kConcatenation) axes = {IntAttribute(call.attributes, "axis", 0)};
    if (kind == Kind::kReduction) {
      axes = IntsAttribute(call.attributes, "axis", {});
      if (!HasAttribute(call.attributes, "axis")) {
        axes.resize(static_cast<size_t>(rank));
        std::iota(axes.begin(), axes.end(), 0);
      }
    }
    for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
    return axes;
  }

  // A reduction that drops its dimensions, and leaves the others in the same order before the movement as behind it.
  static bool Absorbs(const Expr& user, const Movement& movement) {
    const OpDef* op = CalledOp(user);
    if (!op || !IsReduction(*op) || BoolAttribute(user->As<Call>()->attributes, "exclude", false)) return false;
    const std::vector<int64_t> axes = AxesOf(*user->As<Call>(), Kind::kReduction);
    std::vector<int64_t> kept;
    for (size_t i = 0; i < movement.source.size(); ++i) {
      const bool is_reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
      // What is dropped before may not be there behind, and the other way round.
      if (movement.source[i] == kInserted) return false;
      if (!is_reduced) kept.push_back(movement.source[i]);
    }
    return movement.source_rank == static_cast<int64_t>(movement.source.size()) && std::is_sorted(kept.begin(), kept.end());
  }

  Cost Change(size_t root, const Movement& movement, const std::vector<size_t>& members) {
    const Movement inverse = movement.Inverse();
    Cost change;
    std::unordered_set<const ExprNode*> seen;
    for (const size_t member : members) {
      const Expr& node = *nodes_[member];
      for (const Expr& operand : Operands(*node->As<Call>(), kinds_[member])) {
        if (AsConstant(operand) || IsIn(operand.get(), root) || !seen.insert(operand.get()).second) continue;
        if (MovementOf(operand) != movement) {
          change.Add(inverse, operand, 1);
          continue;
        }
        const auto& users = users_[operand.get()];
        if (std::all_of(users.begin(), users.end(), [&](const ExprNode* user) { return IsIn(user, root); }))
          change.Add(movement, operand, -1);
      }
      bool is_moved = false;
      for (const ExprNode* user : users_[node.get()]) {
        if (IsIn(user, root)) continue;
        const Expr& expr = *expr_of_.at(user);
        const std::optional<Movement> next = MovementOf(expr);
        if (next == inverse)
          change.Add(inverse, expr, -1);
        else if (!(next && next->IsView() == movement.IsView()) && !Absorbs(expr, movement))  // two movements of a kind are one
          is_moved = true;
      }
      if (is_moved) change.Add(movement, node, 1);
    }
    return change;
  }

  Result<Expr> Moved(const Expr& original, const Expr& expr) {
    const auto number = number_.find(original.get());
    if (number != number_.end()) {
      const auto movement = movement_.find(RootOf(number->second));
      return movement == movement_.end() ? Result<Expr>(expr) : Before(number->second, movement->second, expr);
    }
    const Call* call = CalledOp(expr) ? expr->As<Call>() : nullptr;
    const auto before = call && !call->args.empty() ? before_.find(call->args[0].get()) : before_.end();
    if (before == before_.end()) {
      const std::optional<Movement> movement = call && !call->args.empty() ? MovementOf(call->args[0]) : std::nullopt;
      return movement && Absorbs(expr, *movement) ? Absorbed(expr, *movement, call->args[0]->As<Call>()->args[0]) : expr;
    }
    const Movement& movement = *before->second.movement;
    if (MovementOf(expr) == movement.Inverse()) return before->second.value;
    return Absorbs(expr, movement) ? Absorbed(expr, movement, before->second.value) : expr;
  }

  // A reduction of what `before` is behind the movement.
  static Result<Expr> Absorbed(const Expr& reduction, const Movement& movement, const Expr& before) {
    const Call& call = *reduction->As<Call>();
    std::vector<int64_t> axes = AxesOf(call, Kind::kReduction);
    for (int64_t& axis : axes) axis = movement.source[static_cast<size_t>(axis)];
    std::sort(axes.begin(), axes.end());
    Attributes attributes = call.attributes;
    attributes.Set("axis", axes);
    return MakeCall(CalledOp(reduction), {before}, std::move(attributes), reduction->origin());
  }

  // The node as computed before the movement, and the movement behind it for whoever is not of the region.
  Result<Expr> Before(size_t number, const Movement& movement, const Expr& expr) {
    const Call& call = *expr->As<Call>();
    const Kind kind = kinds_[number];
    std::vector<Expr> operands;
    for (const Expr& operand : Operands(call, kind)) operands.push_back(COLLAGE_TRY(OperandBefore(operand, movement, expr->origin())));
    Attributes attributes = call.attributes;
    std::vector<int64_t> axes = AxesOf(call, kind);
    for (int64_t& axis : axes) axis = movement.source[static_cast<size_t>(axis)];
    std::sort(axes.begin(), axes.end());
    if (kind == Kind::kReduction && !axes.empty()) attributes.Set("axis", axes);
    if (kind == Kind::kBias || kind == Kind::kConcatenation) attributes.Set("axis", axes[0]);
    std::vector<Expr> args = std::move(operands);
    if (kind == Kind::kConcatenation) args = {MakeTuple(std::move(args))};
    if (kind == Kind::kBias) args.push_back(call.args[1]);
    const Expr value = COLLAGE_TRY(MakeCall(CalledOp(expr), std::move(args), std::move(attributes), expr->origin()));
    const Expr behind = COLLAGE_TRY(movement.Of(value, expr->origin()));
    before_.emplace(behind.get(), ValueBefore{behind, value, &movement});
    return behind;
  }

  Result<Expr> OperandBefore(const Expr& operand, const Movement& movement, const Origin& origin) {
    if (const Tensor* constant = AsConstant(operand)) return ConstantBefore(*constant, operand, movement);
    const auto before = before_.find(operand.get());
    if (before != before_.end() && *before->second.movement == movement) return before->second.value;
    if (MovementOf(operand) == movement) return operand->As<Call>()->args[0];
    return movement.Inverse().Of(operand, origin);
  }

  // Broadcast as before: dimensions of extent 1 in front of all others may be left out.
  static Result<Expr> ConstantBefore(const Tensor& constant, const Expr& expr, const Movement& movement) {
    Shape shape = constant.shape();
    if (shape.empty()) return expr;
    shape.insert(shape.begin(), movement.source.size() - shape.size(), 1);
    const auto evaluate = [&](const char* op, const Tensor& tensor, const Attributes& attributes) -> Result<Tensor> {
      const Expr call = COLLAGE_TRY(MakeCall(Operators().Find(op), {MakeConstant(tensor)}, attributes));
      std::vector<Tensor> result = {Tensor(*call->type().AsTensor())};
      CalledOp(call)->reference(std::vector<Tensor>{tensor}, attributes, result);
      return std::move(result[0]);
    };
    Tensor moved = constant;
    const Movement inverse = movement.Inverse();
    Shape before;
    for (const int64_t dimension : inverse.source) before.push_back(dimension == kInserted ? 1 : shape[static_cast<size_t>(dimension)]);
    if (!inverse.IsView()) {
      moved = COLLAGE_TRY(evaluate("reshape", moved, {{"newshape", shape}}));
      moved = COLLAGE_TRY(evaluate("transpose", moved, {{"axes", inverse.source}}));
    }
    before.erase(before.begin(), std::find_if(before.begin(), before.end(), [](int64_t extent) { return extent != 1; }));
    if (before.empty()) before = {1};
    moved = COLLAGE_TRY(evaluate("reshape", moved, {{"newshape", before}}));
    return WithOrigin(MakeConstant(std::move(moved)), expr->origin());
  }

  struct ValueBefore {
    Expr behind;  // held, so that its address stays its own
    Expr value;
    const Movement* movement;
  };

  const Expr& function_;
  std::vector<const Expr*> order_;
  // Operators of regions, by number.
  std::vector<const Expr*> nodes_;
  std::vector<Kind> kinds_;
  std::vector<size_t> parents_;  // in the forest of regions
  std::unordered_map<const ExprNode*, size_t> number_;
  std::map<size_t, std::vector<size_t>> members_;  // by root
  std::unordered_map<const ExprNode*, std::set<const ExprNode*>> users_;
  std::unordered_map<const ExprNode*, const Expr*> expr_of_;
  std::map<size_t, Movement> movement_;  // of regions that are computed before it, by root
  std::unordered_map<const ExprNode*, ValueBefore> before_;
};

}  // namespace

Result<IRModule> CancelMovement(const IRModule& module) {
  return RewriteFunctions(module, [](const Expr& function) { return Canceller(function).Run(); });
}

}  // namespace collage
