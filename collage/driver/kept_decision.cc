#include "collage/driver/kept_decision.h"

#include <algorithm>
#include <utility>

#include "collage/driver/number_list.h"

namespace collage {
namespace {

std::vector<double> ToNumbers(const KnownThen& known) {
  std::vector<std::pair<size_t, KnownOfKernel>> by_number(known.begin(), known.end());
  std::ranges::sort(by_number, {}, [](const auto& one) { return one.first; });
  NumberWriter writer;
  writer.AddList(by_number, [&](const auto& one) {
    writer.Add(one.first);
    writer.Add(one.second.alone ? 1 : 0);
    writer.Add(one.second.rounds);
  });
  return std::move(writer).Numbers();
}

std::optional<KnownThen> FromNumbers(const std::vector<double>& numbers) {
  NumberReader reader(numbers);
  const auto list = reader.NextList([&] {
    const size_t kernel = reader.Next();
    const bool alone = reader.Next() != 0;
    return std::pair(kernel, KnownOfKernel{alone, reader.Next()});
  });
  return reader.IsWhole() ? std::optional(KnownThen(list.begin(), list.end())) : std::nullopt;
}

}  // namespace

Result<std::optional<KeptDecision>> FindDecision(Pricer& pricer, uint64_t problem_hash) {
  const std::optional<Measurement> seconds = COLLAGE_TRY(pricer.cache().Find(pricer.KeyOf(Fact::kDecision, problem_hash)));
  const std::optional<Measurement> numbers = COLLAGE_TRY(pricer.cache().Find(pricer.KeyOf(Fact::kKnown, problem_hash)));
  if (!seconds || seconds->samples.empty() || !numbers) return std::nullopt;
  std::optional<KnownThen> known = FromNumbers(numbers->samples);
  if (!known) return std::nullopt;
  return KeptDecision{seconds->samples.front(), COLLAGE_TRY(LoadJoins(pricer, pricer.KeyOf(Fact::kJoins, problem_hash))),
                      std::move(*known)};
}

Status StoreDecision(Pricer& pricer, uint64_t problem_hash, const KeptDecision& decision) {
  COLLAGE_TRY_STATUS(StoreJoins(pricer, pricer.KeyOf(Fact::kJoins, problem_hash), decision.joins));
  COLLAGE_TRY_STATUS(pricer.cache().Store(pricer.KeyOf(Fact::kKnown, problem_hash), {ToNumbers(decision.known), {}}));
  return pricer.cache().Store(pricer.KeyOf(Fact::kDecision, problem_hash), {{decision.seconds}, {}});
}

}  // namespace collage
