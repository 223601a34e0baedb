#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "collage/search/search.h"

namespace collage {

struct AlternativesOptions {
  size_t least_beside = 24;  ///< nodes on either side of a decision that are free to be covered in another way
  size_t most_beside = 256;  ///< a stretch that would need more, because the plan cannot be cut near by, is not searched
};

/// Second-best plans, looked for near by: the plan is cut on both sides of a decision where none of its candidates is cut through, and the
/// stretch between is searched again while all else stays as it is. What lies outside is not even walked, so that looking at every decision
/// of a plan is nearly linear.
class Alternatives {
 public:
  /// `problem` must outlive it and know the prices of what is `chosen`, a cover in the order of its first nodes.
  Alternatives(const SearchProblem& problem, std::vector<SearchChoice> chosen, const AlternativesOptions& options = {});
  ~Alternatives();

  struct Found {
    Cost extra;                         ///< how much dearer than the chosen plan; below zero where it is cheaper
    std::vector<SearchChoice> choices;  ///< of the stretch
  };
  /// The cheapest plan without the candidates that `is_excluded` says, among those that differ within the stretch around the i-th choice.
  /// Nothing when there is none; `IsSearchable` says whether it was looked for.
  std::optional<Found> BestWithout(size_t i, const std::function<bool(size_t candidate)>& is_excluded);
  [[nodiscard]] bool IsSearchable(size_t i) const;

  [[nodiscard]] size_t searches() const { return searches_; }
  /// Summed over all searches.
  [[nodiscard]] size_t searched_nodes() const { return searched_nodes_; }

 private:
  struct Stretch {
    size_t begin;
    size_t end;
    bool operator==(const Stretch&) const = default;
  };
  struct Demand {
    size_t layout;
    size_t first;  ///< first nodes of the choices that want it
    size_t last;
  };
  struct Part;

  void FindCuts();
  void FindDemands();
  [[nodiscard]] std::vector<SearchChoice>::const_iterator FirstFrom(size_t node) const;
  [[nodiscard]] Stretch StretchAround(size_t i) const;
  [[nodiscard]] bool IsSearchable(size_t i, const Stretch& stretch) const;
  void Cut(const Stretch& stretch);
  void AddTensors(const Stretch& stretch, Part& part) const;
  void AddOutside(const Stretch& stretch, Part& part) const;
  void AddCandidates(const Stretch& stretch, Part& part) const;
  [[nodiscard]] std::vector<SearchChoice> ChosenIn(const Stretch& stretch, const Part& part) const;
  [[nodiscard]] const SearchCandidate& Candidate(size_t i) const { return problem_.candidates[chosen_[i].candidate]; }

  const SearchProblem& problem_;
  std::vector<SearchChoice> chosen_;
  AlternativesOptions options_;
  std::vector<size_t> cut_before_;               // the last place at or before each where the plan can be cut
  std::vector<size_t> cut_behind_;               // the first at or behind
  std::vector<std::vector<size_t>> by_first_;    // candidates by their first nodes
  std::vector<std::vector<size_t>> touched_by_;  // tensors by the nodes that make or read them
  std::vector<std::vector<size_t>> consumers_;   // of each tensor, ascending
  std::vector<size_t> given_in_;                 // layout of each tensor in the plan
  std::vector<std::vector<Demand>> demands_;     // by tensor
  std::unique_ptr<Part> part_;                   // that was searched last
  size_t searches_ = 0;
  size_t searched_nodes_ = 0;
};

}  // namespace collage
