#pragma once

#include <exception>
#include <string>

#include "collage/provider/api.h"
#include "collage/support/result.h"

namespace collage::provider {

/// Runs `body`, which gives a Status. Its error, and exceptions, become a status of ONNX Runtime: nothing of C++ crosses the border.
template <class Body>
OrtStatus* Guarded(const Api& api, int code, Body&& body) noexcept {
  try {
    const Status status = body();
    return status ? nullptr : api.CreateStatus(code, ("Collage: " + status.error().message).c_str());
  } catch (const std::exception& error) {
    return api.CreateStatus(kFail, error.what());
  } catch (...) {
    return api.CreateStatus(kFail, "this is a bug of Collage: an exception of unknown type");
  }
}

}  // namespace collage::provider
