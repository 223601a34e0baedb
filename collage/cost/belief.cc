#include "collage/cost/belief.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include "collage/cost/program_times.h"

namespace collage {
namespace {

constexpr double kNotRun = std::numeric_limits<double>::quiet_NaN();

using Groups = std::map<std::pair<std::pair<size_t, uint64_t>, std::vector<uint64_t>>, size_t>;

}  // namespace

KernelRelations::KernelRelations(std::vector<KernelFacts> kernels) : kernels_(std::move(kernels)) {
  constexpr uint64_t kAnyWay = 0;
  constexpr uint64_t kOfKind = ~uint64_t{0};  // before the number of a kind, so that it is not taken for an operator's
  Groups groups;
  const auto group_of = [&](size_t backend, uint64_t variant, const std::vector<uint64_t>& heavy) {
    return groups.try_emplace({{backend, variant}, heavy}, groups.size()).first->second;
  };
  for (size_t k = 0; k < kernels_.size(); ++k) {
    const KernelFacts& kernel = kernels_[k];
    same_heavy_.push_back(group_of(kernel.backend, kAnyWay, kernel.heavy));
    alike_.push_back(group_of(kernel.backend, kernel.variant | 1, kernel.heavy));
    const bool has_rate = !kernel.heavy.empty() && kernel.flops > 0;
    same_kind_.push_back(has_rate ? group_of(kernel.backend, kAnyWay, {kOfKind, kernel.kind}) : kNoGroup);
    same_kind_alike_.push_back(has_rate ? group_of(kernel.backend, kernel.variant | 1, {kOfKind, kernel.kind}) : kNoGroup);
    light_.push_back(kernel.heavy.empty() && kernel.bytes > 0 ? group_of(kernel.backend, kAnyWay, {}) : kNoGroup);
    std::vector<size_t>& parts = parts_of_.emplace_back();
    for (size_t i = 0; kernel.heavy.size() > 1 && i < kernel.heavy.size(); ++i)
      parts.push_back(group_of(kernel.backend, kAnyWay, {kernel.heavy[i]}));
    if (kernel.heavy.size() == 1) apart_[same_heavy_.back()].push_back(k);
    if (kernel.heavy.size() > 1) with_several_[kernel.backend].push_back(k);
  }
}

std::vector<std::span<const size_t>> KernelRelations::ApartFrom(size_t kernel) const {
  std::vector<std::span<const size_t>> apart;
  for (const size_t group : parts_of_[kernel]) {
    const auto found = apart_.find(group);
    if (found != apart_.end()) apart.push_back(found->second);
  }
  return apart;
}

std::span<const size_t> KernelRelations::AlsoWithSeveral(size_t kernel) const {
  if (parts_of_[kernel].empty()) return {};
  return with_several_.at(kernels_[kernel].backend);
}

std::vector<double> KernelRelations::Predictions(size_t way, const std::vector<double>& seconds) const {
  if (way == 0) return FromGroups(alike_, seconds);
  if (way == 1) return FromGroups(same_heavy_, seconds);
  if (way == 2) return FromParts(seconds);
  if (way == 3) return FromRates(same_kind_alike_, &KernelFacts::flops, seconds);
  if (way == 4) return FromRates(same_kind_, &KernelFacts::flops, seconds);
  return FromRates(light_, &KernelFacts::bytes, seconds);
}

std::vector<double> KernelRelations::FromGroups(const std::vector<size_t>& group_of, const std::vector<double>& seconds) const {
  struct Least {
    double first = kNotRun;
    double second = kNotRun;
    size_t kernel = 0;
  };
  std::unordered_map<size_t, Least> least;
  for (size_t k = 0; k < kernels_.size(); ++k) {
    if (std::isnan(seconds[k]) || kernels_[k].heavy.empty()) continue;
    Least& of_group = least[group_of[k]];
    if (!(of_group.first <= seconds[k])) {
      of_group = {seconds[k], of_group.first, k};
    } else if (!(of_group.second <= seconds[k])) {
      of_group.second = seconds[k];
    }
  }
  std::vector<double> predictions(kernels_.size(), kNotRun);
  for (size_t k = 0; k < kernels_.size(); ++k) {
    const auto found = least.find(group_of[k]);
    if (found != least.end()) predictions[k] = found->second.kernel == k ? found->second.second : found->second.first;
  }
  return predictions;
}

std::vector<double> KernelRelations::FromParts(const std::vector<double>& seconds) const {
  std::unordered_map<size_t, double> apart;
  for (size_t k = 0; k < kernels_.size(); ++k) {
    if (kernels_[k].heavy.size() != 1 || std::isnan(seconds[k])) continue;
    const auto [at, is_new] = apart.try_emplace(same_heavy_[k], seconds[k]);
    if (!is_new) at->second = std::min(at->second, seconds[k]);
  }
  std::vector<double> predictions(kernels_.size(), kNotRun);
  for (size_t k = 0; k < kernels_.size(); ++k) {
    if (parts_of_[k].empty()) continue;
    double sum = 0;
    for (const size_t part : parts_of_[k]) {
      const auto found = apart.find(part);
      sum += found == apart.end() ? kNotRun : found->second;
    }
    predictions[k] = sum;
  }
  return predictions;
}

std::vector<double> KernelRelations::FromRates(const std::vector<size_t>& group_of, double KernelFacts::*work,
                                               const std::vector<double>& seconds) const {
  std::unordered_map<size_t, std::vector<double>> rates;  // of work a second
  for (size_t k = 0; k < kernels_.size(); ++k) {
    if (group_of[k] != kNoGroup && seconds[k] > 0) rates[group_of[k]].push_back(kernels_[k].*work / seconds[k]);
  }
  for (auto& [group, of] : rates) std::sort(of.begin(), of.end());
  std::vector<double> predictions(kernels_.size(), kNotRun);
  for (size_t k = 0; k < kernels_.size(); ++k) {
    const auto found = rates.find(group_of[k]);
    if (group_of[k] == kNoGroup || found == rates.end()) continue;
    const std::vector<double>& of = found->second;
    const bool is_among = seconds[k] > 0;
    if (of.size() == (is_among ? 1 : 0)) continue;
    size_t middle = (of.size() - (is_among ? 1 : 0)) / 2;
    // Without its own rate, those behind move up by one.
    if (is_among && kernels_[k].*work / seconds[k] <= of[middle]) ++middle;
    predictions[k] = kernels_[k].*work / of[middle];
  }
  return predictions;
}

namespace {

/// Of one kernel alone, told at one speed of the machine.
struct Times {
  double alone = kNotRun;
  double alone_low = kNotRun;
  double alone_high = kNotRun;
};

class Belief {
 public:
  Belief(const KernelRelations& relations, const std::vector<Evidence>& evidence, const Declared& declared)
      : relations_(relations), evidence_(evidence), declared_(declared), times_(evidence.size()), programs_(FitPrograms(evidence)) {}

