#include "collage/lower/row_blocks.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "collage/support/memory.h"

namespace collage {
namespace {

/// The type with another leading extent.
TensorType WithRows(TensorType type, int64_t rows) {
  type.shape[0] = rows;
  return type;
}

/// The number of rows that the inputs have; nothing where some have others, or another type than the program takes.
std::optional<int64_t> RowsOf(const Remainder::Region& region, const Executable& program, int64_t program_rows,
                              std::span<const Tensor> inputs) {
  std::optional<int64_t> rows;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& found = inputs[i].type();
    const TensorType& taken = program.inputs()[i].type;
    if (!region.has_rows[i]) {
      if (!(found == taken)) return std::nullopt;
      continue;
    }
    const bool leads = !found.shape.empty() && !taken.shape.empty() && taken.shape[0] == program_rows;
    if (!leads || !(WithRows(taken, found.shape[0]) == found) || rows.value_or(found.shape[0]) != found.shape[0]) return std::nullopt;
    rows = found.shape[0];
  }
  return rows;
}

/// One program over a number of blocks. What it needs beside inputs and outputs is made once.
class BlockRunner {
 public:
  BlockRunner(Executable& executable, const Remainder::Region& region, const Remainder::RowProgram& program, std::span<const Tensor> inputs,
              std::vector<Tensor>& outputs, int64_t all)
      : executable_(executable), region_(region), program_(program), inputs_(inputs), outputs_(outputs), all_(all) {
    const Executable& block = executable.blocks()[program.block];
    for (const NamedType& input : block.inputs()) input_types_.push_back(input.type);
    for (const NamedType& output : block.outputs()) output_types_.push_back(output.type);
    filled_.resize(input_types_.size());
    staged_.resize(output_types_.size());
  }

  Status Run(int64_t first) {
    const int64_t rows = std::min(program_.rows, all_ - first);
    std::vector<Tensor> from;
    std::vector<Tensor> to;
    for (size_t i = 0; i < inputs_.size(); ++i) from.push_back(region_.has_rows[i] ? Input(i, first, rows) : inputs_[i]);
    for (size_t i = 0; i < outputs_.size(); ++i) to.push_back(Output(i, first, rows));
    COLLAGE_TRY_STATUS(executable_.RunBlock(program_.block, from, to));
    for (size_t i = 0; i < outputs_.size(); ++i) {
      std::byte* into = At(outputs_[i], first);
      if (to[i].Bytes() != into) std::memcpy(into, to[i].Bytes(), BytesOfRow(outputs_[i]) * static_cast<size_t>(rows));
    }
    return {};
  }

 private:
  static size_t BytesOfRow(const Tensor& tensor) { return tensor.ByteCount() / static_cast<size_t>(tensor.shape()[0]); }
  static std::byte* At(const Tensor& tensor, int64_t row) {
    return const_cast<std::byte*>(tensor.Bytes()) + BytesOfRow(tensor) * static_cast<size_t>(row);
  }

  /// Where the rows lie, or a copy with the last one repeated.
  Tensor Input(size_t i, int64_t first, int64_t rows) {
    if (rows == program_.rows) return Tensor::Borrowed(input_types_[i], At(inputs_[i], first));
    if (!filled_[i].Defined()) filled_[i] = Tensor(input_types_[i]);
    const size_t bytes = BytesOfRow(inputs_[i]);
    std::byte* into = filled_[i].MutableBytes();
    for (int64_t row = 0; row < program_.rows; ++row)
      std::memcpy(into + bytes * static_cast<size_t>(row), At(inputs_[i], first + std::min(row, rows - 1)), bytes);
    return filled_[i];
  }

  Tensor Output(size_t i, int64_t first, int64_t rows) {
    std::byte* into = At(outputs_[i], first);
    if (rows == program_.rows && IsAligned(into)) return Tensor::Borrowed(output_types_[i], into);
    if (!staged_[i].Defined()) staged_[i] = Tensor(output_types_[i]);
    return staged_[i];
  }

  Executable& executable_;
  const Remainder::Region& region_;
  const Remainder::RowProgram& program_;
  std::span<const Tensor> inputs_;
  std::vector<Tensor>& outputs_;
  int64_t all_;
  std::vector<TensorType> input_types_;
  std::vector<TensorType> output_types_;
  std::vector<Tensor> filled_;
  std::vector<Tensor> staged_;
};

/// What a file says of a program must hold for its block.
Status CheckPrograms(const Executable& executable, const Remainder::Region& region) {
  for (const Remainder::RowProgram& program : region.programs) {
    if (program.block >= executable.blocks().size() || program.rows < 1) return Fail("a program of rows is not there");
    const Executable& block = executable.blocks()[program.block];
    const bool has_rows = std::all_of(block.outputs().begin(), block.outputs().end(), [&](const NamedType& output) {
      return !output.type.shape.empty() && output.type.shape[0] == program.rows;
    });
    if (!has_rows || block.inputs().size() != region.inputs.size() || block.outputs().size() != region.outputs.size())
      return Fail("a program of " + std::to_string(program.rows) + " rows does not fit the nodes that it is for");
  }
  return {};
}

}  // namespace

std::vector<int64_t> RunsOf(const std::vector<Remainder::RowProgram>& programs, int64_t rows) {
  // With as many runs of the first as are full, or one more, or none, and the others for what is left.
  std::vector<int64_t> best(programs.size(), 0);
  double least = std::numeric_limits<double>::infinity();
  const auto ceiling = [](int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); };
  const auto fill = [&](auto&& self, std::vector<int64_t>& runs, size_t program, int64_t left, double seconds) -> void {
    if (left <= 0 || program == programs.size()) {
      if (left <= 0 && seconds < least) {
        least = seconds;
        best = runs;
      }
      return;
    }
    const int64_t full = left / programs[program].rows;
    std::vector<int64_t> counts{ceiling(left, programs[program].rows)};
    if (program + 1 < programs.size()) counts = {full, full + 1, 0};
    for (const int64_t count : counts) {
      runs[program] = count;
      self(self, runs, program + 1, left - count * programs[program].rows,
           seconds + static_cast<double>(count) * programs[program].microseconds);
      runs[program] = 0;
    }
  };
  std::vector<int64_t> runs(programs.size(), 0);
  fill(fill, runs, 0, rows, 0);
  return best;
}

Result<std::optional<std::vector<Tensor>>> RunRows(Executable& executable, const Remainder::Region& region,
                                                   std::span<const Tensor> inputs) {
  COLLAGE_TRY_STATUS(CheckPrograms(executable, region));
  std::optional<int64_t> rows;
  for (const Remainder::RowProgram& program : region.programs) {
    rows = RowsOf(region, executable.blocks()[program.block], program.rows, inputs);
    if (!rows) return std::nullopt;
  }
  if (!rows) return std::nullopt;
  std::vector<Tensor> outputs;
  for (const NamedType& output : executable.blocks()[region.programs[0].block].outputs())
    outputs.emplace_back(WithRows(output.type, *rows));
  const std::vector<int64_t> runs = RunsOf(region.programs, *rows);
  int64_t first = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    BlockRunner runner(executable, region, region.programs[i], inputs, outputs, *rows);
    for (int64_t run = 0; run < runs[i] && first < *rows; ++run, first += region.programs[i].rows) COLLAGE_TRY_STATUS(runner.Run(first));
  }
  return outputs;
}

}  // namespace collage
