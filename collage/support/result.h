#pragma once

// Errors a user can cause travel as values. CHECK (check.h) is for our own bugs, never reachable from input.
// A backend that declines is neither: it answers Reject{reason}, which is data that the report prints.

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace collage {

/// A user-facing error: one line that says where, what was found and what would be right.
struct Error {
  std::string message;

  /// The same error with a place put in front: "place: message".
  [[nodiscard]] Error At(const std::string& place) const { return Error{place + ": " + message}; }
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> Fail(std::string message) { return tl::unexpected<Error>(Error{std::move(message)}); }
inline tl::unexpected<Error> Fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

}  // namespace collage

/// Evaluates to the value of a Result, or returns its error from the enclosing function.
#define COLLAGE_TRY(...)                                                              \
  __extension__({                                                                     \
    auto collage_result_ = (__VA_ARGS__);                                             \
    if (!collage_result_) return ::collage::Fail(std::move(collage_result_).error()); \
    std::move(collage_result_).value();                                               \
  })

/// As COLLAGE_TRY, for a Status.
#define COLLAGE_TRY_STATUS(...)                                                       \
  do {                                                                                \
    auto collage_status_ = (__VA_ARGS__);                                             \
    if (!collage_status_) return ::collage::Fail(std::move(collage_status_).error()); \
  } while (false)