  std::vector<Price> Run() {
    ReadAlone();
    if (programs_.degrees > 0) student_ = StudentQuantile(declared_.confidence, programs_.degrees);
    FindRatios();
    FindAssumedLows();
    std::vector<Price> prices;
    for (size_t k = 0; k < evidence_.size(); ++k) prices.push_back(PriceOf(k));
    return prices;
  }

 private:
  [[nodiscard]] size_t DeviceOf(size_t kernel) const { return relations_.kernels()[kernel].device; }

  void ReadAlone() {
    std::map<size_t, std::vector<double>> anchors;
    for (size_t k = 0; k < evidence_.size(); ++k) {
      for (const Row& row : evidence_[k].alone) anchors[DeviceOf(k)].push_back(row.anchor_seconds);
    }
    std::map<size_t, double> usual_of;
    for (auto& [device, seconds] : anchors) usual_of[device] = Median(std::move(seconds));
    for (size_t k = 0; k < evidence_.size(); ++k) {
      if (evidence_[k].alone.empty()) continue;
      const double usual = usual_of.at(DeviceOf(k));
      std::vector<double> seconds;
      for (const Row& row : evidence_[k].alone) seconds.push_back(row.seconds * usual / row.anchor_seconds);
      const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
      // So few samples that they cannot give the confidence: then all that they allow.
      const Interval interval = MedianInterval(seconds, declared_.confidence).value_or(Interval{*least, *most});
      times_[k].alone_low = interval.low;
      times_[k].alone_high = interval.high;
      times_[k].alone = Median(std::move(seconds));
    }
  }

