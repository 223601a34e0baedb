#include "collage/runtime/layout_conversion.h"

#include <algorithm>
#include <functional>

#include "collage/runtime/parallel.h"
#include "collage/support/check.h"

extern "C" const char* const collage_layout_conversion_sources;  // made by CMake

namespace collage {
namespace {

constexpr size_t kGrainBytes = 65536;

/// How one dimension's index moves through memory in one layout. An element's offset is the sum over dimensions of Offset.
class Steps {
 public:
  Steps(const Layout& layout, const Shape& shape, size_t dimension) {
    const bool plain = layout.order().empty();
    int64_t stride = 1;
    int64_t granularity = 1;
    for (size_t i = layout.blocks().size(); i-- > 0;) {
      const Layout::Block& block = layout.blocks()[i];
      if (block.dimension == dimension) {
        digits_.push_back({granularity, block.extent, stride});
        granularity *= block.extent;
      }
      stride *= block.extent;
    }
    for (size_t i = shape.size(); i-- > 0;) {
      const size_t at = plain ? i : layout.order()[i];
      if (at == dimension) break;
      int64_t block = 1;
      for (const Layout::Block& inner : layout.blocks()) block *= inner.dimension == at ? inner.extent : 1;
      stride *= (shape[at] + block - 1) / block;
    }
    block_ = granularity;
    outer_stride_ = stride;
  }

  [[nodiscard]] int64_t Offset(int64_t index) const {
    int64_t offset = index / block_ * outer_stride_;
    for (const Digit& digit : digits_) offset += index / digit.granularity % digit.extent * digit.stride;
    return offset;
  }
  /// Elements of one whole block of this dimension; one when it is not blocked.
  [[nodiscard]] int64_t Block() const { return block_; }
  void AddGranularities(std::vector<int64_t>& all) const {
    for (const Digit& digit : digits_) all.push_back(digit.granularity);
    all.push_back(block_);
  }

 private:
  struct Digit {
    int64_t granularity;  // index distance of one step
    int64_t extent;
    int64_t stride;
  };
  std::vector<Digit> digits_;
  int64_t block_ = 1;
  int64_t outer_stride_ = 0;
};

/// One dimension of the conversion.
struct Dimension {
  int64_t extent;
  int64_t padded;  // extent in the target, whole blocks
  Steps from;
  Steps to;
  std::vector<int64_t> granularities;  // ascending, the first is one; meaningful when each divides the next

