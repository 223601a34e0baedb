#include "collage/query/conditions_json.h"

#include <algorithm>
#include <optional>

#include "collage/op/table.h"
#include "collage/pattern/attribute_defaults.h"

namespace collage {
namespace {

struct Condition {
  std::vector<int64_t> path;
  std::string attribute;  // empty: the batch is meant
  AttributeValue equals;
  int64_t batch = 0;
};

Expr Follow(Expr expr, const std::vector<int64_t>& path) {
  for (const int64_t position : path) {
    const auto index = static_cast<size_t>(position);
    if (const Call* call = expr->As<Call>(); call && index < call->args.size()) {
      expr = call->args[index];
    } else if (const Tuple* tuple = expr->As<Tuple>(); tuple && index < tuple->fields.size()) {
      expr = tuple->fields[index];
    } else if (const TupleGetItem* item = expr->As<TupleGetItem>(); item && index == 0) {
      expr = item->tuple;
    } else {
      return nullptr;
    }
  }
  return expr;
}

Verdict Test(const Condition& condition, const Match& match) {
  const Expr expr = Follow(match.root, condition.path);
  if (!expr) return Verdict::Reject("the path of the check leads nowhere");
  if (condition.attribute.empty()) {
    const TensorType* type = expr->type().AsTensor();
    if (type && !type->shape.empty() && type->shape[0] == condition.batch) return Verdict::Accept();
    return Verdict::Reject("the batch is not " + std::to_string(condition.batch));
  }
  const AttributeValue found = AttributeOrDefault(expr, condition.attribute);
  if (SameValue(found, condition.equals)) return Verdict::Accept();
  return Verdict::Reject(condition.attribute + " is " + ToString(found) + ", not " + ToString(condition.equals));
}

Result<Condition> ConditionFrom(const JsonReader& reader) {
  COLLAGE_TRY_STATUS(reader.OnlyFields({"path", "attribute", "equals", "batch_is"}));
  Condition condition;
  if (reader.Has("path")) {
    const JsonReader path = COLLAGE_TRY(reader.At("path"));
    condition.path = COLLAGE_TRY(path.Integers());
    if (std::any_of(condition.path.begin(), condition.path.end(), [](int64_t position) { return position < 0; })) {
      return path.Expected("argument positions, counted from 0");
    }
  }
  if (reader.Has("batch_is") == reader.Has("attribute")) return reader.Expected("either \"attribute\" with \"equals\", or \"batch_is\"");
  if (reader.Has("batch_is")) {
    condition.batch = static_cast<int64_t>(COLLAGE_TRY(COLLAGE_TRY(reader.At("batch_is")).Count()));
    return condition;
  }
  condition.attribute = COLLAGE_TRY(COLLAGE_TRY(reader.At("attribute")).String());
  if (condition.attribute.empty()) return reader.Wrong("\"attribute\" is empty, expected the name of an attribute");
  condition.equals = COLLAGE_TRY(AttributeValueFrom(COLLAGE_TRY(reader.At("equals"))));
  return condition;
}

struct Support {
  std::string operator_name;
  std::optional<DType> argument_dtype;
};

Result<Support> SupportFrom(const JsonReader& reader) {
  Support support;
  if (reader.IsObject()) COLLAGE_TRY_STATUS(reader.OnlyFields({"operator", "argument_dtype"}));
  const JsonReader name = reader.IsString() ? reader : COLLAGE_TRY(reader.At("operator"));
  support.operator_name = COLLAGE_TRY(name.String());
  if (support.operator_name != "*" && !Operators().Find(support.operator_name)) {
    return name.Wrong("there is no operator \"" + support.operator_name + "\"");
  }
  if (!reader.Has("argument_dtype")) return support;
  const JsonReader dtype = COLLAGE_TRY(reader.At("argument_dtype"));
  support.argument_dtype = DTypeFromName(COLLAGE_TRY(dtype.String()));
  if (!support.argument_dtype) return dtype.Wrong("there is no dtype \"" + *dtype.String() + "\"");
  return support;
}

bool Takes(const Support& support, const Expr& call) {
  if (support.operator_name != "*" && support.operator_name != CalledOp(call)->name) return false;
  if (!support.argument_dtype) return true;
  const std::vector<Expr>& args = call->As<Call>()->args;
  return std::all_of(args.begin(), args.end(), [&](const Expr& arg) {
    const std::vector<TensorType> tensors = FlattenTensors(arg->type());
    return std::all_of(tensors.begin(), tensors.end(), [&](const TensorType& tensor) { return tensor.dtype == *support.argument_dtype; });
  });
}

}  // namespace

Result<MatchCheck> CheckFrom(const JsonReader& reader) {
  std::vector<Condition> conditions;
  for (const JsonReader& item : reader.ItemsOrSelf()) conditions.push_back(COLLAGE_TRY(ConditionFrom(item)));
  return MatchCheck([conditions = std::move(conditions)](const Match& match) {
    for (const Condition& condition : conditions) {
      if (Verdict verdict = Test(condition, match); !verdict.accepted) return verdict;
    }
    return Verdict::Accept();
  });
}

Result<MatchCheck> OptionalCheck(const JsonReader& object) {
  if (!object.Has("check") || object.value()["check"].is_null()) return MatchCheck();
  return CheckFrom(COLLAGE_TRY(object.At("check")));
}

Result<CallPredicate> SupportsFrom(const JsonReader& reader) {
  std::vector<Support> supports;
  for (const JsonReader& item : reader.ItemsOrSelf()) supports.push_back(COLLAGE_TRY(SupportFrom(item)));
  return CallPredicate([supports = std::move(supports)](const Expr& call) {
    const bool taken = std::any_of(supports.begin(), supports.end(), [&](const Support& support) { return Takes(support, call); });
    return taken ? Verdict::Accept() : Verdict::Reject(CalledOp(call)->name + " is not supported");
  });
}

}  // namespace collage
