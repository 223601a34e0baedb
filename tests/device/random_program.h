#pragma once

#include <cstdint>
#include <string>

namespace collage {

/// A program in text with statements about devices in all places where they may stand: functions of the module, closures, functions as
/// arguments, recursion, ifs, tuples, kernels with memory scopes, shapes. The same seed gives the same text.
std::string RandomDeviceProgram(uint64_t seed, size_t statements);

}  // namespace collage
