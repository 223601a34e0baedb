#include "collage/cost/program_times.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "collage/cost/statistics.h"

namespace collage {
namespace {

constexpr double kNotRun = std::numeric_limits<double>::quiet_NaN();

/// All in logarithms, where speeds add up. First the anchors tell the speed of each round, which gives all programs one level. By how much
/// the program's turn deviates from that is told by its kernels that other programs have held too: what these take is known from many
/// rounds. It is told once: told again and again, programs that share nothing would have no level.
class Fitter {
 public:
  explicit Fitter(const std::vector<Evidence>& evidence) : cells_of_(evidence.size()), own_(evidence.size(), kNotRun) {
    std::map<uint64_t, size_t> anchors;
    std::map<std::pair<uint64_t, uint64_t>, size_t> numbers;
    for (size_t k = 0; k < evidence.size(); ++k) {
      for (const ProgramRow& row : evidence[k].in_program) {
        const size_t anchor = anchors.try_emplace(row.anchor, anchors.size()).first->second;
        const auto [number, is_new] = numbers.try_emplace({row.anchor, row.round}, rounds_.size());
        if (is_new) rounds_.push_back({anchor, std::log(row.row.anchor_seconds), {}});
        cells_of_[k].push_back({number->second, std::log(row.row.seconds)});
        rounds_[number->second].cells.push_back({k, cells_of_[k].back().log_seconds});
      }
    }
    anchors_ = anchors.size();
    speed_.resize(rounds_.size());
  }

  ProgramTimes Fit() {
    ProgramTimes times;
    if (!rounds_.empty()) {
      TakeSpeedsOfAnchors();
      LevelAnchors();
      FitKernels();
      const size_t corrected = TakeDeviations();
      FitKernels();
      FindSpread(corrected, times);
    }
    for (const double own : own_) times.seconds.push_back(std::exp(own));
    return times;
  }

 private:
  struct Cell {
    size_t at;  ///< the round of a kernel's, the kernel of a round's
    double log_seconds;
  };
  struct Round {
    size_t anchor;
    double log_anchor_seconds;
    std::vector<Cell> cells;
  };

  void TakeSpeedsOfAnchors() {
    std::vector<std::vector<double>> logs(anchors_);
    for (const Round& round : rounds_) logs[round.anchor].push_back(round.log_anchor_seconds);
    std::vector<double> usual;
    for (std::vector<double>& of_anchor : logs) usual.push_back(Median(std::move(of_anchor)));
    for (size_t r = 0; r < rounds_.size(); ++r) speed_[r] = rounds_[r].log_anchor_seconds - usual[rounds_[r].anchor];
  }

  /// Anchors are programs of their own, and may be of different hours. Kernels tell their levels that have run beside several: next is
  /// always the anchor which shares most time with those that have a level. One that shares none keeps its own.
  void LevelAnchors() {
    std::vector<bool> has_level(anchors_, false);
    has_level.front() = true;
    for (size_t levelled = 1; levelled < anchors_; ++levelled) {
      FitKernels(&has_level);
      std::vector<std::vector<Weighted>> logs(anchors_);
      std::vector<double> shared(anchors_, 0.0);
      for (size_t r = 0; r < rounds_.size(); ++r) {
        const size_t anchor = rounds_[r].anchor;
        if (has_level[anchor]) continue;
        for (const Cell& cell : rounds_[r].cells) {
          if (std::isnan(own_[cell.at])) continue;
          logs[anchor].push_back({cell.log_seconds - speed_[r] - own_[cell.at], std::exp(own_[cell.at])});
          shared[anchor] += logs[anchor].back().weight;
        }
      }
      for (size_t anchor = 0; anchor < anchors_; ++anchor) {
        if (has_level[anchor]) shared[anchor] = -1;
      }
      const auto next = static_cast<size_t>(std::max_element(shared.begin(), shared.end()) - shared.begin());
      has_level[next] = true;
      const double level = logs[next].empty() ? 0 : WeightedMedian(std::move(logs[next]));
      for (size_t r = 0; r < rounds_.size(); ++r) speed_[r] += rounds_[r].anchor == next ? level : 0;
    }
  }

