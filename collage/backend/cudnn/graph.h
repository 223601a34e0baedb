#pragma once

#include <cstdint>
#include <vector>

#include "collage/backend/cudnn/descriptor.h"
#include "collage/backend/cudnn/layer.h"
#include "collage/tensor/layout.h"

namespace collage::cudnn {

/// By which numbers a graph calls the tensors that it is given.
enum TensorId : int64_t { kData = 1, kWeight, kAdded, kBias, kResult, kFirstOnTheWay };

/// The tensors of a layer whose addresses are given, in the order of their numbers. A tail always has a bias (MakeGraph); where the
/// function has none, it is zero.
std::vector<int64_t> GivenTensors(const Layer& layer);

/// The layout of a tensor of this shape: channels last, or first. Where both are one order of the elements it is the plain one, so that
/// no conversion is charged.
Layout LayoutOf(const Shape& shape, bool channels_last);

/// The operations of a layer, with all that they are made of.
struct Graph {
  std::vector<Descriptor> parts;
  Descriptor operations;
};

/// All tensors of the graph have their channels last, weights too, or all are row-major. `handle` must be locked. Errors are the library's.
Result<Graph> MakeGraph(const OpSequence& sequence, const Layer& layer, bool channels_last, cudnnHandle_t handle);

}  // namespace collage::cudnn
