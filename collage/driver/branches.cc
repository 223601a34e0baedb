#include "collage/driver/branches.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <unordered_map>

#include "collage/backend/registry.h"
#include "collage/driver/more_candidates.h"

namespace collage {
namespace {

/// Choices of the plan that run one after another.
struct Branch {
  std::vector<size_t> choices;
  double seconds = 0;
};

/// Branches that could run at the same time.
struct Block {
  Branches shares;
  double promise = 0;  ///< seconds; below zero where it takes kernels that gain little by more threads
};

// What share of T times its time on T threads a kernel takes on one. Convolutions of a millisecond took nine tenths on an Intel server
// processor, kernels of some microseconds seven tenths. It says only what is timed first.
constexpr double kUsualEfficiency = 0.9;

class BranchFinder {
 public:
  BranchFinder(const Placement& placement, const Plan& plan, const std::vector<Price>& prices)
      : placement_(placement),
        choices_(plan.result.choices),
        prices_(prices),
        threads_(static_cast<size_t>(placement.devices.front().threads)),
        makers_(choices_.size()) {
    for (size_t i = 0; i < choices_.size(); ++i) {
      for (const size_t tensor : Searched(i).outputs) maker_.emplace(tensor, i);
    }
    for (size_t i = 0; i < choices_.size(); ++i) {
      for (const size_t tensor : Searched(i).inputs) {
        users_[tensor].push_back(i);
        if (const auto made = maker_.find(tensor); made != maker_.end()) makers_[i].insert(made->second);
      }
    }
    for (const PlanKernel& kernel : plan.kernels) kernel_of_.emplace(kernel.choice, kernel.kernel);
  }

  /// Most promising first.
  std::vector<Block> Find() {
    std::vector<Block> blocks;
    for (const auto& [tensor, users] : users_) {
      if (std::count_if(users.begin(), users.end(), [this](size_t i) { return MayTakePart(i); }) < 2) continue;
      std::vector<Branch> branches = BranchesFrom(tensor, users);
      SortLongestFirst(branches);
      AddBlock(branches, blocks);
      if (branches.size() > 2) AddBlock(std::span(branches).subspan(1), blocks);
      AddNeighbours(branches, blocks);
      for (Branch& branch : branches) branch = {{branch.choices.front()}, SecondsOf(branch.choices.front())};
      SortLongestFirst(branches);
      AddNeighbours(branches, blocks);
    }
    std::stable_sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.promise > b.promise; });
    return blocks;
  }

 private:
  [[nodiscard]] const SearchCandidate& Searched(size_t i) const { return placement_.built.problem.candidates[choices_[i].candidate]; }

  [[nodiscard]] double SecondsOf(size_t i) const { return prices_[kernel_of_.at(i)].centre.ToSeconds(); }

  [[nodiscard]] bool MayTakePart(size_t i) const {
    const auto kernel = kernel_of_.find(i);
    if (kernel == kernel_of_.end() || !prices_[kernel->second].centre.IsKnown()) return false;
    const PricedCandidate& candidate = placement_.candidates[choices_[i].candidate];
    const PlacementTarget& target = placement_.targets[candidate.backend];
    return !target.device && !target.is_fallback && !target.rules.runs_side_by_side && RunsOnTeam(*target.backend) &&
           !placement_.IsOfForm(choices_[i].candidate) && !placement_.UsesPrecision(choices_[i]);
  }

  static void SortLongestFirst(std::vector<Branch>& branches) {
    std::stable_sort(branches.begin(), branches.end(), [](const Branch& a, const Branch& b) { return a.seconds > b.seconds; });
  }

  /// As many as there are threads that take the most alike times: no thread waits long.
  void AddNeighbours(std::span<const Branch> branches, std::vector<Block>& blocks) const {
    const size_t count = std::min(branches.size(), threads_);
    for (size_t first = 0; first + count <= branches.size(); ++first) AddBlock(branches.subspan(first, count), blocks);
  }

  /// What must have run before this tensor is there.
  [[nodiscard]] std::vector<bool> Before(size_t tensor) const {
    std::vector<bool> before(choices_.size(), false);
    std::vector<size_t> stack;
    if (const auto made = maker_.find(tensor); made != maker_.end()) stack.push_back(made->second);
    while (!stack.empty()) {
      const size_t i = stack.back();
      stack.pop_back();
      if (before[i]) continue;
      before[i] = true;
      stack.insert(stack.end(), makers_[i].begin(), makers_[i].end());
    }
    return before;
  }

