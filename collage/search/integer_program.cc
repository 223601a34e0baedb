#include "collage/search/integer_program.h"

#include <dlfcn.h>

#include <filesystem>
#include <limits>
#include <memory>

#include "collage/support/shared_object.h"

namespace collage {
namespace {

/// The part of HiGHS's C interface that is used, opened privately: its C++ symbols must not meet those of the backends, and a
/// process that never asks for a certificate never loads it. The wheel brings no headers; the interface is documented at
/// https://ergo-code.github.io/HiGHS/stable/interfaces/c_api and has 32-bit integers unless it is built otherwise.
struct Highs {
  void* (*create)();
  void (*destroy)(void*);
  int (*integer_size)(const void*);
  int (*pass_mip)(void*, int columns, int rows, int nonzeros, int format, int sense, double offset, const double* cost,
                  const double* column_lower, const double* column_upper, const double* row_lower, const double* row_upper,
                  const int* start, const int* index, const double* value, const int* integrality);
  int (*run)(void*);
  int (*model_status)(const void*);
  int (*double_info)(const void*, const char*, double*);
  int (*int_info)(const void*, const char*, int*);
  int (*solution)(const void*, double*, double*, double*, double*);
  int (*set_bool)(void*, const char*, int);
  int (*set_int)(void*, const char*, int);
  int (*set_double)(void*, const char*, double);
  int (*set_string)(void*, const char*, const char*);
};

constexpr int kRowWise = 2;
constexpr int kMinimise = 1;
constexpr int kStatusInfeasible = 8;
constexpr int kFeasiblePoint = 2;

template <class Function>
bool Load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

Result<Highs> Open() {
  // An absolute path stays what it is; in a Python package it is one from here.
  const std::filesystem::path path = SharedObjectOf(&Open).parent_path() / COLLAGE_HIGHS_LIBRARY;
  const Result<void*> library = OpenSharedObject(path);
  if (!library) return Fail("the integer program solver HiGHS cannot be opened: " + library.error().message);
  Highs highs{};
  const bool complete =
      Load(*library, "Highs_create", highs.create) && Load(*library, "Highs_destroy", highs.destroy) &&
      Load(*library, "Highs_getSizeofHighsInt", highs.integer_size) && Load(*library, "Highs_passMip", highs.pass_mip) &&
      Load(*library, "Highs_run", highs.run) && Load(*library, "Highs_getModelStatus", highs.model_status) &&
      Load(*library, "Highs_getDoubleInfoValue", highs.double_info) && Load(*library, "Highs_getIntInfoValue", highs.int_info) &&
      Load(*library, "Highs_getSolution", highs.solution) && Load(*library, "Highs_setBoolOptionValue", highs.set_bool) &&
      Load(*library, "Highs_setIntOptionValue", highs.set_int) && Load(*library, "Highs_setDoubleOptionValue", highs.set_double) &&
      Load(*library, "Highs_setStringOptionValue", highs.set_string);
  if (!complete) return Fail("the integer program solver at " COLLAGE_HIGHS_LIBRARY " lacks functions of HiGHS's C interface");
  return highs;
}

bool Pass(const Highs& highs, void* solver, const IntegerProgram& program) {
  std::vector<double> cost;
  std::vector<double> column_upper;
  std::vector<int> integrality;
  for (const IntegerProgram::Variable& variable : program.variables) {
    cost.push_back(variable.cost);
    column_upper.push_back(variable.upper);
    integrality.push_back(variable.is_integral ? 1 : 0);
  }
  const std::vector<double> column_lower(cost.size(), 0);
  std::vector<double> row_lower;
  std::vector<double> row_upper;
  std::vector<int> start;
  std::vector<int> index;
  std::vector<double> value;
  for (const IntegerProgram::Row& row : program.rows) {
    row_lower.push_back(row.lower);
    row_upper.push_back(row.upper);
    start.push_back(static_cast<int>(index.size()));
    for (const auto& [variable, coefficient] : row.terms) {
      index.push_back(static_cast<int>(variable));
      value.push_back(coefficient);
    }
  }
  return highs.pass_mip(solver, static_cast<int>(cost.size()), static_cast<int>(row_lower.size()), static_cast<int>(index.size()), kRowWise,
                        kMinimise, 0, cost.data(), column_lower.data(), column_upper.data(), row_lower.data(), row_upper.data(),
                        start.data(), index.data(), value.data(), integrality.data()) == 0;
}

Result<IntegerSolution> SolveOnce(const Highs& highs, const IntegerProgram& program, double most_seconds, bool presolve) {
  const std::unique_ptr<void, void (*)(void*)> solver(highs.create(), highs.destroy);
  if (highs.integer_size(solver.get()) != sizeof(int)) return Fail("HiGHS is built with integers of another size");
  highs.set_bool(solver.get(), "output_flag", 0);
  highs.set_int(solver.get(), "threads", 1);
  if (!presolve) highs.set_string(solver.get(), "presolve", "off");
  highs.set_string(solver.get(), "parallel", "off");
  highs.set_double(solver.get(), "mip_rel_gap", 0);
  highs.set_double(solver.get(), "mip_abs_gap", 0);
  highs.set_double(solver.get(), "time_limit", most_seconds);
  if (!Pass(highs, solver.get(), program)) return Fail("HiGHS refuses the integer program");
  if (highs.run(solver.get()) < 0) return Fail("HiGHS failed on the integer program");
  IntegerSolution solution;
  solution.is_infeasible = highs.model_status(solver.get()) == kStatusInfeasible;
  int status = 0;
  highs.int_info(solver.get(), "primal_solution_status", &status);
  solution.is_feasible = !solution.is_infeasible && status == kFeasiblePoint;
  highs.double_info(solver.get(), "mip_dual_bound", &solution.lower_bound);
  if (!solution.is_feasible) return solution;
  solution.values.resize(program.variables.size());
  std::vector<double> duals(program.variables.size());
  std::vector<double> rows(program.rows.size());
  std::vector<double> row_duals(program.rows.size());
  highs.solution(solver.get(), solution.values.data(), duals.data(), rows.data(), row_duals.data());
  return solution;
}

}  // namespace

Result<IntegerSolution> Solve(const IntegerProgram& program, double most_seconds) {
  static const Result<Highs> opened = Open();
  const Highs& highs = COLLAGE_TRY(opened);
  const Result<IntegerSolution> solution = SolveOnce(highs, program, most_seconds, /*presolve=*/true);
  // Its presolve calls some feasible programs infeasible (seen with 1.15 on graphs of five nodes), so that is asked twice.
  if (!solution || !solution->is_infeasible) return solution;
  return SolveOnce(highs, program, most_seconds, /*presolve=*/false);
}

}  // namespace collage
