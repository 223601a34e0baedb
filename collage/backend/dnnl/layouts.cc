#include "collage/backend/dnnl/layouts.h"

#include <array>
#include <utility>

#include "collage/support/check.h"

namespace collage::dnnl_backend {
namespace {

using dnnl::memory;

constexpr std::array<std::pair<const char*, memory::format_tag>, 5> kTags = {{
    {"plain", memory::format_tag::abcd},
    {"acdb", memory::format_tag::acdb},
    {"aBcd16b", memory::format_tag::aBcd16b},
    {"aBcd8b", memory::format_tag::aBcd8b},
    {"aBcd4b", memory::format_tag::aBcd4b},
}};

memory::desc FourDimensional(const memory::dims& dims, const std::string& tag, memory::data_type type) {
  for (const auto& [name, format] : kTags) {
    if (tag == name) return {dims, type, format};
  }
  throw dnnl::error(dnnl_invalid_arguments, "unknown layout tag");
}

std::string AskForBlockedTag() {
  const auto any = [](const memory::dims& dims) { return memory::desc(dims, memory::data_type::f32, memory::format_tag::any); };
  const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, any({1, 64, 28, 28}),
                                             any({64, 64, 3, 3}), any({1, 64, 28, 28}), {1, 1}, {1, 1}, {1, 1});
  dnnl::convolution_forward::primitive_desc implementation(desc, Engine());
  do {
    const std::string tag = TagOf(implementation.dst_desc());
    if (tag.starts_with("aBcd")) return tag;
  } while (implementation.next_impl());
  return "aBcd8b";
}

}  // namespace

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

const std::string& BlockedTag() {
  static const std::string tag = AskForBlockedTag();
  return tag;
}

memory::dims Dims(const Shape& shape) { return shape.empty() ? memory::dims{1} : memory::dims(shape.begin(), shape.end()); }

memory::data_type DataTypeOf(DType dtype) {
  if (dtype == DType::kInt8) return memory::data_type::s8;
  if (dtype == DType::kUInt8) return memory::data_type::u8;
  if (dtype == DType::kInt32) return memory::data_type::s32;
  if (dtype == DType::kBFloat16) return memory::data_type::bf16;
  COLLAGE_CHECK(dtype == DType::kFloat32);
  return memory::data_type::f32;
}

memory::desc Describe(const memory::dims& dims, const std::string& tag, DType dtype) {
  const memory::data_type type = DataTypeOf(dtype);
  if (tag == kAny) return {dims, type, memory::format_tag::any};
  if (tag == kPlain) return {dims, type, RowMajorStrides(dims)};
  return FourDimensional(dims, tag, type);
}

std::string TagOf(const memory::desc& desc) {
  if (desc.dims().size() != 4) return {};
  for (const auto& [name, format] : kTags) {
    if (desc == memory::desc(desc.dims(), desc.data_type(), format)) return name;
  }
  return {};
}

namespace {

Layout OrderOf(const memory::dims& dims, const std::string& tag) {
  if (tag == kPlain) return {};
  const bool one_pixel = dims[2] * dims[3] == 1;
  const Layout layout = Layout::Of(tag);
  if (layout.blocks().empty()) return one_pixel || dims[1] == 1 ? Layout() : layout;
  return one_pixel && dims[1] % layout.blocks()[0].extent == 0 ? Layout() : layout;
}

}  // namespace

Layout PhysicalLayout(const memory::dims& dims, const std::string& tag, DType stored) { return OrderOf(dims, tag).StoredAs(stored); }

Layout PlainLayout(DType stored) { return Layout().StoredAs(stored); }

}  // namespace collage::dnnl_backend
