#include "collage/onnx/rows.h"

#include <unordered_map>

namespace collage::onnx_io {
namespace {

struct Rows {
  std::unordered_map<std::string_view, const ReadRow*> read;
  std::unordered_map<std::string_view, const WriteRow*> write;

  Rows() {
    for (const OperatorFamily& family : {ConvolutionFamily(),   PoolingFamily(),      NormalizationFamily(),    MatrixFamily(),
                                         ActivationFamily(),    ElementwiseFamily(),  ArithmeticFamily(),       ReductionFamily(),
                                         ShapeFamily(),         IndexingFamily(),     JoiningFamily(),          ConstantFamily(),
                                         ResizingFamily(),      SelectionFamily(),    ScatteringFamily(),       AttentionFamily(),
                                         LossFamily(),          QuantizationFamily(), RecurrentFamily(),        SignalFamily(),
                                         SamplingFamily(),      PatchFamily(),        RandomFamily(),           KnownValuesFamily(),
                                         NgramsFamily(),        ContribFamily(),      ContribAttentionFamily(), ContribQuantizationFamily(),
                                         ControlFlowFamily(),   SequenceFamily(),     StringFamily(),           MachineLearningFamily(),
                                         TreeEnsembleFamily(),  LinearModelFamily(),  ContribExpertsFamily(),   ContribGatesFamily(),
                                         ContribTensorsFamily()}) {
      for (const ReadRow& row : family.read) read.emplace(row.op_type, &row);
      for (const WriteRow& row : family.write) write.emplace(row.op, &row);
    }
  }
};

const Rows& AllRows() {
  static const Rows rows;
  return rows;
}

template <class Row>
const Row* Find(const std::unordered_map<std::string_view, const Row*>& rows, std::string_view name) {
  const auto found = rows.find(name);
  return found == rows.end() ? nullptr : found->second;
}

}  // namespace

const ReadRow* FindReadRow(std::string_view op_type) { return Find(AllRows().read, op_type); }
const WriteRow* FindWriteRow(std::string_view op) { return Find(AllRows().write, op); }

}  // namespace collage::onnx_io
