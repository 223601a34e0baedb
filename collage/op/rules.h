#pragma once

// What the type, work and kernel parts of the operator records share. A record goes into the table through Register, which
// checks the form of every attribute before the operator's own rule runs; so rules and kernels read attributes without an
// error path, and the message for a malformed attribute is the same everywhere.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collage/ir/op_def.h"

namespace collage {

using TypeArguments = std::span<const Type>;

/// What a reference kernel is given for tensors of narrow types (tensor/narrow.h): themselves, because it only moves elements, or
/// tensors of the wider type, from which its results are rounded once. So no kernel that computes has to know the narrow formats.
/// Strings (tensor/strings.h) are only taken as they are stored.
enum class NarrowTypes : uint8_t { kWidened, kAsStored, kWidenedButStringsAsStored };

/// Adds the record with its type rule guarded: attributes have the form that they declare and required ones are there; a
/// result has extents of at least zero and at most 2^40 elements a tensor; there are strings only where they are taken.
void Register(OpTable& table, OpDef op, NarrowTypes narrow_types = NarrowTypes::kWidened);

/// Attributes of a checked call; `fallback` where absent or None.
int64_t IntAttribute(const Attributes& attributes, std::string_view name, int64_t fallback);
double DoubleAttribute(const Attributes& attributes, std::string_view name, double fallback);
bool BoolAttribute(const Attributes& attributes, std::string_view name, bool fallback);
std::string StringAttribute(const Attributes& attributes, std::string_view name, std::string fallback);
std::vector<int64_t> IntsAttribute(const Attributes& attributes, std::string_view name, std::vector<int64_t> fallback);
bool HasAttribute(const Attributes& attributes, std::string_view name);

/// The tensor type of an argument, or "<name> is ..., expected a tensor".
Result<TensorType> TensorArgument(TypeArguments arguments, size_t index, std::string_view name);
/// The tensor types of a tuple argument that has at least one field.
Result<std::vector<TensorType>> TupleArgument(TypeArguments arguments, size_t index, std::string_view name);

Status ExpectRank(const TensorType& type, std::string_view name, size_t rank);
Status ExpectRankAtLeast(const TensorType& type, std::string_view name, size_t rank);
/// A floating point type.
Status ExpectFloat(const TensorType& type, std::string_view name);
/// Any type.
Status ExpectComputable(const TensorType& type, std::string_view name);
/// A floating point or integer type.
Status ExpectNumber(const TensorType& type, std::string_view name);
Status ExpectInteger(const TensorType& type, std::string_view name);
Status ExpectBool(const TensorType& type, std::string_view name);
Status ExpectSameDType(const TensorType& type, std::string_view name, const TensorType& reference, std::string_view reference_name);
Status ExpectShape(const TensorType& type, std::string_view name, const Shape& expected);

/// A dtype attribute.
Result<DType> DTypeAttribute(const Attributes& attributes, std::string_view name, DType fallback);
/// The attribute "out_dtype" is absent, empty or the dtype of the data.
Status ExpectOutDType(const Attributes& attributes, const TensorType& data);
/// An axis in [-rank, rank), counted from the front.
Result<size_t> NormaliseAxis(int64_t axis, size_t rank, std::string_view name = "axis");
/// Several different ones, in the order given.
Result<std::vector<size_t>> NormaliseAxes(const std::vector<int64_t>& axes, size_t rank, std::string_view name = "axis");
/// An axis attribute of a checked call.
size_t AxisAttribute(const Attributes& attributes, std::string_view name, int64_t fallback, size_t rank);
/// NumPy broadcasting, or which extents disagree.
Result<Shape> BroadcastShapes(const Shape& a, const Shape& b);

/// Bytes of all tensors of a type.
double ByteCount(const Type& type);
double ElementCount(const Type& type);
/// A work rule: so many operations for each output element; inputs read once, outputs written once.
OpDef::WorkRule WorkPerOutput(double flops);
/// Of operators that only move data: what is written, and as much read.
Work MoveWork(TypeArguments arguments, const Type& result, const Attributes& attributes);
/// Of views and of shape_of: nothing but the output (zero for a view, which a host passes on without a kernel).
Work NoWork(TypeArguments arguments, const Type& result, const Attributes& attributes);

}  // namespace collage
