#include <exception>

#include "tests/conformance/corpus.h"
#include "tests/op/in_type.h"

namespace collage::conformance {
namespace {

/// The same program, all of whose numbers of 32 bits have 16.
Program InHalves(const Program& program) { return {InType(program.Get(), DType::kFloat16), program.ranges}; }

}  // namespace

std::vector<ProgramCase> HalfCases() {
  std::vector<ProgramCase> cases;
  for (const std::vector<ProgramCase>& family :
       {ConvolutionCases(), MatrixCases(), PoolingCases(), NormalisationCases(), PointwiseCases(), ReductionCases(), BlockCases()}) {
    for (const ProgramCase& whole : family) {
      try {
        InHalves(whole.make());
      } catch (const std::exception&) {
        continue;  // an operator that is for other types
      }
      cases.push_back({whole.name + "_float16", [make = whole.make] { return InHalves(make()); }});
    }
  }
  return cases;
}

}  // namespace collage::conformance
