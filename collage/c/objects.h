#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "collage/c/collage.h"
#include "collage/lower/shared_program.h"
#include "collage/support/result.h"

// What the opaque types of collage.h are.

struct collage_error {
  collage_error_kind kind;
  std::string message;
};

struct collage_program {
  std::unique_ptr<collage::SharedProgram> shared;
  std::string report;
  int threads = 0;
};

struct collage_session {
  collage_program* program = nullptr;
  collage::Executable* executable = nullptr;
  size_t profile = 0;
  std::vector<collage::Tensor> inputs;  // handles of the caller's memory
  std::vector<collage::Tensor> outputs;
  std::vector<collage::Tensor> staged;  // aligned memory for outputs that are not; made when first needed
  std::vector<bool> is_staged;
  std::vector<collage::Tensor> results;  // of the last collage_session_evaluate
  std::atomic_flag running = ATOMIC_FLAG_INIT;
};

namespace collage::c_abi {

/// An error for the caller; one that needs no memory where there is none.
collage_error* MakeError(collage_error_kind kind, std::string message) noexcept;

inline collage_error* Refuse(std::string message) { return MakeError(COLLAGE_ERROR_ARGUMENT, std::move(message)); }

/// What is said of a tensor. `name` and `shape` must outlive it. A null shape: not even the rank is known.
collage_tensor_info InfoOf(const std::string& name, DType dtype, const Shape* shape);

/// Runs `body`, which gives an error or null. Exceptions end here: of ours none can be caused by a user, but memory may run out.
template <class Body>
collage_error* Guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return MakeError(COLLAGE_ERROR_RUN, "out of memory");
  } catch (const std::exception& error) {
    return MakeError(COLLAGE_ERROR_BUG, std::string("this is a bug of Collage: ") + error.what());
  } catch (...) {
    return MakeError(COLLAGE_ERROR_BUG, "this is a bug of Collage: an exception of unknown type");
  }
}

}  // namespace collage::c_abi
