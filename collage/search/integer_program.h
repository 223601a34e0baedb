#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collage/support/result.h"

namespace collage {

/// Minimise a linear function of bounded variables, some of them integral, under linear constraints.
struct IntegerProgram {
  struct Variable {
    double cost = 0;
    double upper = 1;  ///< lower bounds are zero
    bool is_integral = false;
  };
  struct Row {
    double lower;
    double upper;
    std::vector<std::pair<size_t, double>> terms;  ///< variable, coefficient; each variable once
  };
  std::vector<Variable> variables;
  std::vector<Row> rows;

  size_t AddVariable(double cost, bool is_integral, double upper = 1) {
    variables.push_back({cost, upper, is_integral});
    return variables.size() - 1;
  }
};

struct IntegerSolution {
  bool is_feasible = false;    ///< false: there is no solution, or none was found in time
  bool is_infeasible = false;  ///< proven to have none
  std::vector<double> values;
  double lower_bound = 0;  ///< of the cost of every solution
};

/// Solved by HiGHS on one thread. Errors when the library cannot be opened.
Result<IntegerSolution> Solve(const IntegerProgram& program, double most_seconds);

}  // namespace collage
