#include "tests/conformance/corpus.h"

#include <iterator>

namespace collage::conformance {

std::vector<ProgramCase> Corpus() {
  std::vector<ProgramCase> corpus;
  for (std::vector<ProgramCase> family : {ConvolutionCases(), MatrixCases(), PoolingCases(), NormalisationCases(), PointwiseCases(),
                                          ReductionCases(), MovementCases(), BlockCases(), QuantisedCases(), RandomCases(4)}) {
    std::move(family.begin(), family.end(), std::back_inserter(corpus));
  }
  return corpus;
}

}  // namespace collage::conformance