  /// Each from a user of the tensor on, as long as nothing but its own last partition and what was there before is read. Then no path
  /// leaves the branches and comes back, so that together they are convex.
  [[nodiscard]] std::vector<Branch> BranchesFrom(size_t tensor, const std::vector<size_t>& users) const {
    std::vector<bool> is_there = Before(tensor);
    const auto may_run_after = [&](size_t i, size_t last) {
      return MayTakePart(i) &&
             std::all_of(makers_[i].begin(), makers_[i].end(), [&](size_t maker) { return maker == last || is_there[maker]; });
    };
    std::vector<Branch> branches;
    IndexSet taken;
    for (const size_t user : users) {
      if (taken.Contains(user) || !may_run_after(user, user)) continue;
      Branch branch;
      for (std::optional<size_t> next = user; next;) {
        const size_t last = *next;
        taken.Add(last);
        branch.choices.push_back(last);
        branch.seconds += SecondsOf(last);
        next = OnlyUser(last);
        if (next && (taken.Contains(*next) || !may_run_after(*next, last))) next.reset();
      }
      branches.push_back(std::move(branch));
    }
    return branches;
  }

  /// The one choice that reads what this one makes; nothing where there are more or none.
  [[nodiscard]] std::optional<size_t> OnlyUser(size_t i) const {
    std::optional<size_t> only;
    for (const size_t tensor : Searched(i).outputs) {
      const auto users = users_.find(tensor);
      if (users == users_.end()) continue;
      for (const size_t user : users->second) {
        if (only && *only != user) return std::nullopt;
        only = user;
      }
    }
    return only;
  }

  /// `branches` are the longest first.
  void AddBlock(std::span<const Branch> branches, std::vector<Block>& blocks) const {
    const size_t shares = std::min(branches.size(), threads_);
    if (shares < 2) return;
    Block block;
    block.shares.resize(shares);
    std::vector<double> seconds(shares, 0);
    for (const Branch& branch : branches) {
      const auto least = static_cast<size_t>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin());
      seconds[least] += branch.seconds;
      block.shares[least].insert(block.shares[least].end(), branch.choices.begin(), branch.choices.end());
    }
    block.promise = std::accumulate(seconds.begin(), seconds.end(), 0.0) -
                    kUsualEfficiency * static_cast<double>(threads_) * *std::max_element(seconds.begin(), seconds.end());
    blocks.push_back(std::move(block));
  }

  const Placement& placement_;
  const std::vector<SearchChoice>& choices_;
  const std::vector<Price>& prices_;
  size_t threads_;
  std::vector<std::set<size_t>> makers_;          // by choice: the choices that it reads of
  std::unordered_map<size_t, size_t> maker_;      // by tensor
  std::map<size_t, std::vector<size_t>> users_;   // likewise; in order, so that equal plans have equal blocks
  std::unordered_map<size_t, size_t> kernel_of_;  // by choice
};

/// The functions of a partition, each to run in this share.
void AddMembers(const PricedCandidate& candidate, const std::string& variant, const PlacementTarget& target, int threads, size_t share,
                std::vector<NestedSubGraph>& members) {
  for (NestedSubGraph nested : candidate.candidate.sub_graph.nested()) {
    // Kernels of generated code carry no compiler.
    nested.attributes.Set("Primitive", 1);
    nested.attributes.Set("Compiler", std::string(target.backend->Name()));
    nested.attributes.Set("Variant", variant);
    nested.attributes.Set("Threads", static_cast<int64_t>(threads));
    nested.attributes.Set("Share", static_cast<int64_t>(share));
    // A price holds for these versions.
    nested.attributes.Set("Version", target.version);
    nested.attributes.Set("global_symbol", "collage_share_" + std::to_string(nested.sub_graph.inside().First()));
    members.push_back(std::move(nested));
  }
}

}  // namespace