  /// By backend and variant: what is flattered when it runs alone (by caches that only it has filled, say) is so by the way in which it is
  /// made. What another variant will show is drawn from what variants have shown, not kernels.
  void FindRatios() {
    std::map<Group, std::vector<Weighted>> logs;
    for (size_t k = 0; k < times_.size(); ++k) {
      const double alone = times_[k].alone;
      const double in_program = programs_.seconds[k];
      if (std::isnan(alone) || std::isnan(in_program) || alone <= 0) continue;
      logs[GroupOf(k)].push_back({std::log(in_program / alone), in_program});
    }
    std::vector<Weighted> groups;
    for (const auto& [group, of] : logs) {
      double weight = 0;
      for (const Weighted& one : of) weight += one.weight;
      groups.push_back({WeightedMedian(of), weight});
    }
    const auto summed = [&](const std::vector<Weighted>& of) {
      Ratio ratio{std::exp(WeightedMedian(of)), NextIsWithin(of, declared_.confidence)};
      if (ratio.interval) ratio.interval = Interval{std::exp(ratio.interval->low), std::exp(ratio.interval->high)};
      return ratio;
    };
    if (!groups.empty()) unseen_ratio_ = summed(groups);
    for (const auto& [group, of] : logs) {
      Ratio ratio = summed(of);
      if (!ratio.interval) ratio.interval = unseen_ratio_.interval;
      ratio_of_group_.emplace(group, ratio);
    }
  }

  using Group = std::pair<size_t, uint64_t>;
  [[nodiscard]] Group GroupOf(size_t kernel) const { return {relations_.kernels()[kernel].backend, relations_.kernels()[kernel].variant}; }

  struct Ratio {
    double centre = 1;
    std::optional<Interval> interval;
  };

  [[nodiscard]] const Ratio& RatioOf(size_t kernel) const {
    const auto found = ratio_of_group_.find(GroupOf(kernel));
    return found == ratio_of_group_.end() ? unseen_ratio_ : found->second;
  }

  /// The time alone that kernels which have not run stay above, drawn from those that have.
  void FindAssumedLows() {
    std::vector<double> alone;
    for (const Times& times : times_) alone.push_back(times.alone);
    assumed_low_.assign(times_.size(), kNotRun);
    for (size_t way = 0; way < KernelRelations::kWays; ++way) {
      const std::vector<double> predicted = relations_.Predictions(way, alone);
      std::map<size_t, std::vector<double>> ratios;  // by backend
      for (size_t k = 0; k < alone.size(); ++k) {
        if (!std::isnan(alone[k]) && !std::isnan(predicted[k]) && predicted[k] > 0)
          ratios[relations_.kernels()[k].backend].push_back(alone[k] / predicted[k]);
      }
      std::map<size_t, std::optional<double>> low;
      for (auto& [backend, of] : ratios)
        low[backend] = way == KernelRelations::kWayOfSums ? NextSumIsAbove(of) : NextIsAbove(of, declared_.confidence);
      for (size_t k = 0; k < alone.size(); ++k) {
        const std::optional<double> ratio = low[relations_.kernels()[k].backend];
        if (ratio && std::isnan(assumed_low_[k]) && !std::isnan(predicted[k])) assumed_low_[k] = *ratio * predicted[k];
      }
    }
  }

