#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/backend/kernel_harness.h"
#include "tests/backend/written_out.h"

namespace collage::testing_backend {

inline Attributes Pads(std::vector<int64_t> padding) { return Attributes{{"padding", std::move(padding)}}; }

inline Expr Clipped(const Expr& x, double low, double high) { return CallOp("clip", {x}, {{"a_min", low}, {"a_max", high}}); }

}  // namespace collage::testing_backend
