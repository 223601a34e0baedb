#include "collage/onnx/writer.h"

#include "collage/ir/op_sequence.h"
#include "collage/onnx/graph_writer.h"
#include "collage/onnx/rows.h"
#include "collage/op/table.h"

namespace collage {

Result<std::string> WriteOnnx(const Function& function, const WriteOptions& options) {
  return onnx_io::GraphWriter(COLLAGE_TRY(ToOpSequence(function)), options).Write();
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
