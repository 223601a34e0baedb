#include <optional>
#include <utility>

#include "collage/backend/batch_offsets.h"
#include "collage/backend/xsmm/forms.h"
#include "collage/backend/xsmm/panel_program.h"
#include "collage/backend/xsmm/panel_weights.h"
#include "collage/backend/xsmm/strassen.h"

namespace collage::xsmm {
namespace {

struct Problem {
  int64_t rows, columns, depth;
  bool transposed;  ///< the right operand is stored [columns][depth]
  std::vector<Tiling::Batch> batches;
  std::vector<int64_t> matrices;  ///< of the right operand
};

int64_t BatchCount(const Shape& shape) { return ElementCount(Shape(shape.begin(), shape.end() - 2)); }

// nn.dense keeps its matrix as [columns][depth]; the others say.
bool IsTransposed(const OpSequence::Step& step) {
  const bool by_default = step.op->name == "nn.batch_matmul";
  return step.op->name == "nn.dense" || step.attributes.Bool("transpose_b", by_default).value_or(by_default);
}

Result<Problem> ProblemOf(const Chain& chain) {
  const OpSequence::Step& step = *chain.base;
  const Shape& left = chain.ShapeOf(step.inputs[0]);
  const Shape& right = chain.ShapeOf(step.inputs[1]);
  const Shape& result = chain.ResultShape();
  if (left.empty() || right.size() < 2) return Fail("libxsmm: matrices are wanted");
  if (step.attributes.Bool("transpose_a", false).value_or(false)) return Fail("libxsmm: the left matrix is transposed");
  Problem problem{0, result.back(), left.back(), IsTransposed(step), {}, {}};
  const int64_t matrix = problem.depth * problem.columns;
  for (int64_t i = 0; i < BatchCount(right); ++i) problem.matrices.push_back(i * matrix);
  if (BatchCount(right) == 1) {
    problem.rows = ElementCount(left) / problem.depth;
    problem.batches = {{0, 0, 0}};
    return problem;
  }
  if (left.size() < 2) return Fail("libxsmm: matrices are wanted");
  problem.rows = result[result.size() - 2];
  const Shape batches(result.begin(), result.end() - 2);
  const std::vector<int64_t> rows = BatchOffsets(left, batches);
  const std::vector<int64_t> panels = BatchOffsets(right, batches);
  for (size_t i = 0; i < rows.size(); ++i)
    problem.batches.push_back({rows[i], panels[i], static_cast<int64_t>(i) * problem.rows * problem.columns});
  return problem;
}

Tiling Tile(const Problem& problem, size_t left, size_t right, bool is_constant, const InstructionSet& instructions, int64_t tile_rows) {
  Tiling tiling;
  tiling.batches = problem.batches;
  tiling.depth = problem.depth;
  tiling.kinds = {{problem.depth, problem.depth, problem.columns}};
  tiling.panel_stride = problem.transposed ? problem.depth : problem.columns;
  tiling.row_value = left;
  tiling.panel_value = right;
  tiling.rows = CutRows(problem.rows, tile_rows, problem.depth, problem.columns);
  if (is_constant) {
    tiling.packing = Packing{problem.transposed ? 1 : problem.columns, problem.transposed ? problem.depth : 1, problem.matrices};
  } else {
    tiling.transposes_panels = problem.transposed;
  }
  // Of a matrix that lies as it is, a panel begins at a column; of one that is packed or transposed, at a whole vector over the depth.
  const int64_t step = is_constant || problem.transposed ? problem.depth : 1;
  for (const auto& [first, count] : CutEvenly(problem.columns, instructions.panel_columns, instructions.lanes))
    tiling.panels.push_back({first * step, first, count, first});
  // Each time it comes to a panel anew a thread would transpose it again.
  tiling.order = tiling.transposes_panels ? Tiling::Order::kPanels : BetterOrder(tiling);
  return tiling;
}

StrassenProblem ForStrassen(const Problem& problem) {
  return {problem.rows, problem.depth, problem.columns, problem.transposed ? 1 : problem.columns, problem.transposed ? problem.depth : 1};
}

Form PanelForm(std::string name, Widening widening, int64_t lanes, std::function<Result<PanelWeights>(const Chain&)> weights) {
  const auto make = [widening, lanes, weights = std::move(weights)](const Chain& chain, const Form&, int64_t tile_rows,
                                                                    int threads) -> Result<std::shared_ptr<const Program>> {
    return PanelProgram::Make(chain, COLLAGE_TRY(weights(chain)), widening, tile_rows, lanes, threads);
  };
  return {std::move(name), {}, {}, {"tile_rows", {kTileRows}}, make};
}

std::vector<Form> FormsOfFewBits(const std::string& name, const Chain& chain, int64_t lanes,
                                 const std::function<Result<PanelWeights>(const Chain&)>& weights) {
  std::vector<Form> forms = {PanelForm(name, Widening::kInRegisters, lanes, weights)};
  const int64_t rows = ElementCount(chain.ResultShape()) / chain.ResultShape().back();
  if (rows > kPanelRows) forms.push_back(PanelForm(name + "-widened", Widening::kInScratch, lanes, weights));
  return forms;
}

}  // namespace

Result<std::vector<Form>> ProductForms(const Chain& chain, const InstructionSet& instructions) {
  if (chain.base->op->name == "nn.matmul_nbits") {
    COLLAGE_TRY_STATUS(CheckNBitsWeights(chain));
    return FormsOfFewBits("nbits", chain, instructions.lanes, NBitsWeights);
  }
  const Problem problem = COLLAGE_TRY(ProblemOf(chain));
  const size_t left = chain.base->inputs[0];
  const size_t right = chain.base->inputs[1];
  const bool is_constant = chain.IsConstant(right);
  std::vector<Form> forms;
  if (!chain.weights) {
    const auto tile = [=](int64_t tile_rows) { return Tile(problem, left, right, is_constant, instructions, tile_rows); };
    forms.push_back(ProductForm("product", {}, {}, kTileRows, tile));
    if (std::optional<Form> fetched = FetchedForm("fetched", {}, {}, tile)) forms.push_back(std::move(*fetched));
    if (is_constant && problem.batches.size() == 1 && problem.rows <= kPanelRows) {
      const auto weights = [is_transposed = problem.transposed](const Chain& of) { return FloatWeights(of, is_transposed); };
      forms.push_back(PanelForm("streamed", Widening::kInRegisters, instructions.lanes, weights));
    }
    if (is_constant && problem.batches.size() == 1 && IsStrassenWorthwhile(ForStrassen(problem), instructions))
      forms.push_back(StrassenForm("strassen", {}, {}, ForStrassen(problem), instructions));
  }
  // Batches of matrices are no weights.
  const bool may_round = chain.may_round_weights && is_constant && chain.ShapeOf(right).size() == 2;
  if (chain.weights || may_round) {
    for (Form& form : FormsOfFewBits("int8-weights", chain, instructions.lanes, EightBitWeights)) {
      form.rounds_weights = true;
      forms.push_back(std::move(form));
    }
  }
  return forms;
}

}  // namespace collage::xsmm
