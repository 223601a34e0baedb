#pragma once

#include <collage.h>
#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <utility>

namespace collage_python {

namespace nb = nanobind;

/// A compile as its caller in Python sees it.
struct Watched {
  nb::object progress;
  int interrupts = 0;
  std::optional<nb::python_error> raised = {};

  /// What the caller wants, as collage.h counts it. The interpreter's lock must be held.
  int Wish(const char* stage, uint64_t done, uint64_t total, const char* detail) {
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!progress.is_none() && nb::cast<bool>(nb::bool_(progress(stage, done, total, detail)))) return COLLAGE_FINISH;
    } catch (nb::python_error& error) {
      // Ctrl-C, which Python may notice inside of `progress` as well, ends the measuring; pressed again, everything.
      if (!error.matches(PyExc_KeyboardInterrupt) || ++interrupts > 1) {
        raised.emplace(std::move(error));
        return COLLAGE_GIVE_UP;
      }
    }
    return interrupts > 0 ? COLLAGE_FINISH : COLLAGE_GO_ON;
  }
};

}  // namespace collage_python
