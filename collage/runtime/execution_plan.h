#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "collage/runtime/layout_conversion.h"
#include "collage/runtime/program.h"

namespace collage {

/// A program with its layouts matched: which physical buffers there are, and every step that fills one. Steps are kernels, layout
/// conversions and copies. A tensor is converted once for each layout in which it is wanted, however many want it; views, and
/// layouts that put every element at the same place, share a buffer.
struct ExecutionPlan {
  enum class Storage { kArena, kInput, kOutput, kConstant };
  struct Buffer {
    Storage storage = Storage::kArena;
    /// kArena: which arena slot; kInput, kOutput: which endpoint; kConstant: which of `constants`.
    size_t index = 0;
    size_t bytes = 0;
  };
  /// A constant in the layout in which it is wanted; converted when the plan is made executable.
  struct ConstantUse {
    size_t value;
    Layout layout;
  };
  struct Step {
    enum class Kind { kKernel, kConversion, kCopy };
    Kind kind = Kind::kKernel;
    size_t call = 0;                             ///< kKernel: index into Program::calls
    std::optional<LayoutConversion> conversion;  ///< otherwise
    std::vector<size_t> inputs;                  ///< buffers
    std::vector<size_t> outputs;                 ///< buffers
    TensorType type;                             ///< kConversion: what is converted
    Layout from;
    Layout to;
  };

  std::vector<Buffer> buffers;
  std::vector<ConstantUse> constants;
  std::vector<Step> steps;
  std::vector<size_t> arena_offsets;  ///< one an arena slot
  size_t arena_bytes = 0;
  size_t workspace_bytes = 0;  ///< the largest of any kernel; shared by all
};

/// The layouts in which a program's inputs are given and its outputs are wanted, one an endpoint; row-major where there are none.
struct EndpointLayouts {
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
};

/// `program` must have passed CheckProgram. `threads` is what conversions may use.
ExecutionPlan PlanExecution(const Program& program, int threads, const EndpointLayouts& layouts = {});

}  // namespace collage
