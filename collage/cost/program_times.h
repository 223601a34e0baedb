#pragma once

#include <vector>

#include "collage/cost/belief.h"

namespace collage {

/// What kernels take inside of programs, told at one speed of the machine: that which it had at the median round.
struct ProgramTimes {
  std::vector<double> seconds;  ///< by kernel; NaN of one that has not run in a program
  double spread = 0;            ///< of a round: the standard deviation of a time's logarithm, which all kernels share
  double degrees = 0;           ///< of freedom of the spread; 0: there are too few rounds for one
};

/// Of the rows `in_program`.
ProgramTimes FitPrograms(const std::vector<Evidence>& evidence);

}  // namespace collage
