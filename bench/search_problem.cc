#include "bench/search_problem.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "collage/dataflow/tensor_source.h"
#include "collage/support/hash.h"

namespace collage {
namespace {

constexpr size_t kLayouts = 3;

class Builder {
 public:
  Builder(const DataflowGraph& graph, uint64_t seed) : graph_(graph), seed_(seed) {}

  SearchProblem Build(const std::vector<CandidatePartition>& candidates) {
    AddNodes();
    for (const CandidatePartition& candidate : candidates) AddCandidate(candidate);
    problem_.node_count = nodes_.size();
    problem_.layout_count = kLayouts;
    problem_.backend_count = backends_.size();
    problem_.conversion = [seed = seed_](size_t tensor, size_t from, size_t to) {
      return from == to ? Cost() : Cost::Microseconds(Uniform(seed, (tensor * kLayouts + from) * kLayouts + to, 2, 8));
    };
    problem_.transition.assign(backends_.size(), std::vector<Cost>(backends_.size()));
    for (size_t a = 0; a < backends_.size(); ++a) {
      for (size_t b = 0; b < backends_.size(); ++b)
        problem_.transition[a][b] = Cost::Microseconds(a == b ? 0.3 : Uniform(seed_, a * 97 + b, 0.5, 3));
    }
    return std::move(problem_);
  }

 private:
  static double Uniform(uint64_t seed, uint64_t what, double low, double high) {
    return low + (high - low) * static_cast<double>(HashCombine(seed, what) >> 11) * 0x1p-53;
  }

  void AddNodes() {
    for (PostDfsIndex index = 0; index < graph_.size(); ++index) {
      if (!CalledOp(graph_[index].expr)) continue;
      const size_t node = nodes_.size();
      node_of_.emplace(index, node);
      nodes_.push_back(index);
      read_.emplace_back();
      made_.emplace_back();
      for (const Expr& argument : graph_[index].expr->As<Call>()->args) {
        for (const TensorSource& source : ResolveTensors(graph_, graph_.IndexOf(argument))) {
          if (graph_[source.node].expr->As<Constant>()) continue;
          const size_t tensor = TensorOf(source);
          read_[node].push_back(tensor);
          problem_.tensors[tensor].consumers.push_back(node);
        }
      }
    }
    for (const TensorSource& source : ResolveTensors(graph_, graph_.IndexOf(graph_.function()->As<Function>()->body)))
      problem_.tensors[TensorOf(source)].is_result = true;
  }

  size_t TensorOf(const TensorSource& source) {
    const auto [at, is_new] = tensor_of_.emplace(source, problem_.tensors.size());
    if (is_new) {
      const auto producer = node_of_.find(source.node);
      problem_.tensors.push_back({producer == node_of_.end() ? SearchTensor::kOutside : producer->second, {}, false});
      if (producer != node_of_.end()) made_[producer->second].push_back(at->second);
    }
    return at->second;
  }

  void AddCandidate(const CandidatePartition& found) {
    SearchCandidate candidate;
    std::vector<size_t> inside;
    found.sub_graph.inside().ForEach([&](PostDfsIndex index) {
      if (const auto node = node_of_.find(index); node != node_of_.end()) inside.push_back(node->second);
    });
    if (inside.empty()) return;
    candidate.inside = IndexSet(inside);
    candidate.backend = backends_.emplace(found.spec->name, backends_.size()).first->second;
    candidate.is_partition = !found.spec->is_host;
    for (const size_t node : inside) {
      for (const size_t tensor : read_[node]) {
        const size_t producer = problem_.tensors[tensor].producer;
        if (producer == SearchTensor::kOutside || !candidate.inside.Contains(producer)) candidate.inputs.push_back(tensor);
      }
      for (const size_t tensor : made_[node]) {
        const SearchTensor& made = problem_.tensors[tensor];
        const bool is_read = std::any_of(made.consumers.rbegin(), made.consumers.rend(),
                                         [&](size_t consumer) { return !candidate.inside.Contains(consumer); });
        if (made.is_result || is_read) candidate.outputs.push_back(tensor);
      }
    }
    std::sort(candidate.inputs.begin(), candidate.inputs.end());
    candidate.inputs.erase(std::unique(candidate.inputs.begin(), candidate.inputs.end()), candidate.inputs.end());
    AddVariants(found.spec->name, inside, candidate);
    problem_.candidates.push_back(std::move(candidate));
  }

  void AddVariants(const std::string& name, const std::vector<size_t>& inside, SearchCandidate& candidate) {
    double total = 0;
    for (const size_t node : inside) {
      const bool heavy = CalledOp(graph_[nodes_[node]].expr)->kind == OpKind::kOutElementwiseFusable;
      const double share = candidate.is_partition ? Uniform(seed_, HashCombine(candidate.backend, node), 0.7, 1.4) : 0;
      total += share * (heavy ? Uniform(seed_, node, 15, 90) : Uniform(seed_, node, 2, 9) * (inside.size() > 1 ? 0.4 : 1));
    }
    const size_t layouts = name == "library" ? kLayouts : name == "native" && inside.size() < 4 ? 2 : 1;
    for (size_t layout = 0; layout < layouts; ++layout) {
      const double factor =
          layout == 0 ? 1.15
                      : Uniform(seed_, HashCombine(candidate.backend * 31 + layout, inside.front() * 7919 + inside.size()), 0.85, 1.1);
      candidate.variants.push_back({Cost::Microseconds(total * factor), std::vector<size_t>(candidate.inputs.size(), layout),
                                    std::vector<size_t>(candidate.outputs.size(), layout)});
    }
  }

  const DataflowGraph& graph_;
  const uint64_t seed_;
  SearchProblem problem_;
  std::vector<PostDfsIndex> nodes_;
  std::unordered_map<PostDfsIndex, size_t> node_of_;
  std::map<TensorSource, size_t> tensor_of_;
  std::vector<std::vector<size_t>> read_;
  std::vector<std::vector<size_t>> made_;
  std::map<std::string, size_t> backends_;
};

}  // namespace

SearchProblem RandomlyPriced(const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates, uint64_t seed) {
  return Builder(graph, seed).Build(candidates);
}

}  // namespace collage
