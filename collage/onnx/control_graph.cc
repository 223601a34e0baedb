#include "collage/onnx/control_graph.h"

#include <algorithm>
#include <bit>

namespace collage::onnx_io {
namespace {

using Step = PartitionedModel::Step;

// Parsers of messages take 100 levels of messages, and a graph in a graph is three: 33 graphs. A function that needs more than a third of
// them becomes one of the model, in which levels begin anew. So may a Loop's path between headers, which lies within its function's.
constexpr size_t kMostLevels = 10;

}  // namespace

std::vector<std::pair<size_t, const std::vector<size_t>*>> CalleesOf(const Step& step) {
  if (step.kind == Step::Kind::kBlock) return {};
  if (step.kind == Step::Kind::kCall) return {{step.callee, &step.inputs}};
  return {{step.callee, &step.inputs}, {step.otherwise, &step.otherwise_inputs}};
}

/// Circles of calls as strongly connected components (Tarjan 1972), without recursion over depth.
class ControlGraph::Finder {
 public:
  explicit Finder(ControlGraph& graph) : graph_(graph), states_(graph.nodes_.size()) {
    for (const PartitionedModel::Function& function : graph.model_->functions) {
      callees_.emplace_back();
      for (const Step& step : function.steps) {
        for (const auto& [callee, inputs] : CalleesOf(step)) callees_.back().push_back(callee);
      }
    }
  }

  void Run(size_t entry) {
    Open(entry);
    while (!path_.empty()) {
      const size_t at = path_.back();
      State& state = states_[at];
      if (state.next == callees_[at].size()) {
        Close(at);
        continue;
      }
      const size_t callee = callees_[at][state.next++];
      if (states_[callee].number == 0) {
        Open(callee);
      } else if (states_[callee].is_open) {
        state.lowest = std::min(state.lowest, states_[callee].number);
      }
    }
  }

 private:
  struct State {
    size_t number = 0;  // 0: not seen
    size_t lowest = 0;
    size_t next = 0;  // of its callees
    bool is_open = false;
  };

  void Open(size_t function) {
    ++count_;
    states_[function] = {count_, count_, 0, true};
    path_.push_back(function);
    open_.push_back(function);
  }

  void Close(size_t function) {
    path_.pop_back();
    const State& state = states_[function];
    if (!path_.empty()) states_[path_.back()].lowest = std::min(states_[path_.back()].lowest, state.lowest);
    if (state.lowest != state.number) return;
    const auto first = std::find(open_.rbegin(), open_.rend(), function).base() - 1;
    std::vector<size_t> component(first, open_.end());
    open_.erase(first, open_.end());
    const bool calls_itself = std::find(callees_[function].begin(), callees_[function].end(), function) != callees_[function].end();
    for (const size_t member : component) {
      states_[member].is_open = false;
      graph_.nodes_[member].component = graph_.components_.size();
      graph_.nodes_[member].is_recursive = component.size() > 1 || calls_itself;
      graph_.order_.push_back(member);
    }
    graph_.components_.push_back(std::move(component));
  }

