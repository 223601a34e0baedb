#include "tests/conformance/corpus.h"

#include <iterator>

namespace collage::conformance {

std::vector<ProgramCase> Corpus() {
  std::vector<ProgramCase> corpus;
  for (std::vector<ProgramCase> family : {ConvolutionCases(), MatrixCases(), PoolingCases(), NormalisationCases(), PointwiseCases(),
                                          ReductionCases(), MovementCases(), BlockCases(), QuantisedCases(), HalfCases(), RandomCases(4)}) {
    std::move(family.begin(), family.end(), std::back_inserter(corpus));
  }
  return corpus;
}

Result<std::vector<ProgramCase>> CasesNamed(const std::string& part) {
  std::vector<ProgramCase> cases = Corpus();
  std::erase_if(cases, [&](const ProgramCase& one) { return one.name.find(part) == std::string::npos; });
  if (cases.empty()) return Fail("no program has '" + part + "' in its name");
  return cases;
}

}  // namespace collage::conformance
