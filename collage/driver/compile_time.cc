#include "collage/driver/compile_time.h"

#include <algorithm>
#include <utility>

namespace collage {
namespace {

std::vector<bool> TooLongToCompile(const Placement& placement, const std::vector<Evidence>& evidence, const std::vector<bool>& among,
                                   double seconds) {
  const std::vector<size_t> places = PlacesOf(placement.arms, among);
  std::vector<bool> too_long(places.size(), false);
  for (size_t kernel = 0; kernel < places.size(); ++kernel) {
    const Evidence& known = evidence[kernel];
    const bool is_unknown = known.alone.empty() && known.in_program.empty() && known.invalid_reason.empty();
    const double times = 1 + static_cast<double>(places[kernel]);
    too_long[kernel] = is_unknown && places[kernel] > 0 && placement.arms.kernels.kernels()[kernel].compile_seconds * times > seconds;
  }
  return too_long;
}

}  // namespace

double UsualSecondsToCompile(const BackendRules& rules, size_t operators, double bytes) {
  // OpenVINO took 9 s for 10 000 operators in one model, and 100 s for them in 2500 models; 2.7 s for GPT-2 of 0.5 GB. For 2500 kernels of
  // four operators libraries take some 2 s; code for all of them is generated once.
  constexpr double kSecondsOfModel = 0.04;
  constexpr double kSecondsOfCompiledOperator = 0.001;
  constexpr double kSecondsOfCompiledByte = 4e-9;
  constexpr double kSecondsOfOperator = 0.0002;
  const auto count = static_cast<double>(operators);
  const bool is_compiler = rules.style == BackendRules::Style::kPredicate;
  return is_compiler ? kSecondsOfModel + kSecondsOfCompiledOperator * count + kSecondsOfCompiledByte * bytes : kSecondsOfOperator * count;
}

std::vector<bool> CompiledInTime(const Placement& placement, const std::vector<Evidence>& evidence, std::vector<bool> among,
                                 double seconds) {
  const std::vector<bool> too_long = TooLongToCompile(placement, evidence, among, seconds);
  for (size_t c = 0; c < among.size(); ++c) {
    const std::vector<size_t>& kernels = placement.arms.kernel_of[c];
    const bool is_out =
        !kernels.empty() && std::ranges::all_of(kernels, [&](size_t kernel) { return kernel != Arms::kNoKernel && too_long[kernel]; });
    if (is_out) among[c] = false;
  }
  return among;
}

size_t CountTooLongToCompile(const Placement& placement, const std::vector<Evidence>& evidence, double seconds) {
  std::ptrdiff_t count = 0;
  for (const std::vector<bool>& among : {placement.Competing(), placement.OfOriginals()})
    count += std::ranges::count(TooLongToCompile(placement, evidence, among, seconds), true);
  return static_cast<size_t>(count);
}

}  // namespace collage
