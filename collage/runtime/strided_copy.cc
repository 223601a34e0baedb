#include "collage/runtime/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "collage/support/check.h"
#include "collage/tensor/float16.h"

namespace collage {
namespace {

constexpr int64_t kUnitElements = 16384;
constexpr size_t kMostLoops = 24;

/// Outermost (largest target stride) first; loops of one iteration gone, adjacent ones merged where both tensors allow.
std::vector<StridedLoop> Canonical(std::vector<StridedLoop> loops) {
  std::erase_if(loops, [](const StridedLoop& loop) { return loop.extent == 1; });
  std::stable_sort(loops.begin(), loops.end(),
                   [](const StridedLoop& a, const StridedLoop& b) { return a.target_stride > b.target_stride; });
  std::vector<StridedLoop> merged;
  for (const StridedLoop& inner : loops) {
    if (!merged.empty() && merged.back().source_stride == inner.source_stride * inner.extent &&
        merged.back().target_stride == inner.target_stride * inner.extent) {
      merged.back() = {merged.back().extent * inner.extent, inner.source_stride, inner.target_stride};
    } else {
      merged.push_back(inner);
    }
  }
  return merged;
}

StridedLoop TakeLast(std::vector<StridedLoop>& loops) {
  if (loops.empty()) return {1, 1, 1};
  const StridedLoop loop = loops.back();
  loops.pop_back();
  return loop;
}

// Integers, so that no bit pattern of a float changes on the way.
using Vector = int32_t __attribute__((vector_size(16)));

Vector LoadVector(const int32_t* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

void StoreVector(int32_t* to, Vector vector) { std::memcpy(to, &vector, sizeof vector); }

/// target[i * target_stride + j] = source[j * source_stride + i] for i, j < 4.
inline void Transpose4x4(const int32_t* source, int64_t source_stride, int32_t* target, int64_t target_stride) {
  const Vector a = LoadVector(source);
  const Vector b = LoadVector(source + source_stride);
  const Vector c = LoadVector(source + 2 * source_stride);
  const Vector d = LoadVector(source + 3 * source_stride);
  const Vector ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Vector ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Vector cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Vector cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  StoreVector(target, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
  StoreVector(target + target_stride, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
  StoreVector(target + 2 * target_stride, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  StoreVector(target + 3 * target_stride, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

/// target[3 * i + j] = source[j * source_stride + i] for i < rows, j < 3: images of three channels, to channels last.
void InterleaveThree(const int32_t* source, int64_t source_stride, int32_t* target, int64_t rows) {
  const int32_t* second = source + source_stride;
  const int32_t* third = second + source_stride;
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    const Vector a = LoadVector(source + i);
    const Vector b = LoadVector(second + i);
    const Vector c = LoadVector(third + i);
    StoreVector(target + 3 * i, __builtin_shufflevector(__builtin_shufflevector(a, b, 0, 4, 1, 5), c, 0, 1, 4, 2));
    StoreVector(target + 3 * i + 4, __builtin_shufflevector(__builtin_shufflevector(b, c, 1, 5, 2, 6), a, 0, 1, 6, 2));
    StoreVector(target + 3 * i + 8, __builtin_shufflevector(c, __builtin_shufflevector(a, b, 3, 7, 3, 7), 2, 4, 5, 3));
  }
  for (; i < rows; ++i) {
    target[3 * i] = source[i];
    target[3 * i + 1] = second[i];
    target[3 * i + 2] = third[i];
  }
}

/// target[i * target_stride + j] = source[3 * j + i] for i < 3, j < columns: the reverse.
void SeparateThree(const int32_t* source, int32_t* target, int64_t target_stride, int64_t columns) {
  int32_t* second = target + target_stride;
  int32_t* third = second + target_stride;
  int64_t j = 0;
  for (; j + 4 <= columns; j += 4) {
    const Vector a = LoadVector(source + 3 * j);
    const Vector b = LoadVector(source + 3 * j + 4);
    const Vector c = LoadVector(source + 3 * j + 8);
    StoreVector(target + j, __builtin_shufflevector(__builtin_shufflevector(a, b, 0, 3, 6, 6), c, 0, 1, 2, 5));
    StoreVector(second + j, __builtin_shufflevector(__builtin_shufflevector(a, b, 1, 4, 7, 7), c, 0, 1, 2, 6));
    StoreVector(third + j, __builtin_shufflevector(__builtin_shufflevector(a, b, 2, 5, 2, 5), c, 0, 1, 4, 7));
  }
  for (; j < columns; ++j) {
    target[j] = source[3 * j];
    second[j] = source[3 * j + 1];
    third[j] = source[3 * j + 2];
  }
}

/// target[i * target_stride + j] = source[j * source_stride + i] for i < rows, j < columns. Goes by strips of 16 columns so that
/// every line of the target is written whole.
void Transpose(const int32_t* source, int64_t source_stride, int32_t* target, int64_t target_stride, int64_t rows, int64_t columns) {
  if (columns == 3 && target_stride == 3) return InterleaveThree(source, source_stride, target, rows);
  if (rows == 3 && source_stride == 3) return SeparateThree(source, target, target_stride, columns);
  const int64_t whole_rows = rows / 4 * 4;
  for (int64_t strip = 0; strip < columns; strip += 16) {
    const int64_t strip_end = std::min(strip + 16, columns);
    const int64_t whole_columns = strip + (strip_end - strip) / 4 * 4;
    for (int64_t i = 0; i < whole_rows; i += 4) {
      for (int64_t j = strip; j < whole_columns; j += 4) {
        Transpose4x4(source + j * source_stride + i, source_stride, target + i * target_stride + j, target_stride);
      }
      for (int64_t k = i; k < i + 4; ++k) {
        for (int64_t j = whole_columns; j < strip_end; ++j) target[k * target_stride + j] = source[j * source_stride + k];
      }
    }
    for (int64_t i = whole_rows; i < rows; ++i) {
      for (int64_t j = strip; j < strip_end; ++j) target[i * target_stride + j] = source[j * source_stride + i];
    }
  }
}

template <size_t kBytes>
void CopyFixedRows(const std::byte* source, int64_t source_step, std::byte* target, int64_t target_step, int64_t count) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(target + i * target_step, source + i * source_step, kBytes);
}

void CopyRows(const std::byte* source, int64_t source_step, std::byte* target, int64_t target_step, int64_t count, size_t bytes) {
  if (bytes == 64) return CopyFixedRows<64>(source, source_step, target, target_step, count);
  if (bytes == 32) return CopyFixedRows<32>(source, source_step, target, target_step, count);
  for (int64_t i = 0; i < count; ++i) std::memcpy(target + i * target_step, source + i * source_step, bytes);
}

template <class T>
void CopyStrided(const std::byte* source_bytes, const StridedLoop& middle_loop, const StridedLoop& row_loop, std::byte* target_bytes,
                 int64_t middle, int64_t row) {
  const auto* source = reinterpret_cast<const T*>(source_bytes);
  auto* target = reinterpret_cast<T*>(target_bytes);
  for (int64_t i = 0; i < middle; ++i) {
    for (int64_t j = 0; j < row; ++j) {
      target[i * middle_loop.target_stride + j * row_loop.target_stride] =
          source[i * middle_loop.source_stride + j * row_loop.source_stride];
    }
  }
}

/// Loops that are contiguous on both sides run over vectors.
template <class From, class To, To (*kChanged)(From)>
void ChangeElements(const std::byte* source_bytes, const StridedLoop& middle_loop, const StridedLoop& row_loop, std::byte* target_bytes,
                    int64_t middle, int64_t row) {
  const bool is_contiguous = row_loop.source_stride == 1 && row_loop.target_stride == 1;
  for (int64_t i = 0; i < middle; ++i) {
    const From* source = reinterpret_cast<const From*>(source_bytes) + i * middle_loop.source_stride;
    To* target = reinterpret_cast<To*>(target_bytes) + i * middle_loop.target_stride;
    for (int64_t j = 0; is_contiguous && j < row; ++j) target[j] = kChanged(source[j]);
    for (int64_t j = 0; !is_contiguous && j < row; ++j) target[j * row_loop.target_stride] = kChanged(source[j * row_loop.source_stride]);
  }
}

size_t BytesAfter(ElementChange change, size_t bytes) {
  if (change == ElementChange::kNone) return bytes;
  return change == ElementChange::kToBFloat16 ? sizeof(uint16_t) : sizeof(float);
}

}  // namespace

StridedCopy::StridedCopy(std::vector<StridedLoop> loops, size_t element_bytes, int64_t source_offset, int64_t target_offset,
                         ElementChange change)
    : change_(change),
      source_bytes_(element_bytes),
      element_bytes_(BytesAfter(change, element_bytes)),
      source_offset_(source_offset),
      target_offset_(target_offset) {
  Plan(std::move(loops));
}

StridedCopy StridedCopy::Zero(std::vector<StridedLoop> loops, size_t element_bytes, int64_t target_offset) {
  StridedCopy copy;
  copy.form_ = Form::kZero;
  copy.element_bytes_ = element_bytes;
  copy.target_offset_ = target_offset;
  for (StridedLoop& loop : loops) loop.source_stride = loop.target_stride;
  copy.Plan(std::move(loops));
  return copy;
}

void StridedCopy::Plan(std::vector<StridedLoop> loops) {
  for (const StridedLoop& loop : loops) {
    if (loop.extent == 0) return;
  }
  loops = Canonical(std::move(loops));
  ChooseForm(loops);
  outer_ = std::move(loops);
  ChooseChunk();
  COLLAGE_CHECK(outer_.size() <= kMostLoops);
  units_ = 1;
  for (const StridedLoop& loop : outer_) units_ *= static_cast<size_t>(loop.extent);
}

void StridedCopy::ChooseForm(std::vector<StridedLoop>& loops) {
  row_ = TakeLast(loops);
  if (form_ == Form::kZero) {
    middle_ = TakeLast(loops);
    return;
  }
  form_ = row_.source_stride == 1 && row_.target_stride == 1 ? Form::kRows : Form::kStrided;
  const auto contiguous = std::find_if(loops.begin(), loops.end(), [](const StridedLoop& loop) { return loop.source_stride == 1; });
  const bool is_of_words = change_ == ElementChange::kNone && element_bytes_ == 4;
  if (form_ == Form::kStrided && row_.target_stride == 1 && is_of_words && contiguous != loops.end()) {
    form_ = Form::kTranspose;
    middle_ = *contiguous;
    loops.erase(contiguous);
    return;
  }
  middle_ = TakeLast(loops);
}

void StridedCopy::ChooseChunk() {
  chunk_row_ = form_ == Form::kTranspose ? middle_.extent < row_.extent : middle_.extent == 1;
  const StridedLoop& chunked = chunk_row_ ? row_ : middle_;
  const int64_t other = chunk_row_ ? middle_.extent : row_.extent;
  chunk_position_ = outer_.size();
  chunk_ = (kUnitElements / other + 15) / 16 * 16;
  if (form_ == Form::kRows && !outer_.empty() && outer_.back().source_stride < middle_.source_stride) {
    // The next loop walks the source more closely than the middle one: let it sweep a piece that stays in the cache.
    chunk_position_ -= 1;
    chunk_ = std::min<int64_t>(chunk_, 64);
  }
  chunk_ = std::clamp<int64_t>(chunk_, 1, chunked.extent);
  const StridedLoop chunks{(chunked.extent + chunk_ - 1) / chunk_, chunk_ * chunked.source_stride, chunk_ * chunked.target_stride};
  outer_.insert(outer_.begin() + static_cast<std::ptrdiff_t>(chunk_position_), chunks);
}

bool StridedCopy::IsContiguous() const {
  const bool only_chunks = outer_.size() == 1 && middle_.extent == 1;
  return form_ == Form::kRows && change_ == ElementChange::kNone && only_chunks && source_offset_ == target_offset_;
}

size_t StridedCopy::unit_bytes() const {
  return static_cast<size_t>(chunk_ * (chunk_row_ ? middle_.extent : row_.extent)) * element_bytes_;
}

void StridedCopy::Run(const std::byte* source, std::byte* target, size_t begin, size_t end) const {
  std::array<int64_t, kMostLoops> index{};
  int64_t from = source_offset_;
  int64_t to = target_offset_;
  size_t rest = begin;
  for (size_t i = outer_.size(); i-- > 0;) {
    index[i] = static_cast<int64_t>(rest % static_cast<size_t>(outer_[i].extent));
    rest /= static_cast<size_t>(outer_[i].extent);
    from += index[i] * outer_[i].source_stride;
    to += index[i] * outer_[i].target_stride;
  }
  const auto bytes = static_cast<int64_t>(element_bytes_);
  for (size_t unit = begin; unit < end; ++unit) {
    const int64_t whole = chunk_row_ ? row_.extent : middle_.extent;
    const int64_t piece = std::min(chunk_, whole - index[chunk_position_] * chunk_);
    const std::byte* unit_source = form_ == Form::kZero ? nullptr : source + from * static_cast<int64_t>(source_bytes_);
    RunUnit(unit_source, target + to * bytes, chunk_row_ ? middle_.extent : piece, chunk_row_ ? piece : row_.extent);
    for (size_t i = outer_.size(); i-- > 0;) {
      from += outer_[i].source_stride;
      to += outer_[i].target_stride;
      if (++index[i] < outer_[i].extent) break;
      index[i] = 0;
      from -= outer_[i].extent * outer_[i].source_stride;
      to -= outer_[i].extent * outer_[i].target_stride;
    }
  }
}

void StridedCopy::RunUnit(const std::byte* source, std::byte* target, int64_t middle, int64_t row) const {
  const auto bytes = static_cast<int64_t>(element_bytes_);
  if (change_ == ElementChange::kToBFloat16) return ChangeElements<float, uint16_t, ToBFloat16>(source, middle_, row_, target, middle, row);
  if (change_ == ElementChange::kFromBFloat16)
    return ChangeElements<uint16_t, float, FromBFloat16>(source, middle_, row_, target, middle, row);
  switch (form_) {
    case Form::kZero: {
      const bool contiguous = row_.target_stride == 1;
      for (int64_t i = 0; i < middle; ++i) {
        std::byte* line = target + i * middle_.target_stride * bytes;
        if (contiguous) std::memset(line, 0, static_cast<size_t>(row * bytes));
        for (int64_t j = 0; j < row && !contiguous; ++j) std::memset(line + j * row_.target_stride * bytes, 0, element_bytes_);
      }
      return;
    }
    case Form::kRows:
      return CopyRows(source, middle_.source_stride * bytes, target, middle_.target_stride * bytes, middle,
                      static_cast<size_t>(row * bytes));
    case Form::kTranspose:
      return Transpose(reinterpret_cast<const int32_t*>(source), row_.source_stride, reinterpret_cast<int32_t*>(target),
                       middle_.target_stride, middle, row);
    case Form::kStrided:
      if (element_bytes_ == 1) return CopyStrided<uint8_t>(source, middle_, row_, target, middle, row);
      if (element_bytes_ == 2) return CopyStrided<uint16_t>(source, middle_, row_, target, middle, row);
      if (element_bytes_ == 4) return CopyStrided<uint32_t>(source, middle_, row_, target, middle, row);
      return CopyStrided<uint64_t>(source, middle_, row_, target, middle, row);
  }
}

}  // namespace collage
