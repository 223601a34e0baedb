#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "collage/op/axis_view.h"
#include "collage/op/recurrent.h"
#include "collage/op/rules.h"
#include "collage/support/check.h"

namespace collage {

using Inputs = std::span<const Tensor>;
using Outputs = std::span<Tensor>;

namespace {

/// One direction of a layer with everything as doubles, and its state for one element of the batch.
struct Cell {
  int64_t hidden = 0;
  const double* recurrent = nullptr;  ///< [gates * hidden, hidden]
  const double* recurrent_bias = nullptr;
  const double* peephole = nullptr;
  const Activation* activations = nullptr;
  double clip = std::numeric_limits<double>::infinity();
  std::vector<double> from_data;   ///< W x + b for each gate
  std::vector<double> from_state;  ///< R h + b for each gate
  std::vector<double> h;
  std::vector<double> c;

  [[nodiscard]] double Activate(size_t function, double x) const { return activations[function](std::clamp(x, -clip, clip)); }
  [[nodiscard]] double Gate(int64_t gate, int64_t i) const {
    const auto place = static_cast<size_t>(gate * hidden + i);
    return from_data[place] + from_state[place];
  }
};

void AddProduct(const double* matrix, int64_t rows, int64_t columns, const double* vector, double* result) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < columns; ++k) result[row] += matrix[row * columns + k] * vector[k];
  }
}

using Step = void (*)(Cell& cell, const Attributes& attributes);

void RnnStep(Cell& cell, const Attributes&) {
  for (int64_t i = 0; i < cell.hidden; ++i) cell.h[static_cast<size_t>(i)] = cell.Activate(0, cell.Gate(0, i));
}

void GruStep(Cell& cell, const Attributes& attributes) {
  const int64_t n = cell.hidden;
  std::vector<double> reset(static_cast<size_t>(n));
  std::vector<double> hidden(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) reset[static_cast<size_t>(i)] = cell.Activate(0, cell.Gate(1, i));
  if (BoolAttribute(attributes, "linear_before_reset", false)) {
    for (int64_t i = 0; i < n; ++i) {
      hidden[static_cast<size_t>(i)] = reset[static_cast<size_t>(i)] * cell.from_state[static_cast<size_t>(2 * n + i)];
    }
  } else {
    std::vector<double> kept(static_cast<size_t>(n));
    std::transform(reset.begin(), reset.end(), cell.h.begin(), kept.begin(), std::multiplies<>{});
    std::copy_n(cell.recurrent_bias + 2 * n, n, hidden.begin());
    AddProduct(cell.recurrent + 2 * n * n, n, n, kept.data(), hidden.data());
  }
  for (int64_t i = 0; i < n; ++i) {
    const double update = cell.Activate(0, cell.Gate(0, i));
    const double candidate = cell.Activate(1, cell.from_data[static_cast<size_t>(2 * n + i)] + hidden[static_cast<size_t>(i)]);
    double& h = cell.h[static_cast<size_t>(i)];
    h = (1 - update) * candidate + update * h;
  }
}

void LstmStep(Cell& cell, const Attributes& attributes) {
  const int64_t n = cell.hidden;
  const bool coupled = BoolAttribute(attributes, "input_forget", false);
  for (int64_t i = 0; i < n; ++i) {
    double& c = cell.c[static_cast<size_t>(i)];
    const double input = cell.Activate(0, cell.Gate(0, i) + cell.peephole[i] * c);
    const double forget = coupled ? 1 - input : cell.Activate(0, cell.Gate(2, i) + cell.peephole[2 * n + i] * c);
    c = forget * c + input * cell.Activate(1, cell.Gate(3, i));
    const double output = cell.Activate(0, cell.Gate(1, i) + cell.peephole[n + i] * c);
    cell.h[static_cast<size_t>(i)] = output * cell.Activate(2, c);
  }
}

/// All arguments as doubles.
struct Arguments {
  std::vector<std::vector<double>> values;

  explicit Arguments(Inputs inputs) {
    for (const Tensor& input : inputs) values.push_back(input.ToDouble());
  }
  [[nodiscard]] const double* At(size_t argument, int64_t place) const { return values[argument].data() + place; }
};

template <class T>
void Store(const std::vector<double>& values, Tensor& target, int64_t place) {
  std::transform(values.begin(), values.end(), target.MutableData<T>() + place, [](double value) { return static_cast<T>(value); });
}

/// What the product with the recurrent weights reads of the states of a step: a copy of each element's, rounded or not.
using ReadStates = void (*)(const std::vector<Cell*>& cells, std::vector<std::vector<double>>& states);

void ReadAsTheyAre(const std::vector<Cell*>& cells, std::vector<std::vector<double>>& states) {
  for (size_t i = 0; i < cells.size(); ++i) states[i] = cells[i]->h;
}

/// As DynamicQuantizeLinear of ONNX, over all of them.
void ReadQuantised(const std::vector<Cell*>& cells, std::vector<std::vector<double>>& states) {
  constexpr double kSteps = 255;
  double low = 0;
  double high = 0;
  for (const Cell* cell : cells) {
    for (const double h : cell->h) {
      low = std::min(low, h);
      high = std::max(high, h);
    }
  }
  const double scale = high > low ? (high - low) / kSteps : 1;
  const double zero = std::nearbyint(std::clamp(-low / scale, 0.0, kSteps));
  for (size_t i = 0; i < cells.size(); ++i) {
    states[i].clear();
    for (const double h : cells[i]->h) states[i].push_back((std::clamp(std::nearbyint(h / scale) + zero, 0.0, kSteps) - zero) * scale);
  }
}

