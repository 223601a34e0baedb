#include "collage/measure/rounding_excuse.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "collage/measure/verification.h"
#include "collage/support/check.h"

namespace collage {

namespace {

std::optional<RoundingExcuse> Excuse(std::span<const Tensor> found, const ReferenceSample& sample, std::span<const Agreement> rounding,
                                     double tolerance) {
  RoundingExcuse excuse;
  for (size_t i = 0; i < found.size(); ++i) {
    const Agreement one = sample.CompareOutput(i, found[i]);
    excuse.program.difference = std::max(excuse.program.difference, one.difference);
    excuse.program.unequal += one.unequal;
    excuse.rounding.difference = std::max(excuse.rounding.difference, rounding[i].difference);
    excuse.rounding.unequal += rounding[i].unequal;
    const bool is_farther = one.difference > std::max(tolerance, rounding[i].difference) || one.unequal > rounding[i].unequal;
    if (is_farther && !ObjectionOfProgram(one, tolerance).empty()) return std::nullopt;
  }
  return excuse;
}

}  // namespace

Result<std::optional<RoundingExcuse>> RoundingExcuse::Find(std::span<const Tensor> found, const ReferenceSample& sample,
                                                           RoundingEffect& rounding, double tolerance, const std::function<bool()>& stop) {
  COLLAGE_CHECK(rounding.farthest().size() == sample.expected.size(), "rounding is of another sample");
  std::optional<RoundingExcuse> excuse;
  if (found.size() != sample.expected.size()) return excuse;
  while (!(excuse = Excuse(found, sample, rounding.farthest(), tolerance))) {
    if ((stop && stop()) || !COLLAGE_TRY(rounding.RunAgain())) break;
  }
  return excuse;
}

std::optional<RoundingExcuse> RoundingExcuse::From(const std::vector<double>& samples) {
  if (samples.size() != 4) return std::nullopt;
  RoundingExcuse excuse;
  excuse.program.difference = samples[0];
  excuse.rounding.difference = samples[1];
  excuse.program.unequal = static_cast<int64_t>(samples[2]);
  excuse.rounding.unequal = static_cast<int64_t>(samples[3]);
  return excuse;
}

std::vector<double> RoundingExcuse::Samples() const {
  return {program.difference, rounding.difference, static_cast<double>(program.unequal), static_cast<double>(rounding.unequal)};
}

std::string RoundingExcuse::Text() const {
  return fmt::format(
      "rounding alone takes the reference {:.1e} of the largest value from itself, and {} elements that it decides; the program differs by "
      "{:.1e} and {}",
      rounding.difference, rounding.unequal, program.difference, program.unequal);
}

}  // namespace collage
