#pragma once

#include <cstdint>

#include "collage/support/name_supply.h"
#include "collage/support/result.h"

namespace collage::onnx_message {
class GraphProto;
}  // namespace collage::onnx_message

namespace collage::onnx_io {

/// The oldest operator set whose nodes can be brought to a younger one: since 7 operators broadcast as they do now.
inline constexpr int64_t kOldestUpgraded = 7;

/// Brings nodes of the default operator set, those of bodies included, from one version to a younger one. Nodes whose form has changed are
/// written as the younger has them; names of what comes in between are fresh. Errors name the node that has no form there, and the version.
Status UpgradeNodes(int64_t from, int64_t to, NameSupply& names, onnx_message::GraphProto& graph);

}  // namespace collage::onnx_io
