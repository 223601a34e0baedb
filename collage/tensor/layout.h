#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "collage/support/result.h"
#include "collage/tensor/tensor_type.h"

namespace collage {

/// The physical order of a tensor's elements, written as oneDNN writes it: one letter a dimension ('a' the first), outermost
/// first, an upper-case letter for a dimension that is also blocked, then the inner blocks. "abcd" is row-major (NCHW), "acdb"
/// is NHWC, "aBcd16b" is NCHW with channels blocked by 16. The empty tag is row-major of any rank ("plain").
/// A blocked dimension is padded to whole blocks, and the padding is zero: kernels rely on it and must keep it so.
///
/// It also says in which type the elements are stored where that is not the tensor's own: "acdb:bf16" is a tensor of float32 as bfloat16,
/// "plain:bf16" the same in row-major order. So the search, which chooses the layout of every tensor and prices conversions between
/// layouts, also chooses where numbers are rounded.
class Layout {
 public:
  Layout() = default;
  /// Errors on a tag that is not a permutation with inner blocks. Row-major tags become the plain layout.
  static Result<Layout> Parse(const std::string& tag);
  /// As Parse, for tags known to be right.
  static Layout Of(const std::string& tag);

  /// Row-major, in the tensor's own type.
  [[nodiscard]] bool IsPlain() const { return tag_.empty(); }
  /// The tag; "plain" for row-major.
  [[nodiscard]] std::string ToString() const { return tag_.empty() ? "plain" : tag_; }

  struct Block {
    size_t dimension;
    int64_t extent;
  };
  /// Outer order of the dimensions; empty for row-major.
  [[nodiscard]] const std::vector<size_t>& order() const { return order_; }
  /// Inner blocks, outermost first.
  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  /// In which type elements are stored; nothing for the tensor's own.
  [[nodiscard]] std::optional<DType> stored() const { return stored_; }
  /// The same order, with elements of float32 stored so: kBFloat16, or kFloat32 for as they are.
  [[nodiscard]] Layout StoredAs(DType stored) const;
  /// Whether a tensor of this type may lie so.
  [[nodiscard]] bool Fits(const TensorType& type) const;

  friend bool operator==(const Layout& a, const Layout& b) { return a.tag_ == b.tag_; }
  friend bool operator<(const Layout& a, const Layout& b) { return a.tag_ < b.tag_; }

 private:
  std::string tag_;
  std::optional<DType> stored_;
  std::vector<size_t> order_;
  std::vector<Block> blocks_;
};

/// Bytes of one element of a tensor in a layout.
size_t ElementBytes(const TensorType& type, const Layout& layout);
/// Bytes that a tensor takes in a layout, padding included.
size_t PhysicalByteCount(const TensorType& type, const Layout& layout);

}  // namespace collage
