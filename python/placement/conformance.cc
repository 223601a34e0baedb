// The conformance suite over a backend that is registered in this process.

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/placement/values.h"
#include "tests/conformance/backends.h"
#include "tests/conformance/case_check.h"
#include "tests/conformance/corpus.h"

namespace collage_python {

using namespace collage;

namespace {

/// Calls `tell(name, problems, refusal, partitions, kernels, total)` for each program in turn; what that raises ends it.
void CheckConformance(const std::string& name, const std::string& part, const nb::object& tell) {
  const Device host{DeviceKind::kCpu, 0, 2};
  const BackendRecord record = ValueOr(conformance::FindTested(name, host), "ArgumentError");
  const std::vector<conformance::ProgramCase> cases = ValueOr(conformance::CasesNamed(part), "ArgumentError");
  conformance::CaseChecker checker(*record.backend);
  for (const conformance::ProgramCase& one : cases) {
    const conformance::CaseResult result = [&] {
      const nb::gil_scoped_release release;
      return checker.Check(one);
    }();
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    tell(one.name, result.problems, result.refusal, result.partitions, result.kernels, cases.size());
  }
}

}  // namespace

void BindConformance(nb::module_& module) {
  module.def("check_conformance", &CheckConformance, nb::arg("backend"), nb::arg("cases"), nb::arg("tell"));
}

}  // namespace collage_python
