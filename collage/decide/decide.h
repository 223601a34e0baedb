#pragma once

// Which cover to take, and what to measure in order to know: combinatorial best-arm identification. The arms are kernels, a choice of arms
// is a cover, and the search finds the best cover for given prices (CLUCB: Chen, Lin, King, Lyu and Chen, Combinatorial Pure Exploration of
// Multi-Armed Bandits, NIPS 2014). One loop prices kernels alone and in programs, questions what is assumed of others, and confirms the
// winner; single backends are the same loop over their candidates.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collage/cost/belief.h"
#include "collage/search/search.h"
#include "collage/support/result.h"

namespace collage {

/// What is decided about; it does not change while it is decided. Conversions between layouts are kernels like all others.
struct Arms {
  SearchProblem problem;                       ///< costs of its variants mean nothing
  std::vector<std::vector<size_t>> kernel_of;  ///< [candidate][variant]; candidates with equal functions share kernels
  /// The kernel that converts a tensor from one layout to another; kNoKernel where that costs nothing. Empty: all do.
  std::function<size_t(size_t tensor, size_t from, size_t to)> conversion_kernel;
  KernelRelations kernels{{}};
  /// Of what stays with the host and needs no kernel.
  static constexpr size_t kNoKernel = static_cast<size_t>(-1);
};

/// At how many places each kernel may stand in one cover of the `allowed` candidates (empty: all): no more than these.
std::vector<size_t> PlacesOf(const Arms& arms, const std::vector<bool>& allowed);

/// Takes measurements, and keeps them. What a kernel does wrong is its evidence, not an error; errors end everything.
class Measurer {
 public:
  using Found = std::vector<std::pair<size_t, Evidence>>;  ///< new evidence, by kernel
  virtual ~Measurer() = default;
  /// Compiles a kernel and times it by itself.
  virtual Result<Found> MeasureAlone(size_t kernel) = 0;
  /// The same of several, in whatever order. Many machines do it in the time of one.
  virtual Result<Found> MeasureEach(std::span<const size_t> kernels);
  /// How many these may well be.
  virtual Result<size_t> AtOnce() { return 1; }
  /// Times all kernels of a cover inside the whole program for one round. A kernel that fails there, or differs from the reference, is
  /// invalid; then nothing else may have been found.
  virtual Result<Found> MeasureInProgram(const std::vector<SearchChoice>& cover) = 0;
  /// Whether time is over, or somebody asked to stop.
  [[nodiscard]] virtual bool IsOver() const = 0;
  /// Whether so much of it is left.
  [[nodiscard]] virtual bool HasTimeFor(double seconds) const { return seconds <= 0 || !IsOver(); }
};

/// The error where deciding would have had to go on.
inline constexpr const char* kTimeEnded = "time ended before what it needs had been measured";

struct DecideOptions {
  Declared declared;
  /// Candidates that may be chosen; empty: all.
  std::vector<bool> allowed = {};
  /// A cover dearer than that is of no interest: then deciding ends as soon as no allowed one can be cheaper, and nothing is measured when
  /// time is over. Unknown: none.
  Cost rival = Cost::Unknown();
  /// What is likely to be taken by a plan that is known already and is none of these covers. As long as the best cover is dearer, kernels
  /// are priced that may beat that plan: a program of the best cover, which may take long to build, would tell how much worse it is.
  /// When time is over nothing is measured, as with a rival. Unknown: none.
  Cost incumbent = Cost::Unknown();
  /// Told after each step: how much cheaper, as a share, some cover might still be than the best one, which is null where none is known.
  std::function<void(double open, const SearchResult* best)> report = {};
  /// Told after each search what it found, whether only the cheapest cover would do, and how long it took.
  std::function<void(const Result<SearchResult>& found, bool is_exact, double seconds)> searched = {};
};

struct Decision {
  SearchResult best;  ///< at the centres of the beliefs
  /// The greatest share by which some cover might be cheaper than the best, at the declared confidence.
  double open = 0;
  /// Whether that is no more than the smallest difference (or than the rival needs): no cover of these candidates is cheaper by more.
  bool is_settled = false;
};

/// No cover is cheaper than that.
struct Bounds {
  Cost likely;      ///< with the low ends of all intervals, assumed ones included
  Cost proved;      ///< with rooflines alone
  double open = 0;  ///< the share by which a cover might be cheaper than the best, by the decision or by the likely bound
};

/// Measures until the statement holds or time is over. What is likely to be chosen is priced before what is possible; and of a kernel of
/// many operators of which nothing is known, its parts before the whole, since they may rule it out. `evidence` has an entry for each
/// kernel, and gets what is found. When no cover is known, and time is over or too short for the cheapest one, what that one needs is
/// measured which is likely to run soonest; when time is over, not if there is a rival or an incumbent. Errors of the measurer, or where no
/// cover is valid (which then name the first node that none covers).
///
/// Where several kernels are measured at once, those that it would ask for next are measured beside the one that it needs: what it would
/// need if what is asked for turned out to be worth nothing. They are evidence like all other; the statement holds as it does without.
Result<Decision> Decide(const Arms& arms, std::vector<Evidence>& evidence, Measurer& measurer, const DecideOptions& options);

/// The same from what is known already, measuring nothing. Errors where that is no cover.
Result<Decision> DecideFromKnown(const Arms& arms, const std::vector<Evidence>& evidence, const DecideOptions& options);

/// What other covers of the `allowed` candidates (empty: all) may cost after such a decision. A tenth of the most that can be gained on its
/// best cover may be missing at the bounds. Errors where no cover is valid.
Result<Bounds> BoundsOf(const Arms& arms, const std::vector<Price>& prices, const std::vector<bool>& allowed, const Decision& decision);

}  // namespace collage
