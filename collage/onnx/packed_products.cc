#include "collage/onnx/packed_products.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "collage/onnx/data_type.h"
#include "collage/onnx/graph_reader.h"
#include "collage/onnx/shape.h"
#include "collage/op/nbits_product.h"
#include "collage/support/name_supply.h"
#include "collage/tensor/narrow.h"

namespace collage::onnx_io {
namespace {

/// (integer - zero point) * scale, element by element; blocks along one dimension share a scale and a zero point.
struct BlockedTensor {
  Tensor integers;
  Tensor scales;
  std::optional<Tensor> zeros;
  size_t axis = 0;
  int64_t block = 0;
  bool is_transposed = false;  ///< what it stands for is a matrix, and the transpose of this

  [[nodiscard]] size_t rank() const { return integers.shape().size(); }
};

bool IsPackable(DType dtype) {
  return dtype == DType::kInt2 || dtype == DType::kUInt2 || dtype == DType::kInt4 || dtype == DType::kUInt4 || dtype == DType::kInt8 ||
         dtype == DType::kUInt8;
}

bool IsSigned(DType dtype) { return LimitsOfInteger(dtype).low < 0; }

/// Absent where it is of another type.
template <class T>
std::optional<T> AttributeOf(const OnnxNode& node, const std::string& name, T fallback) {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end()) return fallback;
  const T* value = std::get_if<T>(&found->second);
  return value == nullptr ? std::nullopt : std::optional<T>(*value);
}

/// Calls put(element, row, place) for all elements of a matrix whose rows are taken along dimension `last`: in an order in which neither
/// reading in the order of elements nor writing in that of rows leaves a line of the cache before it is used up.
template <class Put>
void VisitInOrder(const Shape& shape, size_t last, const Put& put) {
  constexpr int64_t kTogether = 64;  // bytes of such a line
  const int64_t rows = shape[0];
  const int64_t columns = shape[1];
  for (int64_t first = 0; first < columns; first += kTogether) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = first; column < std::min(first + kTogether, columns); ++column) {
        const int64_t from = row * columns + column;
        last == 1 ? put(from, row, column) : put(from, column, row);
      }
    }
  }
}

/// A matrix of integers as unsigned ones of as many bits, in rows of `row_bytes` along dimension `last`. Signed ones have the middle added.
Tensor Packed(const Tensor& integers, size_t last, int64_t row_bytes) {
  const auto bits = static_cast<int64_t>(BitWidth(integers.dtype()));
  const unsigned mask = (1U << bits) - 1;
  const unsigned middle = IsSigned(integers.dtype()) ? 1U << (bits - 1) : 0;
  Tensor packed(TensorType{{integers.shape()[1 - last], row_bytes}, DType::kUInt8});
  auto* to = packed.MutableData<uint8_t>();
  const std::byte* from = integers.Bytes();
  VisitInOrder(integers.shape(), last, [&](int64_t element, int64_t row, int64_t at) {
    const unsigned number = (std::to_integer<unsigned>(from[element]) & mask) ^ middle;
    to[row * row_bytes + at * bits / 8] |= static_cast<uint8_t>(number << (at * bits % 8));
  });
  return packed;
}

/// A matrix of float32 with its rows taken along dimension `last`.
Tensor Turned(const Tensor& matrix, size_t last) {
  const int64_t width = matrix.shape()[last];
  Tensor result(TensorType{{matrix.shape()[1 - last], width}, DType::kFloat32});
  auto* to = result.MutableData<float>();
  const auto* from = matrix.Data<float>();
  VisitInOrder(matrix.shape(), last, [&](int64_t element, int64_t row, int64_t at) { to[row * width + at] = from[element]; });
  return result;
}

