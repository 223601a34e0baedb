#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collage/ir/model_metadata.h"
#include "collage/ir/module.h"
#include "collage/onnx/remainder.h"
#include "collage/support/result.h"

namespace collage {

struct OriginalModel;
namespace onnx_io {
struct OnnxGraph;
}  // namespace onnx_io

struct ReadOptions {
  /// Extents of inputs by name, for inputs whose shape the model leaves symbolic (`--shape name=1x3x224x224`). Of a sequence the name
  /// itself has its length (`--shape name=2`), and "name[0]", "name[1]" have the extents of its tensors. Symbols that they give extents
  /// have these in all inputs. An initializer that is listed as an input is one where it is given a shape.
  std::map<std::string, Shape> input_shapes;
  /// Values of inputs by name. Those that shapes of the model depend on (the shape of a Reshape, the axes of a reduction) become
  /// constants of it and are no inputs any more; the others stay inputs, whatever is given for them.
  std::map<std::string, Tensor> input_values;
  /// Where tensors lie that the model keeps in files of their own: the folder of the model. Empty: such tensors are errors.
  std::filesystem::path external_data_directory;
  /// Optional inputs that have no value.
  std::set<std::string> absent_inputs = {};
  /// A model in which types depend on values that are not known is cut at the first such node (OnnxModel::remainder); else it is an error.
  bool may_cut = false;
  /// Of a model that is cut, parts of the remainder whose rows are independent are found, and read with each of these numbers of rows
  /// (OnnxModel::regions). Empty: none are looked for.
  std::vector<int64_t> row_counts = {};
};

/// A region of rows of a remainder (Remainder::Region) as functions of fixed numbers of rows, whose parameters are the inputs of the
/// region, and whose result is its output or a tuple of them.
struct RegionFunctions {
  double work = 0;  ///< floating point operations for one row
  std::vector<std::pair<int64_t, Expr>> functions;
};

/// A model as a module: the parameters of "main" are the model's inputs in order, under their ONNX names; its result is the
/// output, or a tuple of the outputs in order when there are several. A sequence is as many inputs or outputs as it has tensors,
/// "name[0]", "name[1]" and so on; an optional is its value, or nothing. Of a model that is cut the module is the head: its outputs are
/// what the remainder takes, and those of the model are the remainder's.
struct OnnxModel {
  IRModule module;
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  std::vector<std::string> fixed_inputs;  ///< inputs that have become constants, see ReadOptions::input_values
  int64_t opset = 0;                      ///< version of the default operator set that the model was written for
  ModelMetadata metadata = {};            ///< what it says of itself
  /// For graph compilers (original.h). Null where they cannot be given it: of bytes, and with fixed inputs.
  std::shared_ptr<const OriginalModel> original = {};
  std::shared_ptr<const Remainder> remainder = {};  ///< null where the module is the whole model
  std::vector<RegionFunctions> regions = {};        ///< of the remainder, one for each of its regions
};

/// Reads the bytes of an ONNX model (https://onnx.ai/onnx/repo-docs/IR.html), opset 6 to 28. Initializers are constants, also
/// where they are listed as inputs and no shape is given for them; whatever depends on constants and static shapes only is computed here,
/// so shape arithmetic vanishes. Errors name node, operator, opset and attribute.
Result<OnnxModel> ReadOnnx(std::string_view bytes, const ReadOptions& options = {});

/// A model file, parsed once. It may be read for several shapes of its inputs; all that is read shares the model's own tensors.
class OnnxFile {
 public:
  /// External data is looked up in that folder; where that is empty, beside the file.
  static Result<OnnxFile> Open(const std::filesystem::path& path, std::filesystem::path external_data_directory = {});
  /// As ReadOnnx. Errors name the file.
  [[nodiscard]] Result<OnnxModel> Read(const ReadOptions& options) const;
  /// The model as it is written; inputs that are initializers are among its inputs.
  [[nodiscard]] const onnx_io::OnnxGraph& graph() const { return *graph_; }

 private:
  OnnxFile(std::filesystem::path path, std::shared_ptr<const onnx_io::OnnxGraph> graph, std::shared_ptr<const OriginalModel> original)
      : path_(std::move(path)), graph_(std::move(graph)), original_(std::move(original)) {}

  std::filesystem::path path_;
  std::shared_ptr<const onnx_io::OnnxGraph> graph_;
  std::shared_ptr<const OriginalModel> original_;
};

/// As ReadOnnx, on a file.
Result<OnnxModel> ReadOnnxFile(const std::filesystem::path& path, const ReadOptions& options = {});

}  // namespace collage