/// What tells the kinds of layers apart.
struct LayerSteps {
  int64_t gates;
  std::vector<std::string> functions;
  Step step;
  ReadStates read_states;
};

/// One direction of a layer.
class Direction {
 public:
  Direction(const Recurrence& r, int64_t direction, const LayerSteps& layer, const Arguments& arguments, const Attributes& attributes,
            const Activation* activations, bool has_cell)
      : r_(r), direction_(direction), layer_(layer), arguments_(arguments), attributes_(attributes), cells_(static_cast<size_t>(r.batch)) {
    const int64_t rows = Rows();
    for (int64_t n = 0; n < r.batch; ++n) {
      Cell& cell = cells_[static_cast<size_t>(n)];
      cell.hidden = r.hidden;
      cell.recurrent = arguments.At(2, direction * rows * r.hidden);
      cell.recurrent_bias = arguments.At(3, direction * 2 * rows + rows);
      if (has_cell) cell.peephole = arguments.At(7, direction * 3 * r.hidden);
      cell.activations = activations;
      cell.clip = DoubleAttribute(attributes, "clip", std::numeric_limits<double>::infinity());
      cell.h.assign(arguments.At(5, State(n)), arguments.At(5, State(n)) + r.hidden);
      if (has_cell) cell.c.assign(arguments.At(6, State(n)), arguments.At(6, State(n)) + r.hidden);
      lengths_.push_back(std::clamp<int64_t>(static_cast<int64_t>(*arguments.At(4, n)), 0, r.steps));
    }
  }

  template <class T>
  void Run(Outputs outputs) {
    std::vector<std::vector<double>> states(cells_.size());
    std::vector<Cell*> at_work;
    for (int64_t turn = 0; turn < r_.steps; ++turn) {
      at_work.clear();
      for (size_t n = 0; n < cells_.size(); ++n) {
        if (turn < lengths_[n]) at_work.push_back(&cells_[n]);
      }
      layer_.read_states(at_work, states);
      for (size_t i = 0; i < at_work.size(); ++i) Step<T>(*at_work[i], states[i], turn, outputs[0]);
    }
    for (int64_t n = 0; n < r_.batch; ++n) {
      const Cell& cell = cells_[static_cast<size_t>(n)];
      Store<T>(cell.h, outputs[1], State(n));
      if (outputs.size() == 3) Store<T>(cell.c, outputs[2], State(n));
    }
  }

 private:
  [[nodiscard]] int64_t Rows() const { return layer_.gates * r_.hidden; }
  [[nodiscard]] int64_t State(int64_t n) const { return (direction_ * r_.batch + n) * r_.hidden; }

  template <class T>
  void Step(Cell& cell, const std::vector<double>& state, int64_t turn, Tensor& all_states) {
    const int64_t n = &cell - cells_.data();
    const int64_t rows = Rows();
    const bool backwards = r_.reverse_first || direction_ == 1;
    const int64_t t = backwards ? lengths_[static_cast<size_t>(n)] - 1 - turn : turn;
    const double* bias = arguments_.At(3, direction_ * 2 * rows);
    cell.from_data.assign(bias, bias + rows);
    AddProduct(arguments_.At(1, direction_ * rows * r_.inputs), rows, r_.inputs, arguments_.At(0, (t * r_.batch + n) * r_.inputs),
               cell.from_data.data());
    cell.from_state.assign(cell.recurrent_bias, cell.recurrent_bias + rows);
    AddProduct(cell.recurrent, rows, r_.hidden, state.data(), cell.from_state.data());
    layer_.step(cell, attributes_);
    Store<T>(cell.h, all_states, ((t * r_.directions + direction_) * r_.batch + n) * r_.hidden);
  }

  const Recurrence& r_;
  int64_t direction_;
  const LayerSteps& layer_;
  const Arguments& arguments_;
  const Attributes& attributes_;
  std::vector<Cell> cells_;  // of each element of the batch
  std::vector<int64_t> lengths_;
};

void Run(Inputs inputs, const Attributes& attributes, Outputs outputs, const LayerSteps& layer) {
  std::vector<TensorType> types;
  for (const Tensor& input : inputs) types.push_back(input.type());
  const Result<Recurrence> recurrence = ReadRecurrence(types, attributes, layer.gates);
  COLLAGE_CHECK(recurrence.has_value());
  const Result<std::vector<Activation>> activations = ReadActivations(attributes, layer.functions, recurrence->directions);
  COLLAGE_CHECK(activations.has_value());
  const Arguments arguments(inputs);
  std::memset(outputs[0].MutableBytes(), 0, outputs[0].ByteCount());
  VisitFloatType(inputs[0].dtype(), [&](auto element) {
    for (int64_t direction = 0; direction < recurrence->directions; ++direction) {
      const Activation* functions = activations->data() + static_cast<size_t>(direction) * layer.functions.size();
      Direction(*recurrence, direction, layer, arguments, attributes, functions, outputs.size() == 3).Run<decltype(element)>(outputs);
    }
  });
}

}  // namespace

void ReferenceRnn(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  Run(inputs, attributes, outputs, {1, {"tanh"}, RnnStep, ReadAsTheyAre});
}

void ReferenceGru(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  Run(inputs, attributes, outputs, {3, {"sigmoid", "tanh"}, GruStep, ReadAsTheyAre});
}

void ReferenceLstm(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  Run(inputs, attributes, outputs, {4, {"sigmoid", "tanh", "tanh"}, LstmStep, ReadAsTheyAre});
}

void ReferenceQuantisedLstm(Inputs inputs, const Attributes& attributes, Outputs outputs) {
  Run(inputs, attributes, outputs, {4, {"sigmoid", "tanh", "tanh"}, LstmStep, ReadQuantised});
}

}  // namespace collage
