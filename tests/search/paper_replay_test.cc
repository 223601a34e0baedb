// The operator prices that the Collage paper recorded, searched again: on the networks whose kernels were recorded in full the
// op-level program, the shortest path, the priority queue and the integer program must agree.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "collage/search/exact.h"
#include "collage/search/op_level.h"
#include "collage/search/shortest_path.h"

namespace collage {
namespace {

const std::vector<std::string> kBackends = {"cudnn", "cublas", "tensorrt", "tvmgpu-autotvm"};

/// "conv2d+relu (1, 64, 56, 56) channels 64 kernel 3 strides 1 groups 1", and for pooling the window in place of the kernel.
std::string KeyOf(const std::string& op, const std::string& shape, int channels, int window, int strides, int groups) {
  return op + " " + shape + " " + std::to_string(channels) + " " + std::to_string(window) + " " + std::to_string(strides) + " " +
         std::to_string(groups);
}

class Recorded {
 public:
  Recorded() {
    std::ifstream file("tests/search/data/operator_cost_gpu.json");
    const nlohmann::json recorded = nlohmann::json::parse(file);
    for (const auto& [text, cost] : recorded.items()) {
      const std::string op = Between(text, "op_type: ", ", data_shape");
      const std::string name = Between(text, "op_name: ", "_" + op);
      const bool is_convolution = text.find("nn.conv2d") != std::string::npos;
      const std::string key = KeyOf(op, Between(text, "data_shape: ", ", attrs"), Number(text, "'channels', "),
                                    Number(text, is_convolution ? "'kernel_size', (" : "'pool_size', ("), Number(text, "'strides', ("),
                                    Number(text, "'groups', "));
      prices_[key][name] = Cost::Seconds(cost[0].get<double>() * 1e-3);
    }
  }
  [[nodiscard]] const std::map<std::string, Cost>* Find(const std::string& key) const {
    const auto at = prices_.find(key);
    return at == prices_.end() ? nullptr : &at->second;
  }

 private:
  static std::string Between(const std::string& text, const std::string& before, const std::string& after) {
    const size_t begin = text.find(before) + before.size();
    return text.substr(begin, text.find(after, begin) - begin);
  }
  static int Number(const std::string& text, const std::string& before) {
    const size_t at = text.find(before);
    return at == std::string::npos ? 0 : std::stoi(text.substr(at + before.size()));
  }

  std::map<std::string, std::map<std::string, Cost>> prices_;
};

/// A network as the paper's patterns see it. Each operator is a node, and is priced alone and as the end of the fused patterns that
/// were recorded.
class Network {
 public:
  struct Value {
    size_t tensor;
    int channels;
    int size;
    size_t node;                 ///< that made it
    std::string fused;           ///< recorded pattern that ends in it, and with which it may be fused further
    std::vector<size_t> inside;  ///< nodes of that pattern
    std::string key;             ///< shape and attributes of the pattern
  };

  explicit Network(const Recorded& recorded) : recorded_(recorded) {
    problem_.backend_count = kBackends.size();
    problem_.transition.assign(kBackends.size(), std::vector<Cost>(kBackends.size(), Cost::Microseconds(2)));
  }

  Value Input(int channels, int size) {
    problem_.tensors.push_back({SearchTensor::kOutside, {}, false});
    return {problem_.tensors.size() - 1, channels, size, 0, "", {}, ""};
  }

  Value Convolution(const Value& x, int channels, int kernel, int strides, int groups) {
    return Add("conv2d", {x}, channels, x.size / strides, {channels, kernel, strides, groups});
  }
  Value Pool(const Value& x) { return Add("avgpool2d", {x}, x.channels, x.size, {0, 3, 1, 0}); }
  Value Relu(const Value& x) { return Fused("relu", x, {}); }
  Value Bias(const Value& x) { return Fused("biasadd", x, {}); }
  Value Sum(const Value& x, const Value& y) { return Fused("add", x, {y}); }
  Value Concat(const std::vector<Value>& fields) {
    return Add("tuple_five_idx+concat", fields, fields[0].channels * static_cast<int>(fields.size()), fields[0].size, {0, 0, 0, 0});
  }

