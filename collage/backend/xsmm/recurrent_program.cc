#include "collage/backend/xsmm/recurrent_program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collage/backend/xsmm/program.h"
#include "collage/backend/xsmm/tiling.h"

namespace collage::xsmm {
namespace {

using Kind = RecurrentLayer::Kind;

// As ONNX orders them.
namespace lstm {
enum Gate : int64_t { kInput, kOutput, kForget, kCell };
}
namespace gru {
enum Gate : int64_t { kUpdate, kReset, kHidden };
}

int64_t RoundedUp(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

/// Units of a block, whose gates one call takes: as many vectors as it can.
int64_t UnitsOfBlock(int64_t gates, int64_t lanes) { return kGateVectors / gates * lanes; }

TileView View(const float* data, int64_t row) { return {data, row}; }

}  // namespace

Result<std::shared_ptr<const RecurrentProgram>> RecurrentProgram::Make(const RecurrentLayer& layer, const InstructionSet& instructions,
                                                                       int threads) {
  std::shared_ptr<RecurrentProgram> program(new RecurrentProgram);
  const Recurrence& shape = layer.shape;
  program->kind_ = layer.kind;
  program->gates_ = layer.gates;
  program->shape_ = shape;
  program->couples_forget_ = layer.couples_forget;
  program->resets_after_product_ = layer.resets_after_product;
  program->activations_ = layer.activations;
  program->lanes_ = instructions.lanes;
  program->state_row_ = static_cast<int64_t>(WholeLines(shape.hidden));
  program->product_ = GateProductLoopFor(instructions.lanes);
  program->add_ = FindTileLoop("add", 2);
  program->subtract_ = FindTileLoop("subtract", 2);
  program->multiply_ = FindTileLoop("multiply", 2);
  const std::vector<size_t>& results = layer.sequence->results;
  for (size_t i = 0; i < layer.step->outputs.size(); ++i) {
    const auto found = std::find(results.begin(), results.end(), layer.step->outputs[i]);
    if (found != results.end()) program->outputs_[i] = static_cast<size_t>(found - results.begin());
  }
  program->data_ = program->SourceOf(layer, RecurrentLayer::kData);
  program->initial_state_ = program->SourceOf(layer, RecurrentLayer::kInitialState);
  if (layer.kind == Kind::kLstm) program->initial_cell_ = program->SourceOf(layer, RecurrentLayer::kInitialCell);
  if (const OpSequence::Value& lengths = layer.Value(RecurrentLayer::kLengths); lengths.constant) {
    for (const int32_t length : lengths.constant->Values<int32_t>())
      program->lengths_.push_back(std::clamp<int64_t>(length, 0, shape.steps));
    program->is_even_ = std::all_of(program->lengths_.begin(), program->lengths_.end(), [&](int64_t one) { return one == shape.steps; });
  } else {
    program->lengths_port_ = program->SourceOf(layer, RecurrentLayer::kLengths).port;
  }
  for (int64_t direction = 0; direction < shape.directions; ++direction) {
    const int64_t state = shape.batch * program->state_row_;
    program->states_.push_back({{program->Reserve(state), program->Reserve(state)}, program->HasReset() ? program->Reserve(state) : 0});
  }
  // Threads wait for one another in each step: so what it computes says how many are worth it.
  const double operations = 2.0 * static_cast<double>(layer.gates * shape.batch * shape.hidden) * static_cast<double>(shape.hidden);
  const int64_t vectors = RoundedUp(shape.hidden, instructions.lanes) / instructions.lanes;
  const int of_direction = std::max(threads / static_cast<int>(shape.directions), 1);
  const auto parts = static_cast<int64_t>(PiecesWorth(operations, static_cast<size_t>(vectors), of_direction));
  program->waits_ = parts > 1;
  for (int64_t direction = 0; direction < shape.directions; ++direction) {
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t first = vectors * part / parts * instructions.lanes;
      const int64_t end = std::min(vectors * (part + 1) / parts * instructions.lanes, shape.hidden);
      COLLAGE_TRY_STATUS(program->AddPiece(layer, instructions, direction, first, end - first));
    }
  }
  return std::shared_ptr<const RecurrentProgram>(std::move(program));
}

Source RecurrentProgram::SourceOf(const RecurrentLayer& layer, RecurrentLayer::Argument argument) {
  const OpSequence::Value& value = layer.Value(argument);
  if (value.constant) {
    float* copy = operands_.Allocate(ElementCount(value.type.shape));
    std::memcpy(copy, value.constant->Bytes(), value.constant->ByteCount());
    return {copy};
  }
  const std::vector<size_t>& parameters = layer.sequence->parameters;
  return {nullptr, static_cast<size_t>(std::find(parameters.begin(), parameters.end(), layer.step->inputs[argument]) - parameters.begin())};
}

size_t RecurrentProgram::Reserve(int64_t elements) {
  return std::exchange(workspace_elements_, workspace_elements_ + WholeLines(elements));
}

Status RecurrentProgram::AddPiece(const RecurrentLayer& layer, const InstructionSet& instructions, int64_t direction, int64_t first,
                                  int64_t count) {
  Piece piece;
  piece.direction = direction;
  piece.first = first;
  piece.count = count;
  piece.width = RoundedUp(count, lanes_);
  ColumnPointers columns;
  for (int64_t gate = 0; gate < gates_; ++gate) {
    const float* rows = layer.Constant(RecurrentLayer::kWeight) + ((direction * gates_ + gate) * shape_.hidden + first) * shape_.inputs;
    for (int64_t unit = 0; unit < piece.width; ++unit) columns.push_back(unit < count ? rows + unit * shape_.inputs : nullptr);
  }
  piece.data = COLLAGE_TRY(PanelProduct::Make(shape_.steps * shape_.batch, shape_.inputs, columns, instructions, operands_));
  PackBiases(layer, piece);
  if (kind_ == Kind::kLstm) PackPeephole(layer, piece);
  if (kind_ == Kind::kGru) {
    PackStage(layer, piece, gru::kUpdate, 2);
    PackStage(layer, piece, gru::kHidden, 1);
  } else {
    PackStage(layer, piece, 0, gates_);
  }
  piece.gates = Reserve(shape_.steps * shape_.batch * gates_ * piece.width);
  piece.cell = Reserve(shape_.batch * piece.width);
  piece.tile = Reserve(shape_.batch * piece.width);
  pieces_.push_back(std::move(piece));
  return {};
}

// The biases of both products are one, but for one that the reset gate multiplies.
void RecurrentProgram::PackBiases(const RecurrentLayer& layer, Piece& piece) {
  const float* of_data = layer.Constant(RecurrentLayer::kBias) + piece.direction * 2 * gates_ * shape_.hidden + piece.first;
  const float* of_state = of_data + gates_ * shape_.hidden;
  float* bias = operands_.Allocate(gates_ * piece.width);
  float* hidden_bias = resets_after_product_ && kind_ == Kind::kGru ? operands_.Allocate(piece.width) : nullptr;
  for (int64_t gate = 0; gate < gates_; ++gate) {
    for (int64_t unit = 0; unit < piece.count; ++unit) {
      const float one = of_state[gate * shape_.hidden + unit];
      const bool is_apart = hidden_bias != nullptr && gate == gru::kHidden;
      if (is_apart) hidden_bias[unit] = one;
      bias[gate * piece.width + unit] = of_data[gate * shape_.hidden + unit] + (is_apart ? 0 : one);
    }
  }
  piece.bias = bias;
  piece.hidden_bias = hidden_bias;
}

void RecurrentProgram::PackPeephole(const RecurrentLayer& layer, Piece& piece) {
  const float* peephole = layer.Constant(RecurrentLayer::kPeephole) + piece.direction * 3 * shape_.hidden;
  if (std::all_of(peephole, peephole + 3 * shape_.hidden, [](float one) { return one == 0; })) return;
  float* packed = operands_.Allocate(3 * piece.width);
  for (int64_t gate = 0; gate < 3; ++gate)
    std::copy_n(peephole + gate * shape_.hidden + piece.first, piece.count, packed + gate * piece.width);
  piece.peephole = packed;
}

void RecurrentProgram::PackStage(const RecurrentLayer& layer, Piece& piece, int64_t first_gate, int64_t gates) {
  const float* weights = layer.Constant(RecurrentLayer::kRecurrentWeight) + piece.direction * gates_ * shape_.hidden * shape_.hidden;
  float* packed = operands_.Allocate(shape_.hidden * gates * piece.width);
  piece.stages.push_back({first_gate, gates, packed});
  const int64_t units_of_block = UnitsOfBlock(gates, lanes_);
  for (int64_t begin = 0; begin < piece.width; begin += units_of_block) {
    ColumnPointers columns;
    const int64_t end = std::min(begin + units_of_block, piece.width);
    for (int64_t gate = first_gate; gate < first_gate + gates; ++gate) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const bool is_there = unit < piece.count;
        columns.push_back(is_there ? weights + (gate * shape_.hidden + piece.first + unit) * shape_.hidden : nullptr);
      }
    }
    const auto count = static_cast<int64_t>(columns.size());
    PackColumns(columns.data(), count, shape_.hidden, packed);
    packed += count * shape_.hidden;
  }
}

