#include "collage/tensor/layout.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "collage/support/check.h"

namespace collage {

namespace {

constexpr std::string_view kStoredAsBFloat16 = ":bf16";

}  // namespace

Result<Layout> Layout::Parse(const std::string& tag) {
  if (tag.empty() || tag == "plain") return Layout();
  const auto malformed = [&](const char* why) { return Fail("layout '" + tag + "': " + why); };
  if (const size_t colon = tag.find(':'); colon != std::string::npos) {
    if (std::string_view(tag).substr(colon) != kStoredAsBFloat16) return malformed("behind the colon bf16 is expected");
    return COLLAGE_TRY(Parse(tag.substr(0, colon))).StoredAs(DType::kBFloat16);
  }
  Layout layout;
  layout.tag_ = tag;
  size_t at = 0;
  std::vector<bool> blocked;
  for (; at < tag.size() && std::isalpha(static_cast<unsigned char>(tag[at])); ++at) {
    layout.order_.push_back(static_cast<size_t>(std::tolower(static_cast<unsigned char>(tag[at])) - 'a'));
    blocked.push_back(std::isupper(static_cast<unsigned char>(tag[at])) != 0);
  }
  std::vector<size_t> sorted = layout.order_;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != i) return malformed("every dimension must appear once before the inner blocks");
  }
  std::vector<bool> seen(layout.order_.size(), false);
  while (at < tag.size()) {
    int64_t extent = 0;
    for (; at < tag.size() && std::isdigit(static_cast<unsigned char>(tag[at])) && extent < 65536; ++at)
      extent = extent * 10 + (tag[at] - '0');
    if (extent < 2 || at == tag.size()) return malformed("an inner block is an extent of at least 2 and a letter");
    const auto dimension = static_cast<size_t>(tag[at++] - 'a');
    if (dimension >= layout.order_.size()) return malformed("an inner block names a dimension that is not there");
    seen[dimension] = true;
    layout.blocks_.push_back({dimension, extent});
  }
  for (size_t i = 0; i < layout.order_.size(); ++i) {
    if (blocked[i] != seen[layout.order_[i]]) return malformed("upper-case letters and inner blocks disagree");
  }
  if (layout.blocks_.empty() && std::is_sorted(layout.order_.begin(), layout.order_.end())) return Layout();
  return layout;
}

Layout Layout::Of(const std::string& tag) {
  Result<Layout> layout = Parse(tag);
  COLLAGE_CHECK(layout.has_value(), layout ? "" : layout.error().message);
  return *layout;
}

Layout Layout::StoredAs(DType stored) const {
  COLLAGE_CHECK(stored == DType::kBFloat16 || stored == DType::kFloat32);
  Layout layout = *this;
  const bool is_own = stored == DType::kFloat32;
  layout.stored_ = is_own ? std::nullopt : std::optional(stored);
  layout.tag_ = tag_.substr(0, tag_.find(':'));
  if (layout.tag_ == "plain") layout.tag_.clear();
  if (!is_own) layout.tag_ = layout.ToString() + std::string(kStoredAsBFloat16);
  return layout;
}

bool Layout::Fits(const TensorType& type) const {
  return (order_.empty() || order_.size() == type.shape.size()) && (!stored_ || type.dtype == DType::kFloat32);
}

size_t ElementBytes(const TensorType& type, const Layout& layout) { return ByteSize(layout.stored().value_or(type.dtype)); }

size_t PhysicalByteCount(const TensorType& type, const Layout& layout) {
  if (layout.IsPlain()) return type.ByteCount();
  COLLAGE_CHECK(layout.Fits(type), "layout " + layout.ToString() + " of " + ToString(type));
  std::vector<int64_t> block(type.shape.size(), 1);
  for (const Layout::Block& inner : layout.blocks()) block[inner.dimension] *= inner.extent;
  size_t bytes = ElementBytes(type, layout);
  for (size_t i = 0; i < type.shape.size(); ++i) bytes *= static_cast<size_t>((type.shape[i] + block[i] - 1) / block[i] * block[i]);
  return bytes;
}

}  // namespace collage
