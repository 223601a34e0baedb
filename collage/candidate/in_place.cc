#include "collage/candidate/in_place.h"

#include <algorithm>
#include <set>

#include "collage/backend/in_place.h"
#include "collage/candidate/rules.h"
#include "collage/op/axis_parts.h"
#include "collage/support/memory.h"
#include "collage/tensor/slice_offset.h"

namespace collage {
namespace {

/// What is computed when the program runs, through views. Inputs and constants lie where they lie.
bool IsComputed(const Expr& expr) {
  const Expr* source = &expr;
  while (true) {
    if (const TupleGetItem* projection = (*source)->As<TupleGetItem>()) {
      source = &projection->tuple;
      continue;
    }
    const OpDef* op = CalledOp(*source);
    if (!op) return false;
    if (!op->is_view) return true;
    source = &(*source)->As<Call>()->args[0];
  }
}

bool NeedsNoKernel(const DataflowGraph::Node& node) {
  if (!node.op) return false;
  const Call& call = *node.expr->As<Call>();
  const std::optional<AxisParts> parts = PartsAlongAxis(call, node.expr->type());
  if (!parts || parts->whole.dtype == DType::kString) return false;
  if (!parts->is_join) return !call.args[0]->As<Constant>();
  const Tuple* fields = call.args[0]->As<Tuple>();
  if (!fields || !std::all_of(fields->fields.begin(), fields->fields.end(), IsComputed)) return false;
  // A tensor has one place.
  std::set<const ExprNode*> distinct;
  for (const Expr& field : fields->fields) distinct.insert(field.get());
  return distinct.size() == fields->fields.size();
}

}  // namespace

SpecPointer InPlaceSpec() {
  static const auto spec = std::make_shared<const PartitionSpec>(PartitionSpec{kInPlace,
                                                                               {Target{DeviceKind::kCpu, {{"compiler", kInPlace}}}},
                                                                               PrimitiveRule(kInPlace, SinglesRule(NeedsNoKernel)),
                                                                               /*is_host=*/true});
  return spec;
}

bool IsInPlace(const CandidatePartition& candidate) { return candidate.spec->is_host && candidate.spec->name == kInPlace; }

bool LiesTogether(const Expr& call, const Layout& layout) {
  const std::optional<AxisParts> parts = PartsAlongAxis(*call->As<Call>(), call->type());
  if (!parts || !layout.Fits(parts->whole)) return false;
  for (size_t i = 0; i < parts->begins.size(); ++i) {
    const std::optional<size_t> offset = SliceOffset(parts->whole, layout, parts->axis, parts->begins[i], parts->extents[i]);
    if (!offset || *offset % kBufferAlignment != 0) return false;
  }
  return true;
}

}  // namespace collage
