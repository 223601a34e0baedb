#pragma once

#include <xnnpack.h>

#include <functional>
#include <memory>

#include "collage/backend/xnnpack/layer.h"

namespace collage::xnnpack {

/// One of XNNPACK's operators with its weights packed. Used by one thread at a time.
struct Operator {
  std::unique_ptr<xnn_operator, xnn_status (*)(xnn_operator_t)> handle{nullptr, xnn_delete_operator};
  /// Says where data and result lie. Allocates the first time only.
  std::function<xnn_status(const float* data, float* result, pthreadpool_t pool)> set_up;
};

/// The error names the library's status.
Result<Operator> MakeOperator(const OpSequence& sequence, const Layer& layer);

/// "out of memory".
const char* Describe(xnn_status status);

}  // namespace collage::xnnpack