  SearchProblem Finish(const Value& result) {
    problem_.tensors[result.tensor].is_result = true;
    for (SearchCandidate& candidate : problem_.candidates) {
      for (size_t t = 0; t < problem_.tensors.size(); ++t) {
        const SearchTensor& tensor = problem_.tensors[t];
        const bool made = tensor.producer != SearchTensor::kOutside && candidate.inside.Contains(tensor.producer);
        bool read_inside = false;
        bool read_outside = tensor.is_result;
        for (const size_t consumer : tensor.consumers) (candidate.inside.Contains(consumer) ? read_inside : read_outside) = true;
        if (!made && read_inside) candidate.inputs.push_back(t);
        if (made && read_outside) candidate.outputs.push_back(t);
      }
      candidate.variants[0].input_layouts.assign(candidate.inputs.size(), 0);
      candidate.variants[0].output_layouts.assign(candidate.outputs.size(), 0);
    }
    return std::move(problem_);
  }

 private:
  struct Attributes {
    int channels, window, strides, groups;
  };

  static std::string Shape(const Value& x) {
    return "(1, " + std::to_string(x.channels) + ", " + std::to_string(x.size) + ", " + std::to_string(x.size) + ")";
  }

  Value Add(const std::string& op, const std::vector<Value>& inputs, int channels, int size, Attributes attributes) {
    const size_t node = problem_.node_count++;
    for (const Value& input : inputs) {
      std::vector<size_t>& consumers = problem_.tensors[input.tensor].consumers;
      if (consumers.empty() || consumers.back() != node) consumers.push_back(node);
    }
    problem_.tensors.push_back({node, {}, false});
    const std::string key = KeyOf("", Shape(inputs[0]), attributes.channels, attributes.window, attributes.strides, attributes.groups);
    EXPECT_TRUE(Offer(op, key, {node})) << op << key << " was not recorded";
    return {problem_.tensors.size() - 1, channels, size, node, op, {node}, key};
  }

  /// An operator on its own, and fused to what made its first input where that was recorded.
  Value Fused(const std::string& op, const Value& x, const std::vector<Value>& others) {
    std::vector<Value> inputs = {x};
    inputs.insert(inputs.end(), others.begin(), others.end());
    Value result = Add(op, inputs, x.channels, x.size, {0, 0, 0, 0});
    std::vector<size_t> inside = x.inside;
    inside.push_back(result.node);
    if (x.inside.empty() || problem_.tensors[x.tensor].consumers.size() > 1) return result;
    const std::string pattern = x.fused + "+" + op;
    // conv2d+biasadd was not recorded by itself, only with the activation behind it.
    if (Offer(pattern, x.key, inside) || op == "biasadd") {
      result.fused = pattern;
      result.inside = inside;
      result.key = x.key;
    }
    return result;
  }

  bool Offer(const std::string& op, const std::string& key, const std::vector<size_t>& inside) {
    const std::map<std::string, Cost>* prices = recorded_.Find(op + key);
    if (!prices) return false;
    for (size_t backend = 0; backend < kBackends.size(); ++backend) {
      const auto price = prices->find(kBackends[backend]);
      if (price == prices->end()) continue;
      SearchCandidate candidate;
      candidate.inside = IndexSet(inside);
      candidate.backend = backend;
      candidate.variants = {{price->second, {}, {}}};
      problem_.candidates.push_back(std::move(candidate));
    }
    return true;
  }