class ProductPacker {
 public:
  explicit ProductPacker(OnnxGraph graph) : graph_(std::move(graph)) {
    for (const auto& [name, tensor] : graph_.initializers) DefineConstant(name, tensor);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const OnnxNode& node = graph_.nodes[i];
      for (const std::string& name : node.outputs) producers_.emplace(name, i);
      for (const std::string& name : NamesRead(node)) names_.Reserve(name);
      for (const std::string& name : node.outputs) names_.Reserve(name);
      const auto value = node.attributes.find("value");
      if (!IsOf(node, "Constant") || value == node.attributes.end() || node.outputs.size() != 1) continue;
      if (const Tensor* tensor = std::get_if<Tensor>(&value->second)) DefineConstant(node.outputs[0], *tensor);
    }
    for (const OnnxInput& input : graph_.inputs) names_.Reserve(input.name);
  }

  OnnxGraph Run() {
    for (OnnxNode& node : graph_.nodes) Pack(node);
    if (!replaced_.empty()) RemoveUnread();
    return std::move(graph_);
  }

 private:
  /// The initializers that stand for a matrix.
  struct PackedWeights {
    std::vector<std::string> names;  ///< weights, scales, zero points
    NBitsProduct product;
  };

  static bool IsOf(const OnnxNode& node, const char* op_type) { return node.domain.empty() && node.op_type == op_type; }

  static bool IsDequantize(const OnnxNode& node) { return IsOf(node, "DequantizeLinear"); }

  static bool MayMove(const OnnxNode& node) {
    return IsOf(node, "Identity") || IsOf(node, "Cast") || IsOf(node, "Reshape") || IsOf(node, "Transpose");
  }

  void DefineConstant(const std::string& name, const Tensor& tensor) {
    constants_.emplace(name, tensor);
    names_.Reserve(name);
  }

  [[nodiscard]] std::optional<Tensor> ConstantOf(const OnnxNode& node, size_t input) const {
    const auto found = input < node.inputs.size() ? constants_.find(node.inputs[input]) : constants_.end();
    return found == constants_.end() ? std::nullopt : std::optional<Tensor>(found->second);
  }

  /// Makes a product one by packed weights, where it can be.
  void Pack(OnnxNode& node) {
    const bool is_dense = IsOf(node, "Gemm");
    if ((!is_dense && !IsOf(node, "MatMul")) || node.inputs.size() < 2) return;
    const bool is_scaled = AttributeOf(node, "alpha", 1.0F) != 1.0F || AttributeOf(node, "beta", 1.0F) != 1.0F;
    if (is_scaled || AttributeOf(node, "transA", int64_t{0}) != 0) return;
    const size_t depth_axis = is_dense && AttributeOf(node, "transB", int64_t{0}) != 0 ? 1 : 0;
    const std::optional<PackedWeights> weights = WeightsOf(node.inputs[1], depth_axis);
    if (!weights) return;
    std::vector<std::string> inputs{node.inputs[0]};
    inputs.insert(inputs.end(), weights->names.begin(), weights->names.end());
    if (node.inputs.size() > 2) inputs.insert(inputs.end(), {"", node.inputs[2]});
    node.op_type = "MatMulNBits";
    node.domain = "com.microsoft";
    node.inputs = std::move(inputs);
    const NBitsProduct& product = weights->product;
    node.attributes = {{"K", product.depth}, {"N", product.columns}, {"bits", product.bits}, {"block_size", product.block}};
  }

  /// Of the matrix of that name. Several products may read it.
  std::optional<PackedWeights> WeightsOf(const std::string& name, size_t depth_axis) {
    const auto [found, is_new] = weights_.try_emplace({name, depth_axis});
    if (!is_new) return found->second;
    std::vector<size_t> path;
    const std::optional<BlockedTensor> matrix = MatrixOf(name, path);
    if (!matrix || matrix->axis != (matrix->is_transposed ? 1 - depth_axis : depth_axis)) return std::nullopt;
    replaced_.insert(path.begin(), path.end());
    const size_t axis = matrix->axis;
    PackedWeights weights;
    NBitsProduct& product = weights.product;
    product.depth = matrix->integers.shape()[axis];
    product.columns = matrix->integers.shape()[1 - axis];
    product.bits = static_cast<int64_t>(BitWidth(matrix->integers.dtype()));
    product.block = matrix->block;
    product.blocks = matrix->scales.shape()[axis];
    const int64_t block_bytes = product.block * product.bits / 8;
    const auto add = [&](const char* what, Tensor tensor) {
      weights.names.push_back(names_.Fresh(name + what));
      graph_.initializers.emplace_back(weights.names.back(), std::move(tensor));
    };
    const Tensor rows = Packed(matrix->integers, axis, product.blocks * block_bytes);
    add(".weights", rows.Reshaped({product.columns, product.blocks, block_bytes}));
    add(".scales", Turned(matrix->scales, axis));
    // Without any they are 0; MatMulNBits would take the middle.
    const Tensor zeros = matrix->zeros.value_or(Tensor(TensorType{matrix->scales.shape(), matrix->integers.dtype()}));
    add(".zero_points", Packed(zeros, axis, product.ZeroBytes()));
    return found->second = std::move(weights);
  }

  /// What a name stands for, where that is a matrix of constant integers in blocks; `path` are the nodes that make it, the last one first.
  std::optional<BlockedTensor> MatrixOf(const std::string& name, std::vector<size_t>& path) const {
    const std::string* at = &name;
    do {
      const auto producer = producers_.find(*at);
      if (producer == producers_.end()) return std::nullopt;
      const OnnxNode& node = graph_.nodes[producer->second];
      const bool is_on_the_way = IsDequantize(node) || MayMove(node);
      if (!is_on_the_way || node.inputs.empty() || path.size() == graph_.nodes.size()) return std::nullopt;  // or nodes form a circle
      path.push_back(producer->second);
      at = node.inputs.data();
    } while (!IsDequantize(graph_.nodes[path.back()]));
    std::optional<BlockedTensor> tensor = Dequantized(graph_.nodes[path.back()]);
    for (size_t i = path.size() - 1; tensor && i-- > 0;) tensor = Moved(*std::move(tensor), graph_.nodes[path[i]]);
    return tensor && tensor->rank() == 2 ? tensor : std::nullopt;
  }

  [[nodiscard]] std::optional<BlockedTensor> Dequantized(const OnnxNode& node) const {
    const std::optional<Tensor> integers = ConstantOf(node, 0);
    const std::optional<Tensor> scales = ConstantOf(node, 1);
    const std::optional<Tensor> zeros = ConstantOf(node, 2);
    const bool has_zeros = node.inputs.size() > 2 && !node.inputs[2].empty();
    const std::optional<int64_t> block = AttributeOf(node, "block_size", int64_t{0});
    const std::optional<int64_t> axis = AttributeOf(node, "axis", int64_t{1});
    if (!integers || !scales || has_zeros != zeros.has_value() || !axis || node.attributes.contains("output_dtype")) return std::nullopt;
    const auto rank = static_cast<int64_t>(integers->shape().size());
    if (*axis < -rank || *axis >= rank || !IsPackable(integers->dtype()) || scales->dtype() != DType::kFloat32) return std::nullopt;
    BlockedTensor tensor{*integers, *scales, zeros, static_cast<size_t>(*axis < 0 ? *axis + rank : *axis), block.value_or(0)};
    const int64_t extent = integers->shape()[tensor.axis];
    // MatMulNBits has blocks of two elements at least. What fills up the last one must be less than what is there.
    if (tensor.block < 2 || tensor.block > extent || tensor.block * static_cast<int64_t>(BitWidth(integers->dtype())) % 8 != 0)
      return std::nullopt;
    Shape expected = integers->shape();
    expected[tensor.axis] = (extent + tensor.block - 1) / tensor.block;
    if (ElementCount(expected) == 0 || scales->shape() != expected) return std::nullopt;
    if (zeros && zeros->type() != TensorType{expected, integers->dtype()}) return std::nullopt;
    return tensor;
  }

  /// What a node makes of such a tensor, where that is one.
  [[nodiscard]] std::optional<BlockedTensor> Moved(BlockedTensor tensor, const OnnxNode& node) const {
    if (IsOf(node, "Identity")) return tensor;
    if (IsOf(node, "Cast") && AttributeOf(node, "to", int64_t{0}) == OnnxDataType(DType::kFloat32)) return tensor;
    if (IsOf(node, "Reshape")) return Reshaped(std::move(tensor), node);
    const std::vector<int64_t> swapped{1, 0};
    if (!IsOf(node, "Transpose") || tensor.rank() != 2 || AttributeOf(node, "perm", swapped) != swapped) return std::nullopt;
    tensor.is_transposed = !tensor.is_transposed;
    return tensor;
  }

  /// Whole blocks of neighbours stay such.
  [[nodiscard]] std::optional<BlockedTensor> Reshaped(BlockedTensor tensor, const OnnxNode& node) const {
    const std::optional<Tensor> wanted = ConstantOf(node, 1);
    if (!wanted || wanted->dtype() != DType::kInt64 || tensor.is_transposed || tensor.axis + 1 != tensor.rank()) return std::nullopt;
    const Result<Shape> shape = ResolveShape(tensor.integers.shape(), wanted->ToInt64(), AttributeOf(node, "allowzero", int64_t{0}) != 0);
    if (!shape || shape->empty() || ElementCount(*shape) != tensor.integers.ElementCount()) return std::nullopt;
    if (tensor.integers.shape().back() % tensor.block != 0 || shape->back() % tensor.block != 0) return std::nullopt;
    Shape of_blocks = *shape;
    of_blocks.back() /= tensor.block;
    tensor.axis = shape->size() - 1;
    tensor.integers = tensor.integers.Reshaped(*shape);
    tensor.scales = tensor.scales.Reshaped(of_blocks);
    if (tensor.zeros) tensor.zeros = tensor.zeros->Reshaped(of_blocks);
    return tensor;
  }

  /// Removes what made the matrices, where nothing else reads it.
  void RemoveUnread() {
    std::unordered_map<std::string, size_t> reads;
    for (const OnnxNode& node : graph_.nodes) {
      for (const std::string& name : NamesRead(node)) ++reads[name];
    }
    for (const std::string& name : graph_.outputs) ++reads[name];
    for (const OnnxInput& input : graph_.inputs) ++reads[input.name];  // an initializer may be listed there
    std::unordered_set<std::string> unread;
    std::vector<bool> is_removed(graph_.nodes.size(), false);
    for (auto index = replaced_.rbegin(); index != replaced_.rend(); ++index) {
      const OnnxNode& node = graph_.nodes[*index];
      if (std::any_of(node.outputs.begin(), node.outputs.end(), [&](const std::string& name) { return reads[name] > 0; })) continue;
      is_removed[*index] = true;
      for (const std::string& name : node.inputs) {
        if (--reads[name] == 0) unread.insert(name);
      }
    }
    size_t index = 0;
    std::erase_if(graph_.nodes, [&](const OnnxNode&) { return is_removed[index++]; });
    std::erase_if(graph_.initializers, [&](const auto& initializer) { return unread.contains(initializer.first); });
  }

  OnnxGraph graph_;
  std::unordered_map<std::string, Tensor> constants_;
  std::unordered_map<std::string, size_t> producers_;
  NameSupply names_;
  std::map<std::pair<std::string, size_t>, std::optional<PackedWeights>> weights_;  // by matrix and the dimension of the depth
  std::set<size_t> replaced_;                                                       // nodes that make such matrices, which are in order
};

}  // namespace

OnnxGraph WithPackedProducts(OnnxGraph graph) { return ProductPacker(std::move(graph)).Run(); }

}  // namespace collage::onnx_io