  [[nodiscard]] bool Divisible() const {
    for (size_t i = 1; i < granularities.size(); ++i) {
      if (granularities[i] % granularities[i - 1] != 0) return false;
    }
    return true;
  }
};

Dimension MakeDimension(const TensorType& type, const Layout& from, const Layout& to, size_t index) {
  Dimension dimension{type.shape[index], 0, Steps(from, type.shape, index), Steps(to, type.shape, index), {1}};
  const int64_t block = dimension.to.Block();
  dimension.padded = (dimension.extent + block - 1) / block * block;
  dimension.from.AddGranularities(dimension.granularities);
  dimension.to.AddGranularities(dimension.granularities);
  std::sort(dimension.granularities.begin(), dimension.granularities.end());
  dimension.granularities.erase(std::unique(dimension.granularities.begin(), dimension.granularities.end()), dimension.granularities.end());
  return dimension;
}

/// A stretch of one dimension whose indices are a loop nest with constant strides in both layouts.
struct Segment {
  int64_t source_offset;
  int64_t target_offset;
  std::vector<StridedLoop> loops;
};

Segment MakeSegment(const Dimension& dimension, int64_t begin, int64_t count, size_t level) {
  Segment segment{dimension.from.Offset(begin), dimension.to.Offset(begin), {}};
  for (size_t i = level + 1; i-- > 0;) {
    const int64_t step = dimension.granularities[i];
    segment.loops.push_back({count, dimension.from.Offset(step), dimension.to.Offset(step)});
    if (i > 0) count = step / dimension.granularities[i - 1];
  }
  return segment;
}

/// For blocks that do not divide each other: cuts wherever either layout starts a new block of any size, so that within a
/// segment both move by their smallest step.
std::vector<Segment> SegmentsAtEveryBlock(const Dimension& dimension, int64_t begin, int64_t end) {
  std::vector<Segment> segments;
  while (begin < end) {
    int64_t next = end;
    for (size_t i = 1; i < dimension.granularities.size(); ++i) {
      const int64_t step = dimension.granularities[i];
      next = std::min(next, (begin / step + 1) * step);
    }
    const StridedLoop loop{next - begin, dimension.from.Offset(begin + 1) - dimension.from.Offset(begin),
                           dimension.to.Offset(begin + 1) - dimension.to.Offset(begin)};
    segments.push_back({dimension.from.Offset(begin), dimension.to.Offset(begin), {loop}});
    begin = next;
  }
  return segments;
}

/// Cuts [begin, end) into segments: from each place the coarsest step that is aligned and fits, as often as it stays within one
/// step of the next coarser one.
std::vector<Segment> Segments(const Dimension& dimension, int64_t begin, int64_t end) {
  if (!dimension.Divisible()) return SegmentsAtEveryBlock(dimension, begin, end);
  std::vector<Segment> segments;
  const std::vector<int64_t>& steps = dimension.granularities;
  while (begin < end) {
    size_t level = 0;
    while (level + 1 < steps.size() && begin % steps[level + 1] == 0 && begin + steps[level + 1] <= end) ++level;
    int64_t count = (end - begin) / steps[level];
    if (level + 1 < steps.size()) {
      const int64_t next = (begin / steps[level + 1] + 1) * steps[level + 1];
      count = std::min(count, (next - begin) / steps[level]);
    }
    segments.push_back(MakeSegment(dimension, begin, count, level));
    begin += count * steps[level];
  }
  return segments;
}

using Visit = std::function<void(const Segment& box)>;

/// Calls `visit` for every combination of one segment a dimension, as one nest.
void ForEachBox(const std::vector<std::vector<Segment>>& segments, const Visit& visit) {
  std::vector<size_t> choice(segments.size(), 0);
  for (const std::vector<Segment>& of_dimension : segments) {
    if (of_dimension.empty()) return;
  }
  for (bool more = true; more;) {
    Segment box{0, 0, {}};
    for (size_t i = 0; i < segments.size(); ++i) {
      const Segment& segment = segments[i][choice[i]];
      box.source_offset += segment.source_offset;
      box.target_offset += segment.target_offset;
      box.loops.insert(box.loops.end(), segment.loops.begin(), segment.loops.end());
    }
    visit(box);
    more = false;
    for (size_t i = 0; i < segments.size() && !more; ++i) {
      more = ++choice[i] < segments[i].size();
      if (!more) choice[i] = 0;
    }
  }
}

/// The padding as disjoint boxes: for each padded dimension its padding, times the elements of the dimensions before it, times
/// the elements and padding of those behind it.
void ForEachPaddingBox(const std::vector<Dimension>& dimensions, const Visit& visit) {
  for (size_t padded = 0; padded < dimensions.size(); ++padded) {
    std::vector<std::vector<Segment>> segments;
    for (size_t i = 0; i < dimensions.size(); ++i) {
      const Dimension& dimension = dimensions[i];
      segments.push_back(Segments(dimension, i == padded ? dimension.extent : 0, i < padded ? dimension.extent : dimension.padded));
    }
    ForEachBox(segments, visit);
  }
}

}  // namespace

LayoutConversion::LayoutConversion(const TensorType& type, const Layout& from, const Layout& to, int threads) : threads_(threads) {
  for (const Layout* layout : {&from, &to}) COLLAGE_CHECK(layout->Fits(type), "layout " + layout->ToString() + " of " + ToString(type));
  std::vector<Dimension> dimensions;
  for (size_t i = 0; i < type.shape.size(); ++i) dimensions.push_back(MakeDimension(type, from, to, i));
  const size_t bytes = ElementBytes(type, from);
  const ElementChange change = from.stored() == to.stored() ? ElementChange::kNone
                               : to.stored()                ? ElementChange::kToBFloat16
                                                            : ElementChange::kFromBFloat16;
  std::vector<std::vector<Segment>> segments;
  for (const Dimension& dimension : dimensions) segments.push_back(Segments(dimension, 0, dimension.extent));
  ForEachBox(segments, [&](const Segment& box) { copies_.emplace_back(box.loops, bytes, box.source_offset, box.target_offset, change); });
  ForEachPaddingBox(
      dimensions, [&](const Segment& box) { copies_.push_back(StridedCopy::Zero(box.loops, ElementBytes(type, to), box.target_offset)); });
}

void LayoutConversion::Run(const void* source, void* target) const {
  for (const StridedCopy& copy : copies_) {
    struct Context {
      const StridedCopy& copy;
      const std::byte* source;
      std::byte* target;
    } context{copy, static_cast<const std::byte*>(source), static_cast<std::byte*>(target)};
    const size_t grain = std::max<size_t>(kGrainBytes / std::max<size_t>(copy.unit_bytes(), 1), 1);
    // One captured pointer fits into std::function, so that nothing is allocated.
    ParallelFor(copy.units(), grain, threads_,
                [&context](size_t begin, size_t end) { context.copy.Run(context.source, context.target, begin, end); });
  }
}

std::string_view LayoutConversionVersion() { return collage_layout_conversion_sources; }

}  // namespace collage