  /// What many operators take together is near to normal beside the sum of what they take apart, so that two ratios tell already. A ratio
  /// of two kernels is one of two algorithms, of any distribution.
  [[nodiscard]] std::optional<double> NextSumIsAbove(const std::vector<double>& ratios) const {
    if (std::optional<double> low = NextIsAbove(ratios, declared_.confidence)) return low;
    std::vector<Weighted> logs;
    for (const double ratio : ratios) logs.push_back({std::log(ratio), 1});
    const std::optional<Interval> interval = NextIsWithin(logs, declared_.confidence);
    return interval ? std::optional(std::exp(interval->low)) : std::nullopt;
  }

  [[nodiscard]] Price PriceOf(size_t k) const {
    Price price;
    price.proved_low = relations_.kernels()[k].roofline;
    price.low = price.usual_low = price.proved_low;
    const Times& times = times_[k];
    if (!evidence_[k].invalid_reason.empty()) {
      price.known = Price::Known::kInvalid;
      price.low = price.usual_low = price.centre = price.high = Cost::Invalid();
    } else if (!evidence_[k].in_program.empty()) {
      price.known = Price::Known::kInProgram;
      price.centre = Cost::Seconds(programs_.seconds[k]);
      SetProgramInterval(k, price);
      price.usual_low = price.low;
    } else if (!std::isnan(times.alone)) {
      price.known = Price::Known::kAlone;
      const Ratio& ratio = RatioOf(k);
      price.centre = Cost::Seconds(times.alone * ratio.centre);
      price.usual_low = std::max(price.low, Cost::Seconds(times.alone_low * ratio.centre));
      if (ratio.interval) price.low = std::max(price.low, Cost::Seconds(times.alone_low * ratio.interval->low));
      if (ratio.interval) price.high = Cost::Seconds(times.alone_high * ratio.interval->high);
    } else if (!std::isnan(assumed_low_[k])) {
      const Ratio& ratio = RatioOf(k);
      const Cost assumed = ratio.interval ? Cost::Seconds(assumed_low_[k] * ratio.interval->low) : Cost();
      price.known = Price::Known::kRelatives;
      price.usual_low = std::max(price.low, Cost::Seconds(assumed_low_[k] * ratio.centre));
      price.low = std::max(price.low, assumed);
    }
    return price;
  }

  void SetProgramInterval(size_t k, Price& price) const {
    if (programs_.degrees == 0) {
      // One round says nothing of the spread; the kernel alone says more.
      const Ratio& ratio = RatioOf(k);
      if (!std::isnan(times_[k].alone_low) && ratio.interval)
        price.low = std::max(price.low, std::min(price.centre, Cost::Seconds(times_[k].alone_low * ratio.interval->low)));
      return;
    }
    const auto rounds = static_cast<double>(evidence_[k].in_program.size());
    // The median of normal samples wavers by so much more than their mean.
    const double of_median = rounds > 2 ? std::sqrt(std::acos(-1.0) / 2) : 1;
    const double share = student_ * programs_.spread * of_median / std::sqrt(rounds);
    price.radius = programs_.seconds[k] * share;
    price.low = std::max(price.low, Cost::Seconds(programs_.seconds[k] * std::exp(-share)));
    price.high = Cost::Seconds(programs_.seconds[k] * std::exp(share));
  }

  const KernelRelations& relations_;
  const std::vector<Evidence>& evidence_;
  const Declared& declared_;
  std::vector<Times> times_;
  ProgramTimes programs_;
  double student_ = 0;  // at the degrees of freedom of their spread
  Ratio unseen_ratio_;  // of variants that no program has held
  std::map<Group, Ratio> ratio_of_group_;
  std::vector<double> assumed_low_;
};

}  // namespace

std::vector<Price> Believe(const KernelRelations& relations, const std::vector<Evidence>& evidence, const Declared& declared) {
  return Belief(relations, evidence, declared).Run();
}

}  // namespace collage
