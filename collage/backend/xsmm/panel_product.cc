#include "collage/backend/xsmm/panel_product.h"

#include "collage/backend/xsmm/tiling.h"

namespace collage::xsmm {

void PackColumns(const float* const* columns, int64_t count, int64_t depth, float* packed) {
  for (int64_t c = 0; c < count; ++c) {
    for (int64_t d = 0; d < depth; ++d) packed[d * count + c] = columns[c] ? columns[c][d] : 0;
  }
}

Result<PanelProduct> PanelProduct::Make(int64_t rows, int64_t depth, const ColumnPointers& columns, const InstructionSet& instructions,
                                        Operands& operands) {
  PanelProduct product;
  product.depth_ = depth;
  product.columns_ = static_cast<int64_t>(columns.size());
  product.row_tiles_ = CutEvenly(rows, kTileRows, 1);
  float* packed = operands.Allocate(depth * product.columns_);
  for (const auto& [first, count] : CutEvenly(product.columns_, instructions.panel_columns, instructions.lanes)) {
    product.panels_.push_back({first, count, packed});
    PackColumns(columns.data() + first, count, depth, packed);
    packed += depth * count;
    for (const auto& [row, tile_rows] : product.row_tiles_) {
      const std::pair<int64_t, int64_t> size(tile_rows, count);
      if (product.kernels_.contains(size)) continue;
      product.kernels_.emplace(size, COLLAGE_TRY(MicroKernel::Make({tile_rows, count, depth, depth, count, product.columns_})));
    }
  }
  return product;
}

void PanelProduct::Run(const float* data, float* result) const {
  for (const Panel& panel : panels_) {
    for (const auto& [row, rows] : row_tiles_)
      kernels_.at({rows, panel.count})(data + row * depth_, panel.weights, result + row * columns_ + panel.first);
  }
}

}  // namespace collage::xsmm
