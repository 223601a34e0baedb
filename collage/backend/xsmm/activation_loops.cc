#include "collage/backend/xsmm/activation_loops.h"

#include <cmath>

namespace collage::xsmm {

Result<ActivationLoops> ActivationLoops::Make(const ActivationChoice& choice, double clip) {
  ActivationLoops loops;
  const auto function = [&](const char* op, double alpha = 0, double beta = 0) {
    loops.steps_.push_back({FindTileLoop(op, 1), static_cast<float>(alpha), static_cast<float>(beta), 0, false});
  };
  const auto with = [&](const char* op, double operand) {
    loops.steps_.push_back({FindTileLoop(op, 2), 0, 0, static_cast<float>(operand), true});
  };
  if (std::isfinite(clip)) function("clip", -clip, clip);
  if (choice.name == "sigmoid" || choice.name == "tanh") {
    function(choice.name.c_str());
  } else if (choice.name == "relu") {
    function("nn.relu");
  } else if (choice.name == "leakyrelu") {
    function("nn.leaky_relu", choice.alpha);
  } else if (choice.name == "affine") {
    with("multiply", choice.alpha);
    with("add", choice.beta);
  } else if (choice.name == "hardsigmoid") {
    with("multiply", choice.alpha);
    with("add", choice.beta);
    function("clip", 0, 1);
  } else if (choice.name == "scaledtanh") {
    with("multiply", choice.beta);
    function("tanh");
    with("multiply", choice.alpha);
  } else {
    return Fail("libxsmm: no loop computes the activation '" + choice.name + "'");
  }
  return loops;
}

void ActivationLoops::Run(const float* tile, int64_t tile_row, int64_t rows, int64_t columns, float* result, int64_t result_row) const {
  TileView from{tile, tile_row};
  for (const Step& step : steps_) {
    const TileView operand = step.has_operand ? TileView{&step.operand, 0, true} : TileView{};
    step.loop({rows, columns, from, operand, {}, result, result_row, step.alpha, step.beta});
    from = {result, result_row};
  }
}

}  // namespace collage::xsmm