int64_t RecurrentProgram::Length(const Buffers& buffers, int64_t row) const {
  if (!lengths_port_) return lengths_[static_cast<size_t>(row)];
  return std::clamp<int64_t>(static_cast<const int32_t*>(buffers.inputs[*lengths_port_])[row], 0, shape_.steps);
}

RecurrentProgram::Tile RecurrentProgram::Gates(const Buffers& buffers, const Piece& piece, const Rows& rows) const {
  const int64_t row = gates_ * piece.width;
  return {buffers.workspace + piece.gates + (rows.time * shape_.batch + rows.first) * row, row};
}

RecurrentProgram::Tile RecurrentProgram::State(const Buffers& buffers, const Piece& piece, size_t memory, const Rows& rows) const {
  return {buffers.workspace + memory + rows.first * state_row_ + piece.first, state_row_};
}

const ActivationLoops& RecurrentProgram::Activation(const Piece& piece, size_t place) const {
  return activations_[static_cast<size_t>(piece.direction) * activations_.size() / static_cast<size_t>(shape_.directions) + place];
}

void RecurrentProgram::Pairwise(TileLoop loop, const Piece& piece, const Rows& rows, TileView first, TileView second, Tile result) const {
  loop({rows.count, piece.width, first, second, {}, result.data, result.row});
}

