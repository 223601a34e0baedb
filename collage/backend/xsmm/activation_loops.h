#pragma once

#include <cstdint>
#include <vector>

#include "collage/backend/xsmm/tile_loops.h"
#include "collage/op/recurrent.h"

namespace collage::xsmm {

/// An activation of a recurrent layer as loops over tiles.
class ActivationLoops {
 public:
  /// What is given is held between -clip and clip first, where that is finite. Errors on functions that no loop does.
  static Result<ActivationLoops> Make(const ActivationChoice& choice, double clip);

  /// result = f(tile) for each row; the result may be the tile.
  void Run(const float* tile, int64_t tile_row, int64_t rows, int64_t columns, float* result, int64_t result_row) const;

 private:
  struct Step {
    TileLoop loop;
    float alpha, beta;  ///< of a loop of one argument
    float operand;      ///< the other one of a loop of two
    bool has_operand;
  };
  std::vector<Step> steps_;
};

}  // namespace collage::xsmm
