#include "collage/onnx/writer.h"

#include "collage/ir/op_sequence.h"
#include "collage/onnx/graph_writer.h"

namespace collage {

Result<std::string> WriteOnnx(const Function& function, const WriteOptions& options) {
  return onnx_io::GraphWriter(COLLAGE_TRY(ToOpSequence(function)), options).Write();
}

}  // namespace collage
