#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "collage/runtime/layout_conversion.h"
#include "collage/runtime/program.h"
#include "collage/runtime/transposition.h"

namespace collage {

/// A program with its layouts and devices matched: which physical buffers there are, and every step that fills one. Steps are kernels,
/// layout conversions and copies. A tensor is brought once into each layout and onto each device in which it is wanted, however many want
/// it; views, and layouts that put every element at the same place, share a buffer.
///
/// Slices lie in the memory of what they are cut from, and what is joined is computed into the memory of the join. A part is copied into it
/// where it has a place elsewhere already: an input of the program, or what lies at another place of another join.
///
/// Devices are numbered, the host being number 0. What is given to another device's stream runs there in order; the host goes on, and waits
/// where it needs what is made there, where it writes to what is read there, and at the end. Layouts are converted by the device that wants
/// them or by the one that has them, where that can, else by the host.
///
/// The memory of a CPU beside the host is the host's, so nothing is copied: its kernels read and write where the host does, and what they
/// alone use lies in an arena of their own. Where there is such a CPU, calls are given as early as what they read allows, and what makes
/// the host wait comes as late as can be.
struct ExecutionPlan {
  enum class Storage { kArena, kInput, kOutput, kConstant };
  struct Buffer {
    Storage storage = Storage::kArena;
    /// kArena: which slot of the device's arena; kInput, kOutput: which endpoint; kConstant: which of `constants`.
    size_t index = 0;
    size_t bytes = 0;
    size_t device = 0;
    size_t offset = 0;  ///< from the begin of that
  };
  /// A constant in the layout and on the device in which it is wanted; brought there when the plan is made executable.
  struct ConstantUse {
    size_t value;
    Layout layout;
    size_t device = 0;
  };
  struct Step {
    enum class Kind {
      kKernel,
      kConversion,  ///< by the host, or in the stream of a device that can
      kCopy,        ///< within one device
      kTransfer,    ///< between the host and another device
      kWait         ///< for a place in a stream, and so for all before it; the inputs are host buffers then free to be used
    };
    Kind kind = Kind::kKernel;
    size_t device = 0;                           ///< whose stream it is; of a transfer, that which is not the host
    size_t place = kNoPlace;                     ///< the number of its place in that stream; kWait: of that which it waits for
    size_t call = 0;                             ///< kKernel: index into Program::calls
    std::optional<LayoutConversion> conversion;  ///< of the host's, otherwise
    std::optional<Transposition> transposition;  ///< what a conversion on another device is
    std::vector<size_t> inputs;                  ///< buffers
    std::vector<size_t> outputs;                 ///< buffers
    TensorType type;                             ///< kConversion, kTransfer: what is brought elsewhere
    Layout from;
    Layout to;
  };

  std::vector<Buffer> buffers;
  std::vector<ConstantUse> constants;
  std::vector<Step> steps;
  /// A device's memory for what lives during a run only.
  struct Arena {
    std::shared_ptr<DeviceContext> context = {};  ///< null: the host
    std::vector<size_t> offsets = {};             ///< one a slot
    size_t bytes = 0;
    size_t workspace_bytes = 0;  ///< the largest of any kernel; shared by all
  };
  std::vector<Arena> arenas;  ///< one a device, the host first
  /// Of steps that somebody may wait for.
  size_t places = 0;
  static constexpr size_t kNoPlace = static_cast<size_t>(-1);
};

/// The layouts in which a program's inputs are given and its outputs are wanted, one an endpoint; row-major where there are none.
struct EndpointLayouts {
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
};

/// For each output the input of its type in whose memory it may be computed, if any: it begins as a copy of that, which nothing reads any
/// more. Where it is, the copy is none.
std::vector<std::optional<size_t>> UpdatedInputs(const ExecutionPlan& plan, const std::vector<TensorType>& inputs,
                                                 const std::vector<TensorType>& outputs);

/// `program` must have passed CheckProgram. `threads` is what conversions may use.
ExecutionPlan PlanExecution(const Program& program, int threads, const EndpointLayouts& layouts = {});

}  // namespace collage
