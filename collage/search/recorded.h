#pragma once

#include <string>
#include <utility>
#include <vector>

#include "collage/search/search.h"

namespace collage {

/// A part of a candidate's kernels that another backend's library computes.
struct RecordedCall {
  size_t candidate = 0;
  size_t library = 0;  ///< a backend
  IndexSet nodes;      ///< of the part
  friend bool operator==(const RecordedCall&, const RecordedCall&) = default;
};

/// A search problem as a compile left it, with what its parts are called: enough to search again without the model, the backends
/// or a clock.
struct RecordedProblem {
  /// Costs are what was measured; Unknown for what a bound kept off every cheapest path.
  SearchProblem problem;
  /// [candidate][variant]: a lower bound of each cost, the cost itself where it is known.
  std::vector<std::vector<Cost>> bounds;
  std::vector<std::string> backends;   ///< in the declared order
  std::vector<std::string> nodes;      ///< "%12"
  std::vector<std::string> operators;  ///< of each node, "nn.conv2d"
  /// [candidate][variant]: "winograd". May be empty.
  std::vector<std::vector<std::string>> variants = {};
  std::vector<RecordedCall> calls = {};
  /// The plan that the compile chose, in the order of its first nodes. May be empty.
  std::vector<SearchChoice> chosen = {};
  /// [node]: the nodes of the ONNX model that it comes from. Empty where no model was read, and in files of before.
  std::vector<std::vector<std::string>> onnx_nodes = {};

  /// "conv1, bn1 (nn.conv2d)", or "%12 (nn.conv2d)".
  [[nodiscard]] std::string NameOf(size_t node) const;
  /// Whether a user may mean a node by `name`: an ONNX node, its number in the text form, or its operator.
  [[nodiscard]] bool IsCalled(size_t node, const std::string& name) const;
};

/// Keeps the prices and, of the conversions, those that some variant can ask for. `bounds` as in RecordedProblem; costs are those of
/// `problem`.
RecordedProblem Record(const SearchProblem& problem, std::vector<std::vector<Cost>> bounds, std::vector<std::string> backends,
                       std::vector<std::string> nodes, std::vector<std::string> operators);

/// JSON, whole picoseconds. ParseRecorded errors on what is no such text, naming the field.
std::string ToJson(const RecordedProblem& recorded);
Result<RecordedProblem> ParseRecorded(const std::string& json);

}  // namespace collage