void RecurrentProgram::Run(const Buffers& buffers, const TeamMember& member) const {
  const auto own = [&](const auto& visit) {
    for (size_t i = static_cast<size_t>(member.index); i < pieces_.size(); i += static_cast<size_t>(member.size)) visit(pieces_[i]);
  };
  const auto wait = [&] {
    if (waits_) member.wait();
  };
  own([&](const Piece& piece) { Begin(buffers, piece); });
  wait();
  for (int64_t turn = 0; turn < shape_.steps; ++turn) {
    own([&](const Piece& piece) { BeginStep(buffers, piece, turn); });
    if (HasReset()) wait();
    own([&](const Piece& piece) { EndStep(buffers, piece, turn); });
    wait();
  }
  own([&](const Piece& piece) { End(buffers, piece); });
}

void RecurrentProgram::Begin(const Buffers& buffers, const Piece& piece) const {
  const int64_t rows = shape_.steps * shape_.batch;
  float* gates = buffers.workspace + piece.gates;
  const int64_t gate_row = gates_ * piece.width;
  piece.data.Run(data_.In(buffers.inputs), gates);
  add_({rows, gate_row, View(gates, gate_row), View(piece.bias, 0), {}, gates, gate_row});
  for (int64_t row = 0; row < shape_.batch; ++row) {
    const int64_t from = (piece.direction * shape_.batch + row) * shape_.hidden + piece.first;
    // What is behind the last unit is computed with it and read by nobody; it has to be a number that is quick to compute with.
    const auto copy = [&](const Source& source, float* target) {
      std::fill_n(std::copy_n(source.In(buffers.inputs) + from, piece.count, target), piece.width - piece.count, 0.0F);
    };
    copy(initial_state_, State(buffers, piece, states_[static_cast<size_t>(piece.direction)].turns[0], {row, 1, 0}).data);
    if (kind_ == Kind::kLstm) copy(initial_cell_, buffers.workspace + piece.cell + row * piece.width);
  }
}

/// Of rows that are through, the state stays and the result is zero.
template <class Visit>
void RecurrentProgram::VisitRows(const Buffers& buffers, const Piece& piece, int64_t turn, const Visit& visit) const {
  const bool is_backwards = shape_.reverse_first || piece.direction == 1;
  if (is_even_) {
    visit(Rows{0, shape_.batch, is_backwards ? shape_.steps - 1 - turn : turn});
    return;
  }
  for (int64_t row = 0; row < shape_.batch; ++row) {
    const int64_t length = Length(buffers, row);
    if (turn < length) visit(Rows{row, 1, is_backwards ? length - 1 - turn : turn});
  }
}