  ControlGraph& graph_;
  std::vector<std::vector<size_t>> callees_;
  std::vector<State> states_;
  std::vector<size_t> path_;
  std::vector<size_t> open_;  // seen, and of no component yet
  size_t count_ = 0;
};

Result<ControlGraph> ControlGraph::Of(const PartitionedModel& model) {
  ControlGraph graph(model);
  Finder(graph).Run(model.entry);
  COLLAGE_TRY_STATUS(graph.FindTails());
  graph.CountSites();
  graph.FindHeaders();
  graph.MeasureHeights();
  return graph;
}

const Step* ControlGraph::TailOf(size_t function) const {
  return nodes_[function].has_tail ? &model_->functions[function].steps.back() : nullptr;
}

Status ControlGraph::FindTails() {
  for (const size_t number : order_) {
    const PartitionedModel::Function& function = model_->functions[number];
    for (size_t i = 0; i < function.steps.size(); ++i) {
      for (const auto& [callee, inputs] : CalleesOf(function.steps[i])) {
        if (!AreOfOneCircle(number, callee)) continue;
        if (i + 1 == function.steps.size() && function.steps[i].outputs == function.results) {
          nodes_[number].has_tail = true;
          continue;
        }
        return Fail("@" + model_->functions[callee].name + " is called by @" + function.name + ", which goes on computing then; " +
                    "a recursion has an ONNX form only where the call is the last thing that a function does");
      }
    }
  }
  return {};
}

/// A circle that is entered at several functions is written for each, so what it calls is called as often.
void ControlGraph::CountSites() {
  nodes_[model_->entry].is_entry = true;
  for (auto component = components_.rbegin(); component != components_.rend(); ++component) {
    const auto entries = std::count_if(component->begin(), component->end(), [&](size_t function) { return nodes_[function].is_entry; });
    for (const size_t function : *component) {
      for (const Step& step : model_->functions[function].steps) {
        for (const auto& [callee, inputs] : CalleesOf(step)) {
          Node& node = nodes_[callee];
          if (AreOfOneCircle(function, callee)) {
            ++node.inside;
            continue;
          }
          node.is_entry = true;
          node.sites += static_cast<size_t>(entries);
        }
      }
    }
  }
}

void ControlGraph::FindHeaders() {
  for (const size_t function : order_) {
    Node& node = nodes_[function];
    node.is_header = node.is_recursive && (node.is_entry || node.inside > 1);
    // What has no steps is shorter where it is called.
    node.is_shared = node.sites > 1 && !model_->functions[function].steps.empty();
  }
}

size_t ControlGraph::HeightOfCall(size_t caller, size_t callee) const {
  const bool begins_anew = AreOfOneCircle(caller, callee) ? nodes_[callee].is_header : nodes_[callee].is_shared;
  return begins_anew ? 0 : nodes_[callee].height;
}

size_t ControlGraph::HeightOfSteps(size_t function) const {
  size_t height = 0;
  for (const Step& step : model_->functions[function].steps) {
    const size_t own = step.kind == Step::Kind::kBranch ? 1 : 0;
    for (const auto& [callee, inputs] : CalleesOf(step)) height = std::max(height, own + HeightOfCall(function, callee));
  }
  return height;
}

void ControlGraph::MeasureHeights() {
  headers_.resize(components_.size());
  for (size_t i = 0; i < components_.size(); ++i) {
    const std::vector<size_t>& functions = components_[i];
    if (nodes_[functions[0]].is_recursive) {
      MeasureCircle(functions);
    } else {
      nodes_[functions[0]].height = HeightOfSteps(functions[0]);
    }
    for (const size_t function : functions) {
      Node& node = nodes_[function];
      node.is_shared = node.is_shared || (node.is_entry && function != model_->entry && node.height > kMostLevels);
    }
  }
}

void ControlGraph::MeasureCircle(const std::vector<size_t>& functions) {
  // Between headers calls are trees. A function's callees before it: in the order of a search from the headers, turned round.
  std::vector<size_t> open;
  for (const size_t function : functions) {
    if (nodes_[function].is_header) open.push_back(function);
  }
  for (size_t i = 0; i < open.size(); ++i) {
    for (const auto& [callee, inputs] : CalleesOf(model_->functions[open[i]].steps.back())) {
      if (AreOfOneCircle(open[i], callee) && !nodes_[callee].is_header) open.push_back(callee);
    }
  }
  size_t highest = 0;
  for (auto function = open.rbegin(); function != open.rend(); ++function) {
    Node& node = nodes_[*function];
    node.height = HeightOfSteps(*function);
    node.is_header = node.is_header || node.height > kMostLevels;
    highest = std::max(highest, node.height);
  }
  std::vector<size_t>& headers = headers_[nodes_[functions[0]].component];
  std::copy_if(open.begin(), open.end(), std::back_inserter(headers), [&](size_t function) { return nodes_[function].is_header; });
  // A Loop, and in it the choice among its headers.
  const size_t height = 1 + static_cast<size_t>(std::bit_width(headers.size() - 1)) + highest;
  for (const size_t function : functions) nodes_[function].height = height;
}

}  // namespace collage::onnx_io
