#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collage/onnx/partitioned.h"

namespace collage::onnx_io {

/// How the functions of a model call each other, and where each of them is written. Functions that call each other in turn are a circle,
/// which is written as one Loop.
class ControlGraph {
 public:
  /// Errors name the function that calls one of its circle and goes on computing then. `model` must outlive this.
  static Result<ControlGraph> Of(const PartitionedModel& model);

  /// The functions that are reached from the model's entry; a function's callees come before it, but those of its circle.
  [[nodiscard]] const std::vector<size_t>& order() const { return order_; }
  /// In a circle. Calls of its own circle are the last that it does.
  [[nodiscard]] bool IsRecursive(size_t function) const { return nodes_[function].is_recursive; }
  [[nodiscard]] bool AreOfOneCircle(size_t a, size_t b) const {
    return nodes_[a].is_recursive && nodes_[a].component == nodes_[b].component;
  }
  /// Functions of a circle at which an iteration begins: those that are called from outside, or from several places of it, and some that
  /// would lie too deep in others. From any of them one comes to the next on paths of which none has a function twice.
  [[nodiscard]] const std::vector<size_t>& HeadersOf(size_t function) const { return headers_[nodes_[function].component]; }
  /// Begins an iteration of its circle.
  [[nodiscard]] bool IsHeader(size_t function) const { return nodes_[function].is_header; }
  /// The last step, where that is a call or a branch that leads into the circle of the function.
  [[nodiscard]] const PartitionedModel::Step* TailOf(size_t function) const;
  /// Is a function of the model: called at several places, or so that graphs would be too many levels deep in each other.
  [[nodiscard]] bool IsShared(size_t function) const { return nodes_[function].is_shared; }

 private:
  struct Node {
    size_t component = 0;
    bool is_recursive = false;
    bool is_header = false;
    bool is_shared = false;
    bool is_entry = false;  ///< of its circle: called from outside
    bool has_tail = false;
    size_t sites = 0;   ///< where it is called from outside of its circle
    size_t inside = 0;  ///< and from inside
    size_t height = 0;  ///< levels of graphs in graphs that its steps need; of one of a circle, up to the next header
  };
  class Finder;

  explicit ControlGraph(const PartitionedModel& model) : model_(&model), nodes_(model.functions.size()) {}

  Status FindTails();
  void CountSites();
  void FindHeaders();
  void MeasureHeights();
  void MeasureCircle(const std::vector<size_t>& functions);
  [[nodiscard]] size_t HeightOfSteps(size_t function) const;
  [[nodiscard]] size_t HeightOfCall(size_t caller, size_t callee) const;

  const PartitionedModel* model_;
  std::vector<Node> nodes_;
  std::vector<size_t> order_;
  std::vector<std::vector<size_t>> components_;  // functions, in their order
  std::vector<std::vector<size_t>> headers_;     // by component
};

/// The functions that a step calls, with what each is given: one, two of a branch, none of a block.
std::vector<std::pair<size_t, const std::vector<size_t>*>> CalleesOf(const PartitionedModel::Step& step);

}  // namespace collage::onnx_io