void RecurrentProgram::AddProduct(const Piece& piece, size_t stage, int64_t turn, const Rows& rows, const float* state, Tile sums) const {
  const Stage& of = piece.stages[stage];
  const int64_t units_of_block = UnitsOfBlock(of.gates, lanes_);
  const int64_t blocks = (piece.width + units_of_block - 1) / units_of_block;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t begin = (turn % 2 == 0 ? i : blocks - 1 - i) * units_of_block;
    const int64_t vectors = std::min(units_of_block, piece.width - begin) / lanes_;
    GateProduct product{state,     state_row_, rows.count, shape_.hidden, of.weights + begin * of.gates * shape_.hidden, vectors * of.gates,
                        sums.data, sums.row,   {}};
    for (int64_t v = 0; v < product.vectors; ++v) product.places[v] = v / vectors * piece.width + begin + v % vectors * lanes_;
    product_(product);
  }
}

void RecurrentProgram::BeginStep(const Buffers& buffers, const Piece& piece, int64_t turn) const {
  const States& states = states_[static_cast<size_t>(piece.direction)];
  const size_t before = states.turns[static_cast<size_t>(turn % 2)];
  VisitRows(buffers, piece, turn, [&](const Rows& rows) {
    const Tile gates = Gates(buffers, piece, rows);
    AddProduct(piece, 0, turn, rows, buffers.workspace + before + rows.first * state_row_, gates);
    if (kind_ != Kind::kGru) return;
    Activation(piece, 0).Run(gates.data, gates.row, rows.count, 2 * piece.width, gates.data, gates.row);
    if (!HasReset()) return;
    const Tile own = State(buffers, piece, before, rows);
    const float* reset = gates.data + gru::kReset * piece.width;
    Pairwise(multiply_, piece, rows, View(reset, gates.row), View(own.data, own.row), State(buffers, piece, states.reset, rows));
  });
}

void RecurrentProgram::EndStep(const Buffers& buffers, const Piece& piece, int64_t turn) const {
  const States& states = states_[static_cast<size_t>(piece.direction)];
  const size_t before = states.turns[static_cast<size_t>(turn % 2)];
  const size_t after = states.turns[static_cast<size_t>((turn + 1) % 2)];
  float* sequence = outputs_[0] ? static_cast<float*>(buffers.outputs[*outputs_[0]]) : nullptr;
  const auto result = [&](int64_t time, int64_t row) {
    return sequence + ((time * shape_.directions + piece.direction) * shape_.batch + row) * shape_.hidden + piece.first;
  };
  VisitRows(buffers, piece, turn, [&](const Rows& rows) {
    const Tile gates = Gates(buffers, piece, rows);
    const Tile next = State(buffers, piece, after, rows);
    if (kind_ == Kind::kLstm) {
      Lstm(buffers, piece, rows, next);
    } else if (kind_ == Kind::kRnn) {
      Activation(piece, 0).Run(gates.data, gates.row, rows.count, piece.width, next.data, next.row);
    } else {
      const size_t read = HasReset() ? states.reset : before;
      Tile hidden{gates.data + gru::kHidden * piece.width, gates.row};
      if (!HasReset()) {
        hidden = {buffers.workspace + piece.tile, piece.width};
        for (int64_t row = 0; row < rows.count; ++row) std::copy_n(piece.hidden_bias, piece.width, hidden.data + row * hidden.row);
      }
      AddProduct(piece, 1, turn, rows, buffers.workspace + read + rows.first * state_row_, hidden);
      Gru(buffers, piece, rows, State(buffers, piece, before, rows), next);
    }
    for (int64_t row = 0; sequence != nullptr && row < rows.count; ++row)
      std::copy_n(next.data + row * next.row, piece.count, result(rows.time, rows.first + row));
  });
  for (int64_t row = 0; !is_even_ && row < shape_.batch; ++row) {
    if (turn < Length(buffers, row)) continue;
    std::copy_n(State(buffers, piece, before, {row, 1, 0}).data, piece.count, State(buffers, piece, after, {row, 1, 0}).data);
    if (sequence != nullptr) std::fill_n(result(turn, row), piece.count, 0.0F);
  }
}

