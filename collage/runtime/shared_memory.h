#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace collage {

/// Which buffers of a plan lie in one piece of memory, and where in it. Buffers are numbered in the order in which they are added. A
/// union-find in which each buffer knows its distance from another one of its piece, so that a buffer may lie inside of one that lies
/// inside of a third, and pieces may be joined at any distance. Near-linear in the number of buffers.
class SharedMemory {
 public:
  /// A buffer in a piece of its own. One that is not written only shows what others have written.
  void Add(size_t bytes, bool is_written);

  /// Where a buffer lies: pieces are told by the number of one of their buffers, which changes when pieces are joined.
  struct Place {
    size_t piece;
    int64_t offset;  ///< bytes from the begin of the piece
  };
  [[nodiscard]] Place Find(size_t buffer);
  [[nodiscard]] size_t BytesOf(size_t piece) const;
  /// Whether a buffer is all of its piece.
  [[nodiscard]] bool IsWhole(size_t buffer);
  /// Whether bytes of one are bytes of the other.
  [[nodiscard]] bool Overlap(size_t a, size_t b);

  /// From now on `inner`, which is not written, lies `offset` bytes behind the begin of `outer`.
  void Show(size_t inner, size_t outer, size_t offset);
  struct Part {
    size_t buffer;
    size_t offset;
  };
  /// From now on the parts lie in `outer`, which is new and not written, each at its offset; these do not overlap. Gives the numbers of the
  /// parts that cannot lie there, because they lie elsewhere already, or where something else is written that would overlap. For each of
  /// these there is room in `outer`. Parts that `can_move` declines cannot either.
  [[nodiscard]] std::vector<size_t> Join(const std::vector<Part>& parts, size_t outer, const std::function<bool(size_t buffer)>& can_move);
  /// From now on a buffer that is whole lies where `later` lies, which overwrites it.
  void TakeOver(size_t earlier, size_t later);

 private:
  struct Piece {
    int64_t begin;                       ///< of its first byte, from the buffer that names it
    int64_t end;                         ///< behind its last byte
    std::map<int64_t, int64_t> written;  ///< begin and end of disjoint ranges
  };
  struct Root {
    size_t buffer;
    int64_t distance;  ///< of the begin of a buffer from that of its root
  };

  Root RootOf(size_t buffer);
  /// Whether nothing is written in `outer` if `part` lies there but what the parts have written that lie there then.
  [[nodiscard]] bool LeavesRoom(const std::vector<Part>& sorted, size_t part, size_t bytes);
  [[nodiscard]] bool TryJoin(size_t inner, size_t outer, size_t offset);
  /// Moves the piece of root `from` into that of `to`, its root then being `distance` behind the other.
  void Merge(size_t from, size_t to, int64_t distance);

  std::vector<size_t> parent_;
  std::vector<int64_t> distance_;  // from the parent
  std::vector<size_t> bytes_;
  std::vector<Piece> pieces_;  // of roots
};

}  // namespace collage
