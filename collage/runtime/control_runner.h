#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "collage/runtime/control_program.h"

namespace collage {

/// Runs a control program: decides on the host, passes tensors between blocks by reference, and keeps a stack of its own, so that neither
/// iterations nor recursion use that of C++. A call whose results are its caller's results takes the caller's place, so a loop runs in
/// constant memory. Tensors are taken from those of earlier steps where nobody holds them any more: after warming up nothing is allocated.
class ControlRunner {
 public:
  using RunBlock = std::function<Status(size_t block, std::span<const Tensor> inputs, std::span<Tensor> outputs)>;

  /// For each output of a block the input in whose memory it may be computed, if any.
  using Updates = std::vector<std::optional<size_t>>;

  /// `program` must have passed CheckControlProgram with `blocks`. What a block only updates is given to it as input and output at once
  /// where nobody else holds it, so that a loop does not copy what it fills; `updates` has one entry a block.
  ControlRunner(ControlProgram program, std::vector<Signature> blocks, std::vector<Updates> updates);
  ControlRunner(const ControlRunner&) = delete;
  ControlRunner& operator=(const ControlRunner&) = delete;
  ~ControlRunner() = default;

  [[nodiscard]] const ControlProgram& program() const { return program_; }

  [[nodiscard]] const std::vector<Signature>& signatures() const { return signatures_; }
  [[nodiscard]] const std::vector<Updates>& updates() const { return updates_; }

  /// Of all tensors that blocks have been given to write, bytes.
  [[nodiscard]] size_t held_bytes() const { return bytes_; }

  /// Enters one of the program's entries. Errors are those of blocks, and recursion that is too deep or needs more memory than there is.
  Status Run(size_t entry, std::span<const Tensor> inputs, std::span<Tensor> outputs, const RunBlock& run_block);

 private:
  /// A tensor and how many frames hold it.
  struct Buffer {
    Tensor tensor;
    size_t uses = 0;
    std::vector<Buffer*>* home = nullptr;  ///< where it waits while nobody does; null: it is not ours
  };
  struct Frame {
    size_t function = 0;
    size_t step = 0;
    std::vector<Buffer*> tensors;  ///< null where not there yet, or needed no more
  };
  struct Block {
    std::vector<std::vector<Buffer*>> idle;  ///< one an output
    std::vector<Tensor> inputs;
    std::vector<Tensor> outputs;
  };

  Status Advance(const RunBlock& run_block);
  Status RunOneBlock(const ControlProgram::Step& step, const RunBlock& run_block);
  Status Call(const ControlProgram::Step& step);
  Status Enter(size_t function);
  void Leave();
  void FinishStep();
  void DropUnneeded(Frame& frame) const;
  void Pass(const Frame& frame, const std::vector<size_t>& tensors);
  void Release(Frame& frame);
  void ReleaseAll();
  /// What takes over as a step's output where that only updates it; null where somebody else holds it, or it is not ours.
  [[nodiscard]] Buffer* Updated(const Frame& frame, size_t output) const;
  Result<Buffer*> Take(Block& block, size_t output, const TensorType& type);
  static void Hold(Buffer* buffer);
  /// Forgets it, and hands it back where nobody else holds it.
  static void Drop(Buffer*& buffer);
  std::vector<Buffer*> EmptyTensors(size_t function);

  ControlProgram program_;
  std::vector<Signature> signatures_;
  std::vector<Updates> updates_;
  std::vector<std::vector<std::vector<size_t>>> last_uses_;  ///< of a function's step: tensors that nothing needs behind it
  std::vector<std::vector<bool>> is_tail_;                   ///< of a function's step
  std::vector<std::vector<Updates>> updated_;                ///< of a function's step: for each output the tensor that it may take over
  std::deque<Buffer> buffers_;                               ///< of blocks' outputs and constants
  std::vector<std::vector<Buffer*>> constants_;              ///< one for each of a function's constants
  std::vector<Buffer> input_buffers_;
  std::vector<Block> blocks_;
  std::vector<Frame> frames_;
  std::vector<std::vector<std::vector<Buffer*>>> idle_frames_;  ///< by function
  std::vector<Buffer*> passed_;                                 ///< arguments or results on their way
  size_t bytes_ = 0;
};

}  // namespace collage
