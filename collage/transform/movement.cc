#include "collage/transform/movement.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "collage/op/rules.h"
#include "collage/op/table.h"

namespace collage {

bool Movement::IsView() const {
  std::vector<int64_t> kept = source;
  std::erase(kept, kInserted);
  return std::is_sorted(kept.begin(), kept.end());
}

Movement Movement::Inverse() const {
  Movement inverse{std::vector<int64_t>(static_cast<size_t>(source_rank), kInserted), static_cast<int64_t>(source.size())};
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != kInserted) inverse.source[static_cast<size_t>(source[i])] = static_cast<int64_t>(i);
  }
  return inverse;
}

Result<Expr> Movement::Of(Expr data, const Origin& origin) const {
  if (!IsView()) return MakeCall(Operators().Find("transpose"), {std::move(data)}, {{"axes", source}}, origin);
  std::vector<int64_t> dropped(static_cast<size_t>(source_rank));
  std::iota(dropped.begin(), dropped.end(), 0);
  std::erase_if(dropped, [&](int64_t dimension) { return std::find(source.begin(), source.end(), dimension) != source.end(); });
  if (!dropped.empty()) data = COLLAGE_TRY(MakeCall(Operators().Find("squeeze"), {std::move(data)}, {{"axis", dropped}}, origin));
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != kInserted) continue;
    data = COLLAGE_TRY(MakeCall(Operators().Find("expand_dims"), {std::move(data)}, {{"axis", static_cast<int64_t>(i)}}, origin));
  }
  return data;
}

std::optional<Movement> MovementOf(const Expr& expr) {
  const OpDef* op = CalledOp(expr);
  if (!op || (op->name != "transpose" && op->name != "squeeze" && op->name != "expand_dims")) return std::nullopt;
  const Call& call = *expr->As<Call>();
  const Shape& data = call.args[0]->type().AsTensor()->shape;
  const auto rank = static_cast<int64_t>(data.size());
  Movement movement{std::vector<int64_t>(data.size()), rank};
  std::iota(movement.source.begin(), movement.source.end(), 0);
  if (op->name == "transpose") {
    std::vector<int64_t> reversed(movement.source.rbegin(), movement.source.rend());
    movement.source = call.attributes.Ints("axes", reversed).value_or(reversed);
    for (int64_t& axis : movement.source) axis += axis < 0 ? rank : 0;
    // Nothing moves where the order stays.
    if (movement.IsView()) return std::nullopt;
  } else if (op->name == "squeeze") {
    const bool drops_all = !HasAttribute(call.attributes, "axis");
    std::vector<int64_t> axes = IntsAttribute(call.attributes, "axis", {});
    for (int64_t& axis : axes) axis += axis < 0 ? rank : 0;
    std::erase_if(movement.source, [&](int64_t dimension) {
      return drops_all ? data[static_cast<size_t>(dimension)] == 1 : std::find(axes.begin(), axes.end(), dimension) != axes.end();
    });
  } else {
    int64_t axis = IntAttribute(call.attributes, "axis", 0);
    axis += axis < 0 ? rank + 1 : 0;
    movement.source.insert(movement.source.begin() + axis, static_cast<size_t>(IntAttribute(call.attributes, "num_newaxis", 1)),
                           Movement::kInserted);
  }
  return movement;
}

}  // namespace collage
