#include "collage/driver/joins.h"

#include <algorithm>
#include <utility>

#include "collage/driver/more_candidates.h"
#include "collage/explain/plan_names.h"

namespace collage {
namespace {

/// Lists are written as their length and their elements.
class NumberWriter {
 public:
  void Add(size_t number) { numbers_.push_back(static_cast<double>(number)); }
  template <class List, class AddOne>
  void AddList(const List& list, const AddOne& add_one) {
    Add(list.size());
    for (const auto& one : list) add_one(one);
  }
  [[nodiscard]] std::vector<double> Numbers() && { return std::move(numbers_); }

 private:
  std::vector<double> numbers_;
};

/// Gives zeros where there is nothing more, and says so.
class NumberReader {
 public:
  explicit NumberReader(const std::vector<double>& numbers) : numbers_(numbers) {}
  size_t Next() {
    constexpr double kMost = 0x1p53;  // up to it doubles are whole numbers
    is_whole_ = is_whole_ && at_ < numbers_.size() && numbers_[at_] <= kMost;
    return is_whole_ ? static_cast<size_t>(numbers_[at_++]) : 0;
  }
  template <class ReadOne>
  auto NextList(const ReadOne& read_one) {
    std::vector<decltype(read_one())> list;
    for (size_t left = Next(); left > 0 && is_whole_; --left) list.push_back(read_one());
    return list;
  }
  [[nodiscard]] bool IsWhole() const { return is_whole_ && at_ == numbers_.size(); }

 private:
  const std::vector<double>& numbers_;
  size_t at_ = 0;
  bool is_whole_ = true;
};

}  // namespace

bool IsOf(const Placement& placement, const JoinedPlan& join) {
  const bool has_choices = std::ranges::all_of(join.choices, [&](const SearchChoice& choice) {
    return choice.candidate < placement.candidates.size() && choice.variant < placement.arms.kernel_of[choice.candidate].size();
  });
  const auto is_choice = [&](size_t i) { return i < join.choices.size(); };
  return has_choices && std::ranges::all_of(join.branches, [&](const Branches& branches) {
           return std::ranges::all_of(branches, [&](const std::vector<size_t>& share) { return std::ranges::all_of(share, is_choice); });
         });
}

Result<PlacementPointer> Joined(const Placement& placement, const JoinedPlan& join, Pricer& pricer) {
  SearchResult result;
  result.choices = join.choices;
  const Plan plan = MakePlan(placement, kSearchedPlan, std::move(result));
  PlacementAddition addition{JoinedPartitions(placement, plan), {}};
  for (const Branches& branches : join.branches) {
    if (std::optional<PricedCandidate> candidate = SideBySideCandidate(placement, plan, branches))
      addition.candidates.push_back(std::move(*candidate));
  }
  return Extend(placement, std::move(addition), pricer);
}

Result<std::vector<JoinedPlan>> LoadJoins(Pricer& pricer, const MeasurementKey& key) {
  const std::optional<Measurement> kept = COLLAGE_TRY(pricer.cache().Find(key));
  if (!kept) return std::vector<JoinedPlan>();
  NumberReader reader(kept->samples);
  const auto next = [&] { return reader.Next(); };
  const auto next_choice = [&] {
    const size_t candidate = reader.Next();
    return SearchChoice{candidate, reader.Next()};
  };
  const auto next_share = [&] { return reader.NextList(next); };
  const auto next_branches = [&] { return reader.NextList(next_share); };
  std::vector<JoinedPlan> joins = reader.NextList([&] {
    std::vector<SearchChoice> choices = reader.NextList(next_choice);
    return JoinedPlan{std::move(choices), reader.NextList(next_branches)};
  });
  return reader.IsWhole() ? joins : std::vector<JoinedPlan>();
}

Status StoreJoins(Pricer& pricer, const MeasurementKey& key, const std::vector<JoinedPlan>& joins) {
  NumberWriter writer;
  writer.AddList(joins, [&](const JoinedPlan& join) {
    writer.AddList(join.choices, [&](const SearchChoice& choice) {
      writer.Add(choice.candidate);
      writer.Add(choice.variant);
    });
    writer.AddList(join.branches, [&](const Branches& branches) {
      writer.AddList(branches, [&](const std::vector<size_t>& share) { writer.AddList(share, [&](size_t i) { writer.Add(i); }); });
    });
  });
  return pricer.cache().Store(key, {std::move(writer).Numbers(), {}});
}

}  // namespace collage
