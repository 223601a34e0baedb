#pragma once

// What of a model has no types before it runs. Where the extents of a value depend on data (NonMaxSuppression, NonZero, a slice whose ends
// are computed), nobody can say what the operators behind it take. So the model is cut there: what lies before is a module like any
// other, its head, and what lies behind stays as it came, nodes of ONNX. After each run of the head these are read once more, with all
// values known, and computed by the reference kernels on the way. So whatever the reader reads works here, and types need no unknown
// extents anywhere. Parts whose rows do not depend on each other may run as programs of a fixed number of rows instead.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collage/support/result.h"
#include "collage/tensor/tensor.h"

namespace collage {

/// Its nodes, and who computes them, are in `onnx` (onnx/remainder.h); what loads and runs programs needs no more than this.
class Remainder {
 public:
  /// What the head gives under one name: a tensor, or the tensors of a sequence.
  struct Input {
    std::string name;
    std::optional<size_t> length;  ///< of a sequence
  };
  struct Output {
    std::string name;
    DType dtype;
    std::optional<Shape> shape;  ///< -1 where only a run tells the extent; absent where not even the rank is known
  };
  /// A compiled program of a region for a number of rows.
  struct RowProgram {
    int64_t rows = 0;
    size_t block = 0;         ///< among the blocks of the head's executable
    double microseconds = 0;  ///< that it took when it was compiled
  };
  /// Nodes whose results have a leading dimension of rows, as many as those of its inputs, and none of which depends on another: some rows
  /// at a time are computed as well as all. Wherever a run meets other types, they are nodes like any other.
  struct Region {
    size_t begin = 0;  ///< its nodes are [begin, end)
    size_t end = 0;
    std::vector<std::string> inputs;
    std::vector<bool> has_rows;  ///< one an input; the others are the same for all rows
    std::vector<std::string> outputs;
    std::vector<RowProgram> programs;  ///< that take the inputs in their order, with so many rows
  };
  /// All that is kept of it.
  struct Parts {
    std::string message;  ///< a model of the nodes, without weights; its outputs are those of the whole model
    std::vector<Input> inputs;
    std::vector<std::pair<std::string, Tensor>> weights;  ///< constants that the nodes read
    std::string reason;                                   ///< why the first node has no types, located at it
    std::vector<Region> regions = {};                     ///< in their order
  };
  /// Runs a region's programs; nothing where they do not take what they are given.
  using RunRegion = std::function<Result<std::optional<std::vector<Tensor>>>(const Region& region, std::span<const Tensor> inputs)>;

  Remainder(const Remainder&) = delete;
  Remainder& operator=(const Remainder&) = delete;
  virtual ~Remainder() = default;

  [[nodiscard]] const Parts& parts() const { return parts_; }
  [[nodiscard]] const std::vector<Output>& outputs() const { return outputs_; }
  [[nodiscard]] virtual size_t node_count() const = 0;
  /// "12 nodes, since extents depend on data: node 'nms' (NonMaxSuppression, opset 11): ..."
  [[nodiscard]] std::string Summary() const;

  /// Computes the outputs from what the head gives; without `run_region` all on the reference kernels. May be called by several threads at
  /// once. Errors name the node, or are those of `run_region`.
  [[nodiscard]] virtual Result<std::vector<Tensor>> Run(std::span<const Tensor> inputs, const RunRegion& run_region = {}) const = 0;

 protected:
  Remainder(Parts parts, std::vector<Output> outputs) : parts_(std::move(parts)), outputs_(std::move(outputs)) {}

 private:
  Parts parts_;
  std::vector<Output> outputs_;
};

/// One a shape profile, null where nothing runs behind it; none at all where nothing runs behind any. Profiles are cut where their shapes
/// demand it, so each has its own.
using Remainders = std::vector<std::shared_ptr<const Remainder>>;

/// That of a profile, which may be null.
inline const Remainder* RemainderOf(const Remainders& remainders, size_t profile) {
  return remainders.empty() ? nullptr : remainders[profile].get();
}

}  // namespace collage
