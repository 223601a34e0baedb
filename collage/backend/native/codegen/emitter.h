#pragma once

// Builds one Halide pipeline from a straight-line function. Pointwise operators and data movement are expressions that their
// consumers take in; operators that need loops of their own (reductions, normalisation, convolution, ...) are anchors: stages
// whose loops a pointwise consumer may share.

#include <Halide.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "collage/backend/native/codegen/generate.h"
#include "collage/backend/native/codegen/index.h"
#include "collage/ir/op_sequence.h"
#include "collage/support/result.h"
#include "collage/tensor/layout.h"

namespace collage::native {

/// How the code is to be made; part of the variant's name.
struct Options {
  int threads = 1;
  bool parallel = true;         ///< false: one thread even if the device has more
  int vector_percent = 100;     ///< lanes of a vector, in percent of a register's
  int unroll = 1;               ///< vectors of a pointwise loop's body
  int tasks = 4;                ///< of a parallel loop, for each thread
  int tile_rows = 0;            ///< of a product's register tile; 0: PickTile's choice
  int tile_vectors = 0;         ///< columns of that tile, in vectors; 0: PickTile's choice
  std::vector<Layout> inputs;   ///< one a parameter
  std::vector<Layout> outputs;  ///< one a result
};

/// A Halide function with the loops that it was built from, outermost first.
struct Stage {
  Halide::Func func;
  std::vector<Loop*> loops;
  std::vector<Halide::Var> vars;
  double cost = 0;  ///< estimated nanoseconds on one thread

  /// Index of the first loop inside which exactly `count` elements lie (loops.size() for one), or nothing.
  [[nodiscard]] std::optional<size_t> LoopsOf(int64_t count) const;
};

class Emitter {
 public:
  using Body = std::function<Halide::Expr(const Index&)>;

  /// An operator with loops of its own. `result` may be inlined into a host stage with the same loops, or be the host itself.
  struct Anchor {
    Stage result;
    std::set<int64_t> cuts;                  ///< where the host's loops must be cut
    std::function<bool(const Stage&)> fits;  ///< can that stage be the host?
    std::function<void(Stage&)> schedule;    ///< schedules everything for that host, the host included
    std::vector<Index> accesses;             ///< by the stage being built, in the loops of `result`
  };

  Emitter(const OpSequence& sequence, const Options& options) : sequence_(sequence), options_(options), values_(sequence.values.size()) {}

  /// Defines everything; then the pipeline can be compiled.
  Status Build();
  [[nodiscard]] Halide::Pipeline MakePipeline() const;
  [[nodiscard]] std::vector<Halide::Argument> Arguments() const;
  /// Constant buffers, in the order in which they follow the inputs as arguments.
  [[nodiscard]] const std::vector<MakeConstant>& constants() const { return constants_; }

  // For the operators:
  [[nodiscard]] const OpSequence& sequence() const { return sequence_; }
  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] const TensorType& TypeOf(size_t value) const { return sequence_.values[value].type; }
  [[nodiscard]] const Shape& ShapeOf(size_t value) const { return sequence_.values[value].type.shape; }
  /// The constant behind a value, or null.
  [[nodiscard]] const Tensor* ConstantOf(size_t value) const;
  [[nodiscard]] int VectorLanes(Halide::Type type) const;
  [[nodiscard]] bool Parallel() const { return options_.parallel && options_.threads > 1; }

  /// The element of a value at an index; only inside Evaluate.
  Halide::Expr At(size_t value, const Index& index);
  /// Runs `body`, which asks for elements, and gives what it gives with every element that it asked for bound to a name. A
  /// chain of operators that each use their operand twice is a tree of exponential size to much of Halide otherwise.
  Halide::Expr Evaluate(const std::function<Halide::Expr()>& body);
  void Define(size_t value, Body body);
  std::shared_ptr<Anchor> AddAnchor(Anchor anchor);
  /// The element of an anchor's result, as an array of `shape`.
  static Halide::Expr CallAnchor(Anchor& anchor, const Index& index, const Shape& shape);
  /// AddAnchor, its elements being those of the value.
  void DefineAnchor(size_t value, Anchor anchor);
  /// A buffer that the kernel owns, of the elements that `make` gives.
  Halide::ImageParam AddConstant(MakeConstant make);
  /// Of elements that no constant of the function is read for.
  Halide::ImageParam AddTable(Tensor table);
  /// A function over `domain` with loops cut where its body and `cuts` want them.
  Stage MakeStage(const std::string& name, const Shape& domain, const Body& body, const std::set<int64_t>& cuts);
  /// A loop that lives as long as the emitter.
  Loop* NewLoop(Halide::Expr variable, int64_t extent);
  /// Says that a concatenation's axis, found as these digits, would like to be built piece by piece.
  void WishPieces(const DimensionIndex& axis, const std::vector<int64_t>& boundaries);
  /// Schedules a stage without anchor: vector innermost, threads outermost.
  void SchedulePointwise(Stage& stage);
  /// Runs the outermost loops of a stage, those before `inner`, on threads if `cost` (nanoseconds) is worth it. Gives the
  /// loop variable under which data of one outer step can be computed, if there is one.
  std::optional<Halide::Var> ParallelOuter(Stage& stage, size_t inner, double cost);

 private:
  struct ValueState {
    Body body;
    std::unordered_map<std::string, Halide::Expr> memo;
  };
  struct PieceWish {
    int64_t divisor;
    int64_t extent;
    std::set<int64_t> boundaries;
  };

  Status EmitSteps();
  void DefineInput(size_t value, size_t parameter);
  void DefineConstant(size_t value);
  void BuildResult(size_t number);
  bool BuildPieces(size_t number, const Shape& domain, const Body& body);
  Halide::ImageParam AddInput(const TensorType& type);
  bool FuseAnchor(Stage& host);
  void ScheduleRootAnchors();

  const OpSequence& sequence_;
  Options options_;
  std::vector<ValueState> values_;
  std::vector<Halide::ImageParam> inputs_;
  std::vector<Halide::ImageParam> constant_buffers_;
  std::vector<MakeConstant> constants_;
  std::vector<std::shared_ptr<Anchor>> anchors_;
  std::vector<Halide::Func> outputs_;
  std::deque<Loop> loops_;
  std::vector<std::pair<std::string, Halide::Expr>> bindings_;
  std::optional<PieceWish> wish_;
  bool wishes_open_ = false;
};

/// Emits one operator call, or says why not.
using EmitOperator = Status (*)(Emitter&, const OpSequence::Step&);
/// By operator name; null when there is no code for it.
EmitOperator FindEmitOperator(const std::string& name);

/// The Halide type of an element in an expression (booleans are one bit there, a byte in memory).
Halide::Type ElementType(DType dtype);
/// Estimated nanoseconds of one evaluation in vector code.
double ExpressionCost(const Halide::Expr& expr);
/// Largest and smallest of two. Where one is NaN the result is either: vector instructions decide.
Halide::Expr Maximum(const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr Minimum(const Halide::Expr& a, const Halide::Expr& b);
/// A constant of the type of `dtype`.
Halide::Expr Immediate(double value, DType dtype);

}  // namespace collage::native
