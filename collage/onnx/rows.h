#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "collage/ir/expr.h"

namespace collage::onnx_io {

class NodeReader;
class NodeWriter;

/// How a node of an ONNX operator is read: its outputs in order. Trailing ones that are not supported may be left out; a node
/// that reads one of them is an error then.
struct ReadRow {
  std::string_view op_type;  ///< of another domain than the default one: "com.microsoft.Gelu"
  Result<std::vector<Expr>> (*read)(NodeReader& node);
  bool takes_sequences = false;  ///< and optionals without a value (sequence.h); inputs of other operators are tensors
};

/// How a call of one of our operators is written: it emits the nodes that give the outputs of the call.
struct WriteRow {
  std::string_view op;
  Status (*write)(NodeWriter& writer);
  int64_t since = 0;  ///< the operator set in which what is written came, where that is younger than kWrittenOpset (writer.h)
};

/// The operators of one family, ONNX to Relay and back.
struct OperatorFamily {
  std::span<const ReadRow> read;
  std::span<const WriteRow> write;
};

OperatorFamily ConvolutionFamily();
OperatorFamily PoolingFamily();
OperatorFamily NormalizationFamily();
OperatorFamily MatrixFamily();
OperatorFamily ActivationFamily();
OperatorFamily ElementwiseFamily();
OperatorFamily ArithmeticFamily();
OperatorFamily ReductionFamily();
OperatorFamily ShapeFamily();
OperatorFamily IndexingFamily();
OperatorFamily JoiningFamily();
OperatorFamily SequenceFamily();
OperatorFamily ConstantFamily();
OperatorFamily ResizingFamily();
OperatorFamily SelectionFamily();
OperatorFamily ScatteringFamily();
OperatorFamily AttentionFamily();
OperatorFamily LossFamily();
OperatorFamily QuantizationFamily();
OperatorFamily RecurrentFamily();
OperatorFamily SignalFamily();
OperatorFamily SamplingFamily();
OperatorFamily PatchFamily();
OperatorFamily RandomFamily();
OperatorFamily KnownValuesFamily();
OperatorFamily NgramsFamily();
OperatorFamily StringFamily();
OperatorFamily MachineLearningFamily();
OperatorFamily TreeEnsembleFamily();
OperatorFamily LinearModelFamily();
OperatorFamily ContribFamily();
OperatorFamily ContribAttentionFamily();
OperatorFamily ContribQuantizationFamily();
OperatorFamily ContribExpertsFamily();
OperatorFamily ContribGatesFamily();
OperatorFamily ContribTensorsFamily();
OperatorFamily ControlFlowFamily();

/// Null where ONNX has the operator and Collage does not.
const ReadRow* FindReadRow(std::string_view op_type);
/// Null where ONNX has no form of the operator.
const WriteRow* FindWriteRow(std::string_view op);

}  // namespace collage::onnx_io