  /// Of rounds beside these anchors only, where they are stated.
  void FitKernels(const std::vector<bool>* beside = nullptr) {
    for (size_t k = 0; k < own_.size(); ++k) {
      std::vector<double> logs;
      for (const Cell& cell : cells_of_[k]) {
        if (!beside || (*beside)[rounds_[cell.at].anchor]) logs.push_back(cell.log_seconds - speed_[cell.at]);
      }
      own_[k] = logs.empty() ? kNotRun : Median(std::move(logs));
    }
  }

  /// For the time of kernels that no other program has held, the anchor's word holds. How many rounds deviate from that.
  size_t TakeDeviations() {
    const std::vector<bool> is_in_several = InSeveralPrograms();
    size_t corrected = 0;
    for (size_t r = 0; r < rounds_.size(); ++r) {
      std::vector<Weighted> logs;
      for (const Cell& cell : rounds_[r].cells)
        logs.push_back({is_in_several[cell.at] ? cell.log_seconds - speed_[r] - own_[cell.at] : 0, std::exp(own_[cell.at])});
      const double deviation = WeightedMedian(std::move(logs));
      speed_[r] += deviation;
      corrected += deviation != 0 ? 1 : 0;
    }
    const double usual = Median(speed_);
    for (double& speed : speed_) speed -= usual;
    return corrected;
  }

  /// A program is known by its kernels.
  [[nodiscard]] std::vector<bool> InSeveralPrograms() const {
    constexpr size_t kNone = static_cast<size_t>(-1);
    std::map<std::vector<size_t>, size_t> programs;
    std::vector<size_t> first(own_.size(), kNone);
    std::vector<bool> is_in_several(own_.size(), false);
    for (const Round& round : rounds_) {
      std::vector<size_t> kernels;  // ascending, as they were read
      for (const Cell& cell : round.cells) kernels.push_back(cell.at);
      const size_t program = programs.try_emplace(std::move(kernels), programs.size()).first->second;
      for (const Cell& cell : round.cells) {
        if (first[cell.at] == kNone) first[cell.at] = program;
        if (first[cell.at] != program) is_in_several[cell.at] = true;
      }
    }
    return is_in_several;
  }

  /// Kernels count by their time: how much one of microseconds wavers matters to nobody, and is mostly the clock's doing. Of the median
  /// deviation, since times are medians: what a few rounds deviate by does not move these.
  void FindSpread(size_t corrected, ProgramTimes& times) const {
    std::vector<Weighted> deviations;
    size_t cells = 0;
    size_t fitted = corrected;
    for (size_t k = 0; k < own_.size(); ++k) {
      if (cells_of_[k].empty()) continue;
      cells += cells_of_[k].size();
      ++fitted;
      if (cells_of_[k].size() < 2) continue;
      const auto count = static_cast<double>(cells_of_[k].size());
      for (const Cell& cell : cells_of_[k]) {
        const double deviation = std::abs(cell.log_seconds - speed_[cell.at] - own_[k]);
        deviations.push_back({deviation * std::sqrt(count / (count - 1)), std::exp(own_[k])});
      }
    }
    if (cells <= fitted) return;
    // Of a normal distribution the median deviation is that many standard deviations, and tells as much as that share of the samples
    // (Rousseeuw and Croux, Alternatives to the Median Absolute Deviation, 1993).
    constexpr double kMedianDeviation = 0.6745;
    constexpr double kEfficiency = 0.37;
    times.spread = WeightedMedian(std::move(deviations)) / kMedianDeviation;
    times.degrees = std::max(1.0, kEfficiency * static_cast<double>(cells - fitted));
  }

  std::vector<Round> rounds_;
  std::vector<std::vector<Cell>> cells_of_;  // by kernel
  size_t anchors_ = 0;
  std::vector<double> speed_;  // by round
  std::vector<double> own_;    // by kernel, at the usual speed
};

}  // namespace

ProgramTimes FitPrograms(const std::vector<Evidence>& evidence) { return Fitter(evidence).Fit(); }

}  // namespace collage
