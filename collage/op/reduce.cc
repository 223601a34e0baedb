#include "collage/op/families.h"
#include "collage/op/kernels.h"
#include "collage/op/reduction.h"
#include "collage/op/rules.h"

namespace collage {
namespace {

/// `needs_elements`: the reduction of nothing is undefined.
OpDef::TypeRule ReduceType(bool needs_elements, bool gives_index) {
  return [=](TypeArguments arguments, const Attributes& attributes) -> Result<Type> {
    const TensorType data = COLLAGE_TRY(TensorArgument(arguments, 0, "data"));
    COLLAGE_TRY_STATUS(ExpectNumber(data, "data"));
    const Reduction reduction = COLLAGE_TRY(ReadReduction(data, attributes));
    if (needs_elements && ElementCount(reduction.result) > 0 && data.ElementCount() == 0)
      return Fail("data has shape " + ToString(data.shape) + ", expected extents of at least 1 along the axes reduced");
    return Type(TensorType{reduction.result, gives_index ? DType::kInt64 : data.dtype});
  };
}

Work ReduceWork(TypeArguments arguments, const Type& result, const Attributes&) {
  return {ElementCount(arguments[0]), ByteCount(arguments[0]) + ByteCount(result)};
}

OpDef Reduce(std::string name, std::string summary, bool needs_elements, OpDef::ReferenceKernel reference) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .argument_names = {"data"},
          .attributes = {{"axis", "ints", "axis or axes that are reduced, default all"},
                         {"keepdims", "bool", "reduced axes stay with extent 1, default False"},
                         {"exclude", "bool", "reduces the axes that are not named instead, default False"}},
          .kind = OpKind::kCommReduce,
          .infer_type = ReduceType(needs_elements, false),
          .work = ReduceWork,
          .reference = std::move(reference)};
}

OpDef ArgReduce(std::string name, std::string summary, OpDef::ReferenceKernel reference) {
  OpDef op = Reduce(std::move(name), std::move(summary), true, std::move(reference));
  op.attributes.push_back({"select_last_index", "bool", "of equal elements the last one counts, default False"});
  op.infer_type = ReduceType(true, true);
  return op;
}

}  // namespace

void AddReduceOperators(OpTable& table) {
  Register(table, Reduce("sum", "Sum; integers wrap around.", false, ReferenceSum));
  for (OpDef op : {Reduce("mean", "Mean; of integers towards zero.", true, ReferenceMean),
                   Reduce("max", "Largest element; NaN if any is.", true, ReferenceMax),
                   Reduce("min", "Smallest element; NaN if any is.", true, ReferenceMin)}) {
    op.is_within_arguments = true;
    Register(table, std::move(op));
  }
  Register(table, Reduce("prod", "Product; integers wrap around.", false, ReferenceProduct));
  const std::string index = " element as int64; with several axes, the row-major index in the block that they span.";
  Register(table, ArgReduce("argmax", "Index of the largest" + index, ReferenceArgMax));
  Register(table, ArgReduce("argmin", "Index of the smallest" + index, ReferenceArgMin));
}

}  // namespace collage