std::optional<PricedCandidate> SideBySideCandidate(const Placement& placement, const Plan& plan, const Branches& branches) {
  const std::optional<size_t> target = SideBySideTarget(placement);
  const Result<Target> parsed = target ? Target::Parse(placement.targets[*target].target) : Fail("there is no such target");
  if (!parsed) return std::nullopt;
  PartitionSpec spec;
  spec.name = placement.NameOf(*target);
  spec.targets = {*parsed};
  const DataflowGraph& graph = *placement.graph;
  IndexSet inside;
  std::vector<NestedSubGraph> members;
  for (size_t share = 0; share < branches.size(); ++share) {
    for (const size_t i : branches[share]) {
      const SearchChoice& choice = plan.result.choices[i];
      const PricedCandidate& candidate = placement.candidates[choice.candidate];
      // What a partition leaves outside of its functions has nobody to run it.
      if (candidate.candidate.sub_graph.nested().size() != 1) return std::nullopt;
      inside |= candidate.candidate.sub_graph.inside();
      AddMembers(candidate, candidate.variants[choice.variant].variant.name, placement.targets[candidate.backend],
                 placement.devices.front().threads, share, members);
    }
  }
  const SharedAttributes attributes{{"Primitive", 1}, {"Compiler", std::string(placement.targets[*target].backend->Name())}};
  PricedCandidate block_candidate;
  block_candidate.candidate = {SubGraph(graph, std::move(inside), std::move(members)).Wrapped(attributes),
                               std::make_shared<const PartitionSpec>(std::move(spec))};
  const CandidatePartition& candidate = block_candidate.candidate;
  if (!candidate.sub_graph.IsConvex(graph) || !candidate.sub_graph.IsInOneBlock(graph)) return std::nullopt;
  if (!placement.constraints->Allow(candidate) || !placement.MayTake(*target, candidate.sub_graph.inside())) return std::nullopt;
  Result<ExtractedFunction> extracted = ExtractFunction(graph, candidate.sub_graph);
  if (!extracted) return std::nullopt;
  block_candidate.extracted = std::move(*extracted);
  block_candidate.backend = *target;
  return block_candidate;
}

std::optional<size_t> SideBySideTarget(const Placement& placement) {
  for (size_t target = 0; target < placement.targets.size(); ++target) {
    if (placement.targets[target].rules.runs_side_by_side && !placement.targets[target].device) return target;
  }
  return std::nullopt;
}

std::vector<BranchCandidate> BranchesSideBySide(const Placement& placement, const Plan& plan, const std::vector<Price>& prices) {
  // Each of them takes some tenths of a second to compile, compare and time: that is what a compile of a minute has for it.
  constexpr size_t kMostBlocks = 64;
  std::vector<BranchCandidate> found;
  if (!SideBySideTarget(placement) || placement.devices.front().threads < 2) return found;
  const auto is_found = [&](const PricedCandidate& candidate) {
    return std::ranges::any_of(found, [&](const BranchCandidate& other) { return IsSamePartition(other.candidate, candidate); });
  };
  for (Block& block : BranchFinder(placement, plan, prices).Find()) {
    if (found.size() == kMostBlocks) break;
    std::optional<PricedCandidate> candidate = SideBySideCandidate(placement, plan, block.shares);
    if (!candidate || placement.FindPartition(*candidate) || is_found(*candidate)) continue;
    found.push_back({std::move(block.shares), std::move(*candidate)});
  }
  return found;
}

bool IsCheaperThanParts(const Placement& placement, size_t candidate, const std::vector<SearchChoice>& choices,
                        const std::vector<Price>& prices) {
  const auto price_of = [&](size_t kernel) { return kernel == Arms::kNoKernel ? Cost() : prices[kernel].centre; };
  const std::vector<SearchCandidate>& searched = placement.built.problem.candidates;
  Cost parts;
  for (const SearchChoice& choice : choices) {
    const IndexSet& inside = searched[choice.candidate].inside;
    if (!inside.Empty() && inside.IsSubsetOf(searched[candidate].inside))
      parts += price_of(placement.arms.kernel_of[choice.candidate][choice.variant]);
  }
  const std::vector<size_t>& kernels = placement.arms.kernel_of[candidate];
  return std::any_of(kernels.begin(), kernels.end(), [&](size_t kernel) { return price_of(kernel).IsKnown() && price_of(kernel) < parts; });
}

}  // namespace collage
