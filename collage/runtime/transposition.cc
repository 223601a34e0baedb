#include "collage/runtime/transposition.h"

#include <numeric>
#include <vector>

namespace collage {
namespace {

/// Dimensions that are neighbours in both layouts, as one.
struct Loop {
  int64_t extent;
  int64_t source_stride;
};

std::vector<size_t> OrderOf(const Layout& layout, size_t rank) {
  if (!layout.order().empty()) return layout.order();
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

/// As the target stores them, outermost first.
std::vector<Loop> LoopsOf(const Shape& shape, const Layout& from, const Layout& to) {
  std::vector<int64_t> source_strides(shape.size());
  int64_t stride = 1;
  const std::vector<size_t> source_order = OrderOf(from, shape.size());
  for (size_t i = shape.size(); i-- > 0; stride *= shape[source_order[i]]) source_strides[source_order[i]] = stride;
  std::vector<Loop> loops;
  for (const size_t d : OrderOf(to, shape.size())) {
    if (shape[d] == 1) continue;
    if (!loops.empty() && loops.back().source_stride == source_strides[d] * shape[d]) {
      loops.back() = {loops.back().extent * shape[d], source_strides[d]};
    } else {
      loops.push_back({shape[d], source_strides[d]});
    }
  }
  return loops;
}

}  // namespace

std::optional<Transposition> AsTransposition(const TensorType& type, const Layout& from, const Layout& to) {
  if (!from.blocks().empty() || !to.blocks().empty() || from.stored() != to.stored() || type.ElementCount() == 0) return std::nullopt;
  std::vector<Loop> loops = LoopsOf(type.shape, from, to);
  if (loops.size() == 2) loops.insert(loops.begin(), {1, loops[0].extent * loops[1].extent});
  if (loops.size() != 3) return std::nullopt;
  const Loop& batches = loops[0];
  const Loop& columns = loops[1];
  const Loop& rows = loops[2];
  const bool is_transposed = columns.source_stride == 1 && rows.source_stride == columns.extent;
  if (!is_transposed || batches.source_stride != rows.extent * columns.extent) return std::nullopt;
  return Transposition{batches.extent, rows.extent, columns.extent, ElementBytes(type, from)};
}

}  // namespace collage
