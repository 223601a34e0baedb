#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collage/backend/xsmm/gate_loops.h"
#include "collage/backend/xsmm/operands.h"
#include "collage/backend/xsmm/panel_product.h"
#include "collage/backend/xsmm/recurrent_layer.h"
#include "collage/runtime/parallel.h"

namespace collage::xsmm {

/// A recurrent layer as one parallel region over all steps. A piece is some hidden units of one direction with all of their gates: their
/// weights, which one thread alone reads, and their state, which the others need for the products of the next step only. So threads wait
/// for one another once a step, and not at all where a direction is one piece.
///
/// The products of the data with the weights are taken for all steps at once. What a piece reads in a step may be more than its cache
/// holds; so every other step goes through its weights from the end, and finds there what the step before has read last.
class RecurrentProgram {
 public:
  /// What a run is given.
  struct Buffers {
    std::span<const void* const> inputs;
    std::span<void* const> outputs;
    float* workspace;
  };

  /// Packs the weights. Errors where libxsmm declines.
  static Result<std::shared_ptr<const RecurrentProgram>> Make(const RecurrentLayer& layer, const InstructionSet& instructions, int threads);

  [[nodiscard]] int threads() const { return static_cast<int>(pieces_.size()); }
  [[nodiscard]] size_t workspace_bytes() const { return workspace_elements_ * sizeof(float); }

  /// All that one member of the team does.
  void Run(const Buffers& buffers, const TeamMember& member) const;

 private:
  /// Gates whose products with a state are taken together, units in blocks.
  struct Stage {
    int64_t first_gate = 0, gates = 0;
    const float* weights = nullptr;  // block after block: [hidden][gates][units of the block]
  };
  /// A row of its gates is gate after gate, each of `width` units: whole vectors.
  struct Piece {
    int64_t direction = 0;
    int64_t first = 0, count = 0, width = 0;  // units
    PanelProduct data = {};                   // with the weights of the data
    const float* bias = nullptr;              // [gates][width]
    const float* hidden_bias = nullptr;       // [width], where the reset gate multiplies it; else null
    const float* peephole = nullptr;          // [input, output, forget][width], null where it is zero
    std::vector<Stage> stages = {};
    // Where in the workspace, in elements:
    size_t gates = 0;  // [steps][batch][gates][width]
    size_t cell = 0;   // [batch][width]
    size_t tile = 0;   // the same
  };
  /// Of one direction, where in the workspace: [batch][state_row] each.
  struct States {
    std::array<size_t, 2> turns;  // before and after a step, in turn
    size_t reset;                 // the state times the reset gate
  };
  /// Rows of the batch that are at the same time.
  struct Rows {
    int64_t first, count, time;
  };
  struct Tile {
    float* data;
    int64_t row;  // from row to row
  };

  RecurrentProgram() = default;

  Source SourceOf(const RecurrentLayer& layer, RecurrentLayer::Argument argument);
  Status AddPiece(const RecurrentLayer& layer, const InstructionSet& instructions, int64_t direction, int64_t first, int64_t count);
  void PackBiases(const RecurrentLayer& layer, Piece& piece);
  void PackPeephole(const RecurrentLayer& layer, Piece& piece);
  void PackStage(const RecurrentLayer& layer, Piece& piece, int64_t first_gate, int64_t gates);
  size_t Reserve(int64_t elements);

  [[nodiscard]] int64_t Length(const Buffers& buffers, int64_t row) const;
  [[nodiscard]] bool HasReset() const { return kind_ == RecurrentLayer::Kind::kGru && !resets_after_product_; }
  [[nodiscard]] Tile Gates(const Buffers& buffers, const Piece& piece, const Rows& rows) const;
  [[nodiscard]] Tile State(const Buffers& buffers, const Piece& piece, size_t memory, const Rows& rows) const;
  [[nodiscard]] const ActivationLoops& Activation(const Piece& piece, size_t place) const;

  void Begin(const Buffers& buffers, const Piece& piece) const;
  /// A step as far as it needs no other piece's part of it, then the rest.
  void BeginStep(const Buffers& buffers, const Piece& piece, int64_t turn) const;
  void EndStep(const Buffers& buffers, const Piece& piece, int64_t turn) const;
  void End(const Buffers& buffers, const Piece& piece) const;

  template <class Visit>
  void VisitRows(const Buffers& buffers, const Piece& piece, int64_t turn, const Visit& visit) const;
  void AddProduct(const Piece& piece, size_t stage, int64_t turn, const Rows& rows, const float* state, Tile sums) const;
  void Lstm(const Buffers& buffers, const Piece& piece, const Rows& rows, Tile next) const;
  void Gru(const Buffers& buffers, const Piece& piece, const Rows& rows, Tile before, Tile next) const;
  void Pairwise(TileLoop loop, const Piece& piece, const Rows& rows, TileView first, TileView second, Tile result) const;

  RecurrentLayer::Kind kind_ = RecurrentLayer::Kind::kRnn;
  int64_t gates_ = 1;
  Recurrence shape_{};
  bool couples_forget_ = false;
  bool resets_after_product_ = false;
  std::vector<ActivationLoops> activations_;
  std::array<std::optional<size_t>, 3> outputs_;  // where the sequence, the last state and the last cell go
  Operands operands_;
  Source data_, initial_state_, initial_cell_;
  std::optional<size_t> lengths_port_;  // lengths that only a run tells
  std::vector<int64_t> lengths_;        // else of each row
  bool is_even_ = false;                // all rows have all steps
  std::vector<Piece> pieces_;
  std::vector<States> states_;
  bool waits_ = false;  // some direction has several pieces
  int64_t lanes_ = 0;
  int64_t state_row_ = 0;
  size_t workspace_elements_ = 0;
  GateProductLoop product_ = nullptr;
  TileLoop add_ = nullptr, subtract_ = nullptr, multiply_ = nullptr;
};

}  // namespace collage::xsmm
