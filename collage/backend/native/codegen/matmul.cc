#include "collage/backend/native/codegen/operators.h"
#include "collage/backend/native/codegen/product.h"
#include "collage/op/matrix_product.h"

namespace collage::native {

using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::Var;

namespace {

using Step = OpSequence::Step;

// Element [batch, i, j] of an operand whose batch shape broadcasts to that of the product; i and j count as stored.
Expr OperandAt(Emitter& emitter, size_t value, const Shape& batch, const Shape& own_batch, const Expr& outer, const Expr& i,
               const Expr& j) {
  const Shape& shape = emitter.ShapeOf(value);
  const Index position = Regroup({Opaque(outer, ElementCount(batch))}, {ElementCount(batch)}, batch);
  Index index = Broadcast(position, own_batch);
  int64_t rows = 1;
  for (size_t d = own_batch.size(); d + 1 < shape.size(); ++d) rows *= shape[d];
  const Index leading =
      Regroup({Opaque(i, rows)}, {rows}, Shape(shape.begin() + static_cast<std::ptrdiff_t>(own_batch.size()), shape.end() - 1));
  index.insert(index.end(), leading.begin(), leading.end());
  index.push_back(Opaque(j, shape.back()));
  return emitter.Evaluate([&] { return emitter.At(value, index); });
}

// A constant matrix as panels [panel][k][column inside], the last one filled with zeros.
Tensor PackPanels(const Tensor& matrix, int64_t columns, int64_t depth, bool transposed, int64_t width) {
  const int64_t panels = (columns + width - 1) / width;
  Tensor packed(TensorType{{panels, depth, width}, DType::kFloat32});
  const float* from = matrix.Data<float>();
  float* to = packed.MutableData<float>();
  for (int64_t n = 0; n < columns; ++n) {
    for (int64_t k = 0; k < depth; ++k)
      to[(n / width * depth + k) * width + n % width] = from[transposed ? n * depth + k : k * columns + n];
  }
  return packed;
}

bool IsParameter(const Emitter& emitter, size_t value) {
  for (size_t parameter : emitter.sequence().parameters) {
    if (parameter == value) return true;
  }
  return false;
}

Status DefineMatrixProduct(Emitter& emitter, const Step& step, const MatrixProduct& product) {
  const size_t a = step.inputs[0];
  const size_t b = step.inputs[1];
  ProductSpec spec;
  spec.tile_rows = emitter.options().tile_rows;
  spec.tile_vectors = emitter.options().tile_vectors;
  spec.outer = ElementCount(product.batch);
  spec.rows = product.rows;
  spec.columns = product.columns;
  spec.reduction = {product.depth};
  spec.columns_outermost = true;
  const bool flat_batch = ElementCount(product.batch_b) == 1;
  if (flat_batch && ElementCount(product.batch_a) == spec.outer && !product.transpose_a && spec.outer > 1) {
    spec.rows *= spec.outer;  // one matrix for the whole batch: its rows are one long matrix
    spec.outer = 1;
  }
  const Shape batch = spec.outer == 1 && ElementCount(product.batch) > 1 ? Shape{} : product.batch;
  // Operands that are computed by expressions are computed once, not once a tile.
  const auto kept = [&](size_t value) -> std::shared_ptr<Emitter::Anchor> {
    if (IsParameter(emitter, value) || emitter.ConstantOf(value)) return nullptr;
    Emitter::Anchor anchor;
    anchor.result = emitter.MakeStage("operand", emitter.ShapeOf(value), [&](const Index& index) { return emitter.At(value, index); }, {});
    anchor.fits = [](const Stage&) { return false; };
    anchor.schedule = [&emitter](Stage& host) { emitter.SchedulePointwise(host); };
    return emitter.AddAnchor(std::move(anchor));
  };
  for (size_t value : {a, b}) {
    if (auto anchor = kept(value)) {
      const Shape shape = emitter.ShapeOf(value);
      emitter.Define(value, [anchor, shape](const Index& index) { return Emitter::CallAnchor(*anchor, index, shape); });
    }
  }
  const bool flattened = batch.empty() && !product.batch.empty();
  spec.left = [&emitter, a, product, batch, flattened](const Expr& outer, const Expr& row, const Expr&, const RDom& r) {
    const Shape own = flattened ? Shape{} : product.batch_a;
    return product.transpose_a ? OperandAt(emitter, a, batch, own, outer, r.x, row) : OperandAt(emitter, a, batch, own, outer, row, r.x);
  };
  const Tensor* constant = emitter.ConstantOf(b);
  spec.packed_columns = constant && flat_batch && constant->dtype() == DType::kFloat32;
  const int64_t width = PickTile(spec, emitter.VectorLanes(spec.type)).columns;
  if (spec.packed_columns) {
    const Halide::ImageParam panels = emitter.AddConstant([b, product, width](const OpSequence& sequence) {
      return PackPanels(*sequence.values[b].constant, product.columns, product.depth, product.transpose_b, width);
    });
    spec.right = [panels, width, depth = product.depth](const Expr&, const Expr&, const Expr& column, const RDom& r) {
      const int w = static_cast<int>(width);
      return panels(column / w * static_cast<int>(depth * width) + r.x * w + column % w);
    };
  } else {
    const Shape own = flattened ? Shape{} : product.batch_b;
    if (product.transpose_b && product.columns > 1) {
      // Vectors run over columns, so the matrix is turned round once.
      Func turned("turned");
      Var n("n"), k("k"), o("o");
      turned(n, k, o) = OperandAt(emitter, b, batch, own, o, n, k);
      turned.compute_root();
      spec.right = [turned](const Expr& outer, const Expr&, const Expr& column, const RDom& r) { return turned(column, r.x, outer); };
    } else {
      spec.right = [&emitter, b, product, batch, own](const Expr& outer, const Expr&, const Expr& column, const RDom& r) {
        return product.transpose_b ? OperandAt(emitter, b, batch, own, outer, column, r.x)
                                   : OperandAt(emitter, b, batch, own, outer, r.x, column);
      };
    }
  }
  emitter.DefineAnchor(step.outputs[0], MakeProduct(emitter, spec));
  return {};
}

template <auto read>
Status EmitProduct(Emitter& emitter, const Step& step) {
  return DefineMatrixProduct(emitter, step,
                             COLLAGE_TRY(read(emitter.TypeOf(step.inputs[0]), emitter.TypeOf(step.inputs[1]), step.attributes)));
}

}  // namespace

void AddMatmul(EmitTable& table) {
  table["nn.dense"] = EmitProduct<ReadDense>;
  table["nn.matmul"] = EmitProduct<ReadMatmul>;
  table["nn.batch_matmul"] = EmitProduct<ReadBatchMatmul>;
}

}  // namespace collage::native
