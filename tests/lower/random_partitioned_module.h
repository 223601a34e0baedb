#pragma once

#include <random>
#include <string>
#include <vector>

#include "collage/ir/module.h"
#include "collage/op/table.h"

namespace collage {

inline Expr CallOf(const char* op, std::vector<Expr> args, Attributes attributes = {}) {
  return *MakeCall(Operators().Find(op), std::move(args), std::move(attributes));
}

/// Main functions as a partitioner leaves them: Primitive function literals of several backends and variants, bare operators,
/// views, tuples and projections, constants.
class RandomPartitionedModule {
 public:
  explicit RandomPartitionedModule(unsigned seed) : random_(seed) {}

  IRModule Make() {
    std::vector<Expr> parameters;
    for (size_t i = 1 + random_() % 2; i > 0; --i) parameters.push_back(MakeVar("x" + std::to_string(i), RandomType()));
    available_ = parameters;
    for (size_t i = 2 + random_() % 15; i > 0; --i) available_.push_back(Next());
    Expr body = available_.back();
    if (random_() % 3 == 0) body = MakeTuple({body, Pick(), MakeTuple({Pick()})});
    return IRModule::FromMain(*MakeFunction(parameters, body));
  }

 private:
  /// All of 240 elements, so that anything can be reshaped into anything.
  Type RandomType() {
    static const std::vector<Shape> shapes = {{1, 20, 3, 4}, {2, 8, 5, 3}, {1, 240, 1, 1}, {12, 20}, {240}};
    return TensorType{shapes[random_() % shapes.size()], DType::kFloat32};
  }

  Expr Pick() { return random_() % 4 == 0 ? available_[random_() % available_.size()] : available_.back(); }

  /// Something of a type: an earlier expression, reshaped if need be.
  Expr PickOf(const Type& type) {
    Expr expr = Pick();
    return expr->type() == type ? expr : Reshaped(expr, type);
  }

  static Expr Reshaped(const Expr& expr, const Type& type) { return CallOf("reshape", {expr}, {{"newshape", type.AsTensor()->shape}}); }

  Expr RandomConstant(const Type& type) {
    Tensor tensor(*type.AsTensor());
    FillRandom(tensor, random_());
    return MakeConstant(std::move(tensor));
  }

  Expr Next() {
    const Type type = RandomType();
    switch (random_() % 8) {
      case 0:
        return Reshaped(Pick(), type);
      case 1:
        return CallOf("add", {PickOf(type), RandomConstant(type)});
      case 2:
        return SplitAndJoin();
      default:
        return Partition(type);
    }
  }

  /// A bare operator with a tuple result, projections, and one with a tuple argument.
  Expr SplitAndJoin() {
    const Expr pieces = CallOf("split", {PickOf(TensorType{{12, 20}, DType::kFloat32})}, {{"indices_or_sections", 2}, {"axis", 0}});
    return CallOf("concatenate", {MakeTuple({*MakeTupleGetItem(pieces, 1), *MakeTupleGetItem(pieces, 0)})}, {{"axis", 0}});
  }

  Expr Partition(const Type& type) {
    const Expr a = MakeVar("a", type);
    const Expr b = MakeVar("b", type);
    const bool is_sum = random_() % 2 == 0;
    Expr body = CallOf("add", {a, b});
    // Artifacts of the test backend hold no tensors.
    const bool artifact = random_() % 3 == 0;
    if (!is_sum) body = CallOf("tanh", {CallOf("multiply", {body, artifact ? a : RandomConstant(type)})});
    Attributes attributes{
        {"Primitive", 1}, {"Compiler", artifact ? "machine" : "library"}, {"global_symbol", "p" + std::to_string(count_++)}};
    static const std::vector<std::string> variants = {"plain", "acdb", "aBcd16b"};
    if (is_sum && random_() % 2 == 0) {
      attributes.Set("Variant", "accumulate");
    } else if (random_() % 4 != 0) {
      attributes.Set("Variant", variants[random_() % variants.size()]);
    }
    const bool two = !is_sum && random_() % 3 == 0;
    if (two) body = MakeTuple({body, CallOf("negative", {a})});
    const Expr first = PickOf(type);
    const Expr second = random_() % 6 == 0 ? RandomConstant(type) : PickOf(type);
    Expr call = *MakeCall(*MakeFunction({a, b}, body, attributes), {first, second});
    if (!two) return call;
    available_.push_back(*MakeTupleGetItem(call, 0));
    return *MakeTupleGetItem(call, 1);
  }

  std::mt19937 random_;
  std::vector<Expr> available_;
  size_t count_ = 0;
};

}  // namespace collage
