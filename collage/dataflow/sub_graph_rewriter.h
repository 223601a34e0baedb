#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "collage/dataflow/extraction.h"

namespace collage {

/// Rebuilds the whole body of a graph's function, or the inside of one sub-graph, with some sub-graphs replaced by calls.
/// Behind ExtractFunction and RewriteFunction.
class SubGraphRewriter {
 public:
  /// `scope` null: the whole function. The arguments must outlive the rewriter.
  SubGraphRewriter(const DataflowGraph& graph, const IndexSet* scope, std::span<const NestedSubGraph> partitions,
                   const ExtractionOptions& options);

  /// Makes ready all that these nodes need; call it before Value, Tensor and PartitionCall.
  Status Prepare(const std::vector<PostDfsIndex>& roots);
  Result<Expr> Tensor(TensorSource source);
  /// The value of a node as its users see it.
  Result<Expr> Value(PostDfsIndex node);

  /// Tensors from outside of the scope, and the parameters that stand for them.
  /// The call that replaces a partition when it gives exactly these tensors, or null.
  [[nodiscard]] Expr CallThatGives(const std::vector<TensorSource>& tensors) const;

  [[nodiscard]] const std::vector<TensorSource>& inputs() const { return inputs_; }
  [[nodiscard]] const std::vector<Expr>& parameters() const { return parameters_; }

 private:
  struct Partition {
    const NestedSubGraph* nested;
    ExtractedFunction extracted;
    Expr call;
  };
  enum class State { kOpen, kDone };
  static constexpr size_t kNoPartition = static_cast<size_t>(-1);

  void IncludeFunctionLiterals();
  Status ExtractPartitions();
  [[nodiscard]] bool InScope(PostDfsIndex node) const;
  [[nodiscard]] size_t PartitionOf(PostDfsIndex node) const;
  /// A value that needs no building: a constant, a name, a function literal of a backend.
  [[nodiscard]] bool StandsForItself(PostDfsIndex node) const;
  /// That value; a variable of a copied function literal is a fresh one, since the literal may be copied more than once.
  Expr Itself(PostDfsIndex node);
  [[nodiscard]] bool IsBuilt(PostDfsIndex node) const;
  [[nodiscard]] bool IsProjectionOfPartition(PostDfsIndex node) const;
  [[nodiscard]] TensorSource Resolve(TensorSource tensor) const;
  /// Units are built as wholes: a node, or a partition, which is numbered after all nodes.
  [[nodiscard]] size_t UnitOf(PostDfsIndex node) const;
  [[nodiscard]] std::vector<size_t> UnitsNeededBy(size_t unit) const;
  /// The unit that gives a tensor, if one is needed.
  void AddUnitBehind(TensorSource tensor, std::vector<size_t>& units) const;
  void AddUnitsOf(PostDfsIndex node, std::vector<size_t>& units) const;
  Status Build(size_t unit);
  Result<Expr> BuildNode(PostDfsIndex node);
  Status BuildPartition(Partition& partition);
  Result<Expr> Assemble(const Type& type, PostDfsIndex node, size_t& field);
  Expr Parameter(TensorSource source);

  const DataflowGraph& graph_;
  const IndexSet* scope_;
  const ExtractionOptions options_;
  IndexSet literals_;  // function literals of the scope and all that is inside them
  std::vector<Partition> partitions_;
  std::unordered_map<PostDfsIndex, size_t> partition_of_;
  std::unordered_map<PostDfsIndex, Expr> values_;
  std::unordered_map<PostDfsIndex, Expr> fresh_variables_;
  std::map<TensorSource, Expr> tensors_;
  std::vector<TensorSource> inputs_;
  std::vector<Expr> parameters_;
};

}  // namespace collage
