#include "collage/backend/native/panel_recipe.h"

#include <algorithm>
#include <functional>
#include <span>

#include "collage/backend/native/library_kernels.h"
#include "collage/backend/native/native_kernel.h"

namespace collage::native {
namespace {

tl::unexpected<Error> Mismatch() { return Fail("native: the parts of a kernel that calls a library do not fit each other"); }

size_t BytesOf(const Port& port) { return PhysicalByteCount(port.type, port.layout); }

// Numbers come from files: a product of them might be one by overflow only.
bool IsOfRows(size_t bytes, size_t bytes_of_row, int64_t rows) {
  return bytes % static_cast<size_t>(rows) == 0 && bytes / static_cast<size_t>(rows) == bytes_of_row;
}

// Whether a part for some of the rows reads of the whole kernel's inputs what they have.
bool Fits(const PanelParts& parts, int64_t rows, const std::vector<PanelArgument>& arguments, std::span<const Port> ports) {
  if (arguments.size() != ports.size()) return false;
  for (size_t i = 0; i < ports.size(); ++i) {
    const auto& [port, bytes_of_row] = arguments[i];
    if (port >= parts.inputs.size()) return false;
    const size_t whole = BytesOf(parts.inputs[port]);
    if (bytes_of_row == 0 ? BytesOf(ports[i]) != whole
                          : !IsOfRows(whole, bytes_of_row, parts.rows) || !IsOfRows(BytesOf(ports[i]), bytes_of_row, rows)) {
      return false;
    }
  }
  return true;
}

bool Fits(const PanelParts& parts, int64_t rows, const PanelCode& code) {
  const std::vector<Port>& outputs = code.rest->outputs();
  if (code.rest->inputs().empty() || outputs.size() != parts.outputs.size() || code.library->outputs().size() != 1) return false;
  if (BytesOf(code.rest->inputs()[0]) != BytesOf(code.library->outputs()[0])) return false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!IsOfRows(BytesOf(outputs[i]), parts.bytes_of_output_row[i], rows)) return false;
  }
  return Fits(parts, rows, parts.library_arguments, code.library->inputs()) &&
         Fits(parts, rows, parts.rest_arguments, std::span(code.rest->inputs()).subspan(1));
}

using MakeCode = std::function<Result<PanelCode>()>;

Status AddWorkers(int64_t count, const MakeCode& make, PanelParts& parts) {
  parts.workers.push_back(COLLAGE_TRY(make()));
  while (std::ssize(parts.workers) < count) {
    PanelCode twin{parts.workers[0].library->Twin(), parts.workers[0].rest->Twin()};
    if (!twin.library || !twin.rest) twin = COLLAGE_TRY(make());
    parts.workers.push_back(std::move(twin));
  }
  return {};
}

Result<PanelParts> Unfilled(const PanelRecipe& recipe, int64_t rows) {
  constexpr int64_t kMostRows = int64_t{1} << 31;
  if (rows < 1 || recipe.rows_of_panel < 1 || recipe.rows_of_panel > kMostRows) return Mismatch();
  PanelParts parts{
      recipe.inputs, recipe.outputs, rows, recipe.rows_of_panel, recipe.library_arguments, recipe.rest_arguments, {}, {}, {}, {}};
  for (const Port& port : parts.outputs) {
    if (BytesOf(port) % static_cast<size_t>(rows) != 0) return Mismatch();
    parts.bytes_of_output_row.push_back(BytesOf(port) / static_cast<size_t>(rows));
  }
  return parts;
}

}  // namespace

Result<std::unique_ptr<Kernel>> MakeKernel(std::shared_ptr<const PanelRecipe> recipe, const Device& device) {
  const OpSequence sequence = COLLAGE_TRY(ToOpSequence(*recipe->library_function->As<Function>()));
  const RowSplit split = COLLAGE_TRY(SplitAroundProduct(sequence));
  const LibraryKernels library = COLLAGE_TRY(LibraryKernels::Open(recipe->library, sequence, split, device));
  Device one_thread = device;
  one_thread.threads = 1;
  PanelParts parts = COLLAGE_TRY(Unfilled(*recipe, split.rows));
  const auto code_for = [&](int64_t rows, const std::string& rest, bool may_differ) -> Result<PanelCode> {
    PanelCode code{COLLAGE_TRY(library.Compile(rows, recipe->library_variant, may_differ)), COLLAGE_TRY(LoadKernel(rest, one_thread))};
    if (!Fits(parts, rows, code)) return Mismatch();
    return code;
  };
  const bool has_whole = parts.rows >= parts.rows_of_panel;
  if (has_whole) {
    const MakeCode make = [&] { return code_for(parts.rows_of_panel, recipe->rest, false); };
    COLLAGE_TRY_STATUS(AddWorkers(std::min<int64_t>(device.threads, PanelCount(parts)), make, parts));
  }
  if (const int64_t left = parts.rows % parts.rows_of_panel; left > 0)
    parts.last = COLLAGE_TRY(code_for(left, recipe->last_rest, has_whole));
  parts.serialize = [recipe] { return WriteArtifact(*recipe); };
  return MakePanelKernel(std::move(parts));
}

}  // namespace collage::native
