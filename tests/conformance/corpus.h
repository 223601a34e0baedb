#pragma once

#include <vector>

#include "tests/conformance/program.h"

namespace collage::conformance {

// The corpus: small functions of every operator and of the chains in which models use them, by family.

std::vector<ProgramCase> ConvolutionCases();
std::vector<ProgramCase> MatrixCases();
std::vector<ProgramCase> PoolingCases();
std::vector<ProgramCase> NormalisationCases();
std::vector<ProgramCase> PointwiseCases();
std::vector<ProgramCase> ReductionCases();
std::vector<ProgramCase> MovementCases();
std::vector<ProgramCase> BlockCases();
std::vector<ProgramCase> QuantisedCases();
/// Others of these in float16, which most backends refuse: whoever does not see the type reads and writes beyond the ends of tensors.
std::vector<ProgramCase> HalfCases();
/// Random shapes and attributes, `count` programs a kind, from fixed seeds.
std::vector<ProgramCase> RandomCases(int count);

/// All of them.
std::vector<ProgramCase> Corpus();
/// Those whose names hold this text. Errors where none does.
Result<std::vector<ProgramCase>> CasesNamed(const std::string& part);

}  // namespace collage::conformance