void RecurrentProgram::Lstm(const Buffers& buffers, const Piece& piece, const Rows& rows, Tile next) const {
  const Tile gates = Gates(buffers, piece, rows);
  const Tile cell{buffers.workspace + piece.cell + rows.first * piece.width, piece.width};
  const Tile tile{buffers.workspace + piece.tile, piece.width};
  const auto gate = [&](int64_t number) { return Tile{gates.data + number * piece.width, gates.row}; };
  const auto view = [](Tile of) { return View(of.data, of.row); };
  const auto activate = [&](size_t place, Tile of, Tile result) {
    Activation(piece, place).Run(of.data, of.row, rows.count, piece.width, result.data, result.row);
  };
  const auto look_through = [&](int64_t number) {
    if (!piece.peephole) return;
    Pairwise(multiply_, piece, rows, view(cell), View(piece.peephole + number * piece.width, 0), tile);
    Pairwise(add_, piece, rows, view(gate(number)), view(tile), gate(number));
  };
  look_through(lstm::kInput);
  activate(0, gate(lstm::kInput), gate(lstm::kInput));
  if (couples_forget_) {
    static constexpr float kOne = 1;
    Pairwise(subtract_, piece, rows, {&kOne, 0, true}, view(gate(lstm::kInput)), gate(lstm::kForget));
  } else {
    look_through(lstm::kForget);
    activate(0, gate(lstm::kForget), gate(lstm::kForget));
  }
  activate(1, gate(lstm::kCell), gate(lstm::kCell));
  Pairwise(multiply_, piece, rows, view(gate(lstm::kInput)), view(gate(lstm::kCell)), gate(lstm::kCell));
  Pairwise(multiply_, piece, rows, view(gate(lstm::kForget)), view(cell), cell);
  Pairwise(add_, piece, rows, view(cell), view(gate(lstm::kCell)), cell);
  look_through(lstm::kOutput);
  activate(0, gate(lstm::kOutput), gate(lstm::kOutput));
  activate(2, cell, tile);
  Pairwise(multiply_, piece, rows, view(gate(lstm::kOutput)), view(tile), next);
}

// (1 - update) hidden + update before = hidden + update (before - hidden)
void RecurrentProgram::Gru(const Buffers& buffers, const Piece& piece, const Rows& rows, Tile before, Tile next) const {
  const Tile gates = Gates(buffers, piece, rows);
  const TileView update = View(gates.data + gru::kUpdate * piece.width, gates.row);
  const TileView reset = View(gates.data + gru::kReset * piece.width, gates.row);
  const Tile hidden{gates.data + gru::kHidden * piece.width, gates.row};
  if (resets_after_product_) {
    const Tile tile{buffers.workspace + piece.tile, piece.width};
    Pairwise(multiply_, piece, rows, View(tile.data, tile.row), reset, tile);
    Pairwise(add_, piece, rows, View(hidden.data, hidden.row), View(tile.data, tile.row), hidden);
  }
  Activation(piece, 1).Run(hidden.data, hidden.row, rows.count, piece.width, hidden.data, hidden.row);
  Pairwise(subtract_, piece, rows, View(before.data, before.row), View(hidden.data, hidden.row), next);
  Pairwise(multiply_, piece, rows, View(next.data, next.row), update, next);
  Pairwise(add_, piece, rows, View(next.data, next.row), View(hidden.data, hidden.row), next);
}

void RecurrentProgram::End(const Buffers& buffers, const Piece& piece) const {
  const size_t last = states_[static_cast<size_t>(piece.direction)].turns[static_cast<size_t>(shape_.steps % 2)];
  for (int64_t row = 0; row < shape_.batch; ++row) {
    const int64_t to = (piece.direction * shape_.batch + row) * shape_.hidden + piece.first;
    if (outputs_[1])
      std::copy_n(State(buffers, piece, last, {row, 1, 0}).data, piece.count, static_cast<float*>(buffers.outputs[*outputs_[1]]) + to);
    if (outputs_[2]) {
      const float* cell = buffers.workspace + piece.cell + row * piece.width;
      std::copy_n(cell, piece.count, static_cast<float*>(buffers.outputs[*outputs_[2]]) + to);
    }
  }
}

}  // namespace collage::xsmm