  const Recorded& recorded_;
  SearchProblem problem_;
};

SearchProblem Resnext50(const Recorded& recorded) {
  Network network(recorded);
  Network::Value x = network.Input(64, 56);
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    const int width = 128 << stage;
    for (int block = 0; block < blocks[stage]; ++block) {
      const int strides = stage > 0 && block == 0 ? 2 : 1;
      const Network::Value shortcut = block == 0 ? network.Convolution(x, 2 * width, 1, strides, 1) : x;
      Network::Value inner = network.Relu(network.Convolution(x, width, 1, 1, 1));
      inner = network.Relu(network.Convolution(inner, width, 3, strides, 32));
      x = network.Relu(network.Sum(network.Convolution(inner, 2 * width, 1, 1, 1), shortcut));
    }
  }
  return network.Finish(x);
}

/// Normal cells at one resolution, as TASO and the paper build them: five blocks over the two cells before.
SearchProblem NasnetCells(const Recorded& recorded, int channels, int size, int cells) {
  Network network(recorded);
  Network::Value before = network.Input(5 * channels, size);
  Network::Value last = network.Input(5 * channels, size);
  const auto squeeze = [&](const Network::Value& x) { return network.Relu(network.Bias(network.Convolution(x, channels, 1, 1, 1))); };
  const auto separable = [&](const Network::Value& x) {
    return network.Convolution(network.Convolution(x, channels, 3, 1, channels), channels, 1, 1, 1);
  };
  for (int cell = 0; cell < cells; ++cell) {
    const Network::Value p = squeeze(before);
    const Network::Value h = squeeze(last);
    const Network::Value next =
        network.Concat({network.Sum(separable(h), h), network.Sum(separable(p), separable(h)), network.Sum(network.Pool(h), p),
                        network.Sum(network.Pool(p), network.Pool(p)), network.Sum(separable(p), separable(p))});
    before = last;
    last = next;
  }
  return network.Finish(last);
}

void ExpectAllAgree(SearchProblem problem) {
  const SearchResult best = SearchShortestPath(problem).value();
  EXPECT_EQ(best.lower_bound, best.cost);
  EXPECT_EQ(best.cost, PriceOfCover(problem, best.choices));
  EXPECT_EQ(SearchOpLevel(problem)->cost, best.cost);
  EXPECT_EQ(SearchDijkstra(problem)->choices, best.choices);
  const SearchResult exact = SearchExactly(problem).value();
  EXPECT_NEAR(exact.cost.ToMicroseconds(), best.cost.ToMicroseconds(), 1e-5 * best.cost.ToMicroseconds());
  EXPECT_GE(exact.lower_bound.ToMicroseconds(), best.cost.ToMicroseconds() * (1 - 1e-4));
  // A plan that mixes backends is better than any one alone, as the paper found.
  for (size_t backend = 0; backend < kBackends.size(); ++backend) {
    std::vector<bool> others(problem.candidates.size());
    for (size_t c = 0; c < others.size(); ++c) others[c] = problem.candidates[c].backend != backend;
    const Result<SearchResult> alone = SearchShortestPath(problem, others);
    if (alone) {
      EXPECT_LT(best.cost, alone->cost) << kBackends[backend];
    }
  }
  // Where changes of backend cost differently the op-level program is a heuristic; the others still agree.
  for (size_t a = 0; a < kBackends.size(); ++a) {
    for (size_t b = 0; b < kBackends.size(); ++b)
      problem.transition[a][b] = Cost::Microseconds(a == b ? 0.5 : 4.0 + static_cast<double>(a));
  }
  const SearchResult uneven = SearchShortestPath(problem).value();
  EXPECT_EQ(SearchDijkstra(problem)->choices, uneven.choices);
  EXPECT_GE(SearchOpLevel(problem)->cost, uneven.cost);
  EXPECT_NEAR(SearchExactly(problem)->cost.ToMicroseconds(), uneven.cost.ToMicroseconds(), 1e-5 * uneven.cost.ToMicroseconds());
}

TEST(PaperReplay, Resnext50) {
  const SearchProblem problem = Resnext50(Recorded());
  EXPECT_EQ(problem.node_count, 16u * 7 + 4);
  ExpectAllAgree(problem);
}

TEST(PaperReplay, NasnetCellsAtThreeResolutions) {
  const Recorded recorded;
  ExpectAllAgree(NasnetCells(recorded, 64, 56, 4));
  ExpectAllAgree(NasnetCells(recorded, 128, 28, 4));
  ExpectAllAgree(NasnetCells(recorded, 256, 14, 4));
}

}  // namespace
}  // namespace collage
