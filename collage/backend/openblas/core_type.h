#pragma once

#include <string>

namespace collage::openblas {

/// Whose kernels OpenBLAS uses, such as "Haswell". It goes by the model's number of a processor, and one that is newer than the library
/// gets the kernels of the first 64-bit processors: a fifth of the speed on a server with AVX-512. Where that happened, the kernels for the
/// instructions that the processor has are taken instead, once in a process, unless OPENBLAS_CORETYPE says what to take. No other thread
/// may be inside of OpenBLAS at that time.
const std::string& CoreType();

}  // namespace collage::openblas
