#pragma once

// What is known of the time that kernels take: raw evidence, and one pure function from it to intervals. Nothing derived is ever stored as
// if it had been measured, and no decision looks at evidence in another way.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "collage/cost/cost.h"
#include "collage/cost/statistics.h"

namespace collage {

/// Seconds of something, and of the anchor at the same moment: a fixed kernel or program that is timed in turn with whatever is measured.
/// It says how fast the machine was just then, so that rows of different minutes compare.
struct Row {
  double seconds;
  double anchor_seconds;
  friend bool operator==(const Row&, const Row&) = default;
};

/// A row taken inside a whole program: the median of one round of its runs, beside that of the anchor's runs.
struct ProgramRow {
  Row row;
  uint64_t anchor = 0;  ///< which program the anchor is
  uint64_t round = 0;   ///< which round; all kernels of the program have a row of it
};

/// All that has been measured of one kernel.
struct Evidence {
  std::vector<Row> alone;
  std::vector<ProgramRow> in_program;
  std::string invalid_reason;  ///< not empty: it cannot be compiled or run, or is wrong
};

/// What is known of a kernel before it has run.
struct KernelFacts {
  size_t backend = 0;  ///< or any number for kernels that are like no others of theirs
  /// Which algorithm and layouts: kernels of one backend with the same number are made in the same way.
  uint64_t variant = 0;
  /// Its heavy operators, those that others are fused to: one number each that equal operators share, sorted.
  std::vector<uint64_t> heavy;
  double bytes = 0;  ///< that it reads and writes
  Cost roofline;     ///< proved: no kernel of this work takes less
  /// What its heavy operators are apart from the extents of their arguments; kernels of one number are of one kind.
  uint64_t kind = 0;
  double flops = 0;  ///< of its heavy operators by their definitions; zero where they have none
  /// Whose anchor was timed beside it when it ran alone: what is usual is so for one device.
  size_t device = 0;
  double compile_seconds = 0;  ///< that one is likely to take to compile, by what is usual of such backends
};

/// What may be said of the time that a kernel takes inside a whole program, at the declared confidence.
struct Price {
  enum class Known {
    kNothing,    ///< nothing but the roofline
    kRelatives,  ///< kernels like it have run: `low` is assumed where they say more than the roofline
    kAlone,      ///< it has run alone; how that compares to programs is drawn from others of its backend
    kInProgram,  ///< it has run inside of programs
    kInvalid
  };
  Known known = Known::kNothing;
  Cost low;
  Cost centre = Cost::Unknown();
  Cost high = Cost::Unknown();  ///< Unknown: none
  Cost proved_low;              ///< the roofline: it uses no ratio, relative or drift
  /// `low` if times in programs compare to times alone as they usually do. No statement rests on it: it says what to measure first, while
  /// few programs have run and little can be said of that ratio.
  Cost usual_low;
  /// Half the width of the interval in seconds, where it has run inside of programs: doubt of different kernels is independent.
  double radius = 0;
};

/// Kernels that are like each other, found once for a problem.
class KernelRelations {
 public:
  explicit KernelRelations(std::vector<KernelFacts> kernels);
  [[nodiscard]] const std::vector<KernelFacts>& kernels() const { return kernels_; }

  /// What kernels like each one say of its time, in the ways in which kernels may be alike, the most telling first. `seconds` of each
  /// kernel, NaN where it has not run; a kernel says nothing of itself.
  ///
  ///  1. one backend, the same heavy operators, made in the same way: the least time, as they differ in what is fused behind;
  ///  2. one backend, the same heavy operators, made in any way: the least time;
  ///  3. one backend, several heavy operators: the sum of the least of each apart;
  ///  4. one backend, heavy operators of the same kind, made in the same way: as many flops a second as the median of them;
  ///  5. one backend, heavy operators of the same kind, made in any way: likewise;
  ///  6. one backend, no heavy operators: as many bytes a second as the median.
  static constexpr size_t kWays = 6;
  /// The third way, counted from zero: its predictions are sums over parts, so their ratios scatter less and two of them tell.
  static constexpr size_t kWayOfSums = 2;
  [[nodiscard]] std::vector<double> Predictions(size_t way, const std::vector<double>& seconds) const;

  /// For a kernel with several heavy operators: for each of them the kernels of its backend that have it alone, and those of its backend
  /// that have several as well. Empty for others.
  [[nodiscard]] std::vector<std::span<const size_t>> ApartFrom(size_t kernel) const;
  [[nodiscard]] std::span<const size_t> AlsoWithSeveral(size_t kernel) const;

 private:
  [[nodiscard]] std::vector<double> FromGroups(const std::vector<size_t>& group_of, const std::vector<double>& seconds) const;
  [[nodiscard]] std::vector<double> FromParts(const std::vector<double>& seconds) const;
  /// `group_of` each kernel, kNoGroup for those that are not looked at.
  [[nodiscard]] std::vector<double> FromRates(const std::vector<size_t>& group_of, double KernelFacts::*work,
                                              const std::vector<double>& seconds) const;

  static constexpr size_t kNoGroup = static_cast<size_t>(-1);

  std::vector<KernelFacts> kernels_;
  std::vector<size_t> alike_;                  // group of each kernel: the same heavy operators, made in the same way
  std::vector<size_t> same_heavy_;             // group: the same heavy operators
  std::vector<size_t> same_kind_alike_;        // group: heavy operators of the same kind, made in the same way
  std::vector<size_t> same_kind_;              // group: heavy operators of the same kind
  std::vector<size_t> light_;                  // group: no heavy operators
  std::vector<std::vector<size_t>> parts_of_;  // of each kernel with several heavy operators: the groups (same_heavy_) of each apart
  std::unordered_map<size_t, std::vector<size_t>> apart_;         // by group (same_heavy_): its kernels with one heavy operator
  std::unordered_map<size_t, std::vector<size_t>> with_several_;  // by backend: its kernels with several
};

/// The belief in every kernel's price: the one pure function. Times are told at the speed that the machine has had at the median of all
/// moments at which something was measured inside of programs.
///
/// * Alone: the confidence interval of the median, times the interval in which the next ratio of a kernel's time inside of programs to its
///   time alone falls, by those that its variant has shown, or where these are too few to tell, by those of all variants; else there is a
///   centre and no interval. Kernels count by their time.
/// * In programs: rounds are taken at moments of different speed. The anchor tells it, and by how much the program's turn deviates from
///   that, its kernels do which other programs have held. What is left of the logarithms of times is the spread of rounds, by its median
///   deviation, which all kernels share, because few rounds say little of the spread of one kernel; Student's interval comes from that.
/// * Nothing: the roofline, or what NextIsAbove says of the ratios of true times to predictions, for the most telling prediction of it for
///   which there are enough of them; of few ratios to sums what NextIsWithin says.
std::vector<Price> Believe(const KernelRelations& relations, const std::vector<Evidence>& evidence, const Declared& declared);

}  // namespace collage
