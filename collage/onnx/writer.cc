#include "collage/onnx/writer.h"

#include <algorithm>

#include "collage/ir/op_sequence.h"
#include "collage/ir/visit.h"
#include "collage/onnx/graph_writer.h"
#include "collage/onnx/rows.h"
#include "collage/op/table.h"

namespace collage {

Result<std::string> WriteOnnx(const Function& function, const WriteOptions& options) {
  WriteOptions adjusted = options;
  adjusted.opset = std::max(options.opset, WrittenOpset(function.body));
  return onnx_io::GraphWriter(COLLAGE_TRY(ToOpSequence(function)), adjusted).Write();
}

int64_t WrittenOpset(const Expr& expr) {
  int64_t opset = kWrittenOpset;
  PostOrder(expr, [&](const Expr& inner) {
    const OpDef* op = CalledOp(inner);
    const onnx_io::WriteRow* row = op == nullptr ? nullptr : onnx_io::FindWriteRow(op->name);
    if (row != nullptr) opset = std::max(opset, row->since);
  });
  return opset;
}

std::vector<std::string> OperatorsWithoutOnnxForm() {
  std::vector<std::string> names;
  for (const auto& op : Operators().records()) {
    // Where a value lies is nothing that a model says.
    if (!op->is_identity && onnx_io::FindWriteRow(op->name) == nullptr) names.push_back(op->name);
  }
  return names;
}

}  // namespace collage
