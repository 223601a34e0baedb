#pragma once

#include <dnnl.hpp>
#include <string>

#include "collage/tensor/layout.h"
#include "collage/tensor/tensor_type.h"

namespace collage::dnnl_backend {

/// Names of physical orders as the layouts of tensors write them. kAny lets the library choose.
inline constexpr const char* kAny = "any";
inline constexpr const char* kPlain = "plain";
inline constexpr const char* kChannelsLast = "acdb";

/// The process-wide CPU engine.
const dnnl::engine& Engine();

/// The block of channels that convolutions prefer on this processor when they block: "aBcd16b", "aBcd8b". Asked of the library
/// once, because it follows from the instruction set.
const std::string& BlockedTag();

/// Extents as the library takes them; a scalar is one element of one dimension.
dnnl::memory::dims Dims(const Shape& shape);
/// The library's name for a type of float32, bfloat16, int32, int8 or uint8.
dnnl::memory::data_type DataTypeOf(DType dtype);
/// A tensor of these extents in a layout; tags other than plain and any are for four dimensions.
dnnl::memory::desc Describe(const dnnl::memory::dims& dims, const std::string& tag, DType dtype = DType::kFloat32);
/// The tag of a descriptor of four dimensions; empty when no tag that we know describes it.
std::string TagOf(const dnnl::memory::desc& desc);
/// The layout to report for a tag. Where the physical order is that of the plain layout anyway (N x C x 1 x 1), it is plain,
/// so that no conversion is charged.
/// `stored`: in which numbers of float32 lie there.
Layout PhysicalLayout(const dnnl::memory::dims& dims, const std::string& tag, DType stored = DType::kFloat32);
/// Row-major.
Layout PlainLayout(DType stored);

}  // namespace collage::dnnl_backend
