#include "collage/runtime/shared_memory.h"

#include <algorithm>
#include <iterator>

#include "collage/support/check.h"

namespace collage {

void SharedMemory::Add(size_t bytes, bool is_written) {
  parent_.push_back(parent_.size());
  distance_.push_back(0);
  bytes_.push_back(bytes);
  Piece& piece = pieces_.emplace_back(Piece{0, static_cast<int64_t>(bytes), {}});
  if (is_written && bytes > 0) piece.written.emplace(0, piece.end);
}

SharedMemory::Root SharedMemory::RootOf(size_t buffer) {
  Root root{buffer, 0};
  while (parent_[root.buffer] != root.buffer) {
    root.distance += distance_[root.buffer];
    root.buffer = parent_[root.buffer];
  }
  for (int64_t distance = root.distance; parent_[buffer] != buffer;) {
    const size_t next = parent_[buffer];
    const int64_t step = distance_[buffer];
    parent_[buffer] = root.buffer;
    distance_[buffer] = distance;
    distance -= step;
    buffer = next;
  }
  return root;
}

SharedMemory::Place SharedMemory::Find(size_t buffer) {
  const Root root = RootOf(buffer);
  return {root.buffer, root.distance - pieces_[root.buffer].begin};
}

size_t SharedMemory::BytesOf(size_t piece) const { return static_cast<size_t>(pieces_[piece].end - pieces_[piece].begin); }

bool SharedMemory::IsWhole(size_t buffer) { return BytesOf(Find(buffer).piece) == bytes_[buffer]; }

bool SharedMemory::Overlap(size_t a, size_t b) {
  const Root first = RootOf(a);
  const Root second = RootOf(b);
  return first.buffer == second.buffer && first.distance < second.distance + static_cast<int64_t>(bytes_[b]) &&
         second.distance < first.distance + static_cast<int64_t>(bytes_[a]);
}

void SharedMemory::Merge(size_t from, size_t to, int64_t distance) {
  Piece& source = pieces_[from];
  Piece& target = pieces_[to];
  target.begin = std::min(target.begin, source.begin + distance);
  target.end = std::max(target.end, source.end + distance);
  for (const auto& [begin, end] : source.written) target.written.emplace(begin + distance, end + distance);
  source.written.clear();
  parent_[from] = to;
  distance_[from] = distance;
}

void SharedMemory::Show(size_t inner, size_t outer, size_t offset) {
  const Root root = RootOf(outer);
  COLLAGE_CHECK(parent_[inner] == inner && pieces_[inner].written.empty());
  Merge(inner, root.buffer, root.distance + static_cast<int64_t>(offset));
}

bool SharedMemory::TryJoin(size_t inner, size_t outer, size_t offset) {
  Root small = RootOf(inner);
  Root large = RootOf(outer);
  // Of the root of `inner` from that of `outer`.
  int64_t distance = large.distance + static_cast<int64_t>(offset) - small.distance;
  if (small.buffer == large.buffer) return distance == 0;
  if (pieces_[small.buffer].written.size() > pieces_[large.buffer].written.size()) {
    std::swap(small, large);
    distance = -distance;
  }
  const std::map<int64_t, int64_t>& written = pieces_[large.buffer].written;
  for (const auto& [begin, end] : pieces_[small.buffer].written) {
    const auto next = written.lower_bound(begin + distance);
    const bool meets_next = next != written.end() && next->first < end + distance;
    const bool meets_last = next != written.begin() && std::prev(next)->second > begin + distance;
    if (meets_next || meets_last) return false;
  }
  Merge(small.buffer, large.buffer, distance);
  return true;
}

bool SharedMemory::LeavesRoom(const std::vector<Part>& sorted, size_t part, size_t bytes) {
  const Root root = RootOf(sorted[part].buffer);
  const int64_t begin = root.distance - static_cast<int64_t>(sorted[part].offset);  // of `outer`, from the root
  const int64_t end = begin + static_cast<int64_t>(bytes);
  const std::map<int64_t, int64_t>& written = pieces_[root.buffer].written;
  for (int64_t position = begin; position < end;) {
    const auto next = written.upper_bound(position);
    const bool is_within = next != written.begin() && std::prev(next)->second > position;
    if (!is_within && next == written.end()) break;
    if (!is_within) position = next->first;
    if (position >= end) break;
    // The part at whose place this is written has to be the one that lies there.
    const auto behind = std::upper_bound(sorted.begin(), sorted.end(), position - begin,
                                         [](int64_t offset, const Part& other) { return offset < static_cast<int64_t>(other.offset); });
    if (behind == sorted.begin()) return false;
    const Part& holder = *std::prev(behind);
    const int64_t place = begin + static_cast<int64_t>(holder.offset);
    const int64_t holder_end = place + static_cast<int64_t>(bytes_[holder.buffer]);
    const Root of_holder = RootOf(holder.buffer);
    if (of_holder.buffer != root.buffer || of_holder.distance != place || position >= holder_end) return false;
    position = holder_end;
  }
  return true;
}

std::vector<size_t> SharedMemory::Join(const std::vector<Part>& parts, size_t outer, const std::function<bool(size_t buffer)>& can_move) {
  COLLAGE_CHECK(std::is_sorted(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.offset < b.offset; }));
  std::vector<size_t> left;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool joins = can_move(parts[i].buffer) && LeavesRoom(parts, i, bytes_[outer]) && TryJoin(parts[i].buffer, outer, parts[i].offset);
    if (!joins) left.push_back(i);
  }
  return left;
}

void SharedMemory::TakeOver(size_t earlier, size_t later) {
  const Root taken = RootOf(earlier);
  const Root root = RootOf(later);
  COLLAGE_CHECK(IsWhole(earlier) && bytes_[earlier] == bytes_[later] && taken.buffer != root.buffer);
  pieces_[taken.buffer].written.clear();  // what is written there is written to `later`
  Merge(taken.buffer, root.buffer, root.distance - taken.distance);
}

}  // namespace collage
