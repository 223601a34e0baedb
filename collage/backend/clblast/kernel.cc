#include "collage/backend/clblast/kernel.h"

#include <clblast.h>

#include <algorithm>
#include <unordered_map>

namespace collage::clblast_layers {
namespace {

using opencl::OpenClContext;

constexpr const char* kGemm = "gemm";
constexpr const char* kGemv = "gemv";
constexpr const char* kBatched = "gemm_batched";
constexpr const char* kIm2col = "im2col";
constexpr const char* kConvgemm = "convgemm";

Status StatusOf(clblast::StatusCode code, const char* routine) {
  if (code == clblast::StatusCode::kSuccess) return {};
  return Fail("clblast: " + std::string(routine) + ": status " + std::to_string(static_cast<int>(code)));
}

/// A tensor in a buffer; elements, as CLBlast counts.
struct Place {
  cl_mem buffer = nullptr;
  size_t offset = 0;
};

Place operator+(const Place& place, int64_t elements) { return {place.buffer, place.offset + static_cast<size_t>(elements)}; }

/// result = factor * a x b + kept * result, of row-major matrices.
struct Gemm {
  clblast::Transpose transpose_a = clblast::Transpose::kNo;
  clblast::Transpose transpose_b = clblast::Transpose::kNo;
  size_t rows, columns, depth;
  float factor = 1;
  float kept = 0;

  [[nodiscard]] size_t StrideA() const { return transpose_a == clblast::Transpose::kYes ? rows : depth; }
  [[nodiscard]] size_t StrideB() const { return transpose_b == clblast::Transpose::kYes ? depth : columns; }

  [[nodiscard]] Status Run(const Place& a, const Place& b, const Place& result, cl_command_queue queue) const {
    return StatusOf(clblast::Gemm(clblast::Layout::kRowMajor, transpose_a, transpose_b, rows, columns, depth, factor, a.buffer, a.offset,
                                  StrideA(), b.buffer, b.offset, StrideB(), kept, result.buffer, result.offset, columns, &queue),
                    "Gemm");
  }

  /// Where the result is one row or one column.
  [[nodiscard]] Status RunOnVector(const Place& a, const Place& b, const Place& result, cl_command_queue queue) const {
    const bool is_row = rows == 1;
    const Place& matrix = is_row ? b : a;
    const Place& vector = is_row ? a : b;
    // Of the matrix as it is stored.
    const bool is_transposed = is_row ? transpose_b == clblast::Transpose::kNo : transpose_a == clblast::Transpose::kYes;
    const size_t results = is_row ? columns : rows;
    // Gemv multiplies what lies there by beta even where that is zero, and it may be no number.
    constexpr float kZero = 0;
    const cl_int filled = kept != 0 ? CL_SUCCESS
                                    : clEnqueueFillBuffer(queue, result.buffer, &kZero, sizeof kZero, result.offset * sizeof kZero,
                                                          results * sizeof kZero, 0, nullptr, nullptr);
    if (filled != CL_SUCCESS) return opencl::FailOf("clEnqueueFillBuffer", filled);
    return StatusOf(
        clblast::Gemv(clblast::Layout::kRowMajor, is_transposed ? clblast::Transpose::kYes : clblast::Transpose::kNo,
                      is_transposed ? depth : results, is_transposed ? results : depth, factor, matrix.buffer, matrix.offset,
                      is_transposed ? results : depth, vector.buffer, vector.offset, 1, kept, result.buffer, result.offset, 1, &queue),
        "Gemv");
  }
};

/// What is common: tensors of a sequence in buffers of a device.
class BufferKernel : public Kernel {
 public:
  BufferKernel(const OpSequence& sequence, std::shared_ptr<OpenClContext> device)
      : device_(device), parameters_(sequence.parameters), result_(sequence.results[0]) {
    context_ = std::move(device);
    for (const size_t value : parameters_) inputs_.push_back({sequence.values[value].type, {}});
    outputs_.push_back({sequence.values[result_].type, {}});
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    for (size_t i = 0; i < inputs.size(); ++i) places_[parameters_[i]] = COLLAGE_TRY(PlaceOf(inputs[i]));
    places_[result_] = COLLAGE_TRY(PlaceOf(outputs[0]));
    return Compute(workspace_bytes_ > 0 ? COLLAGE_TRY(PlaceOf(workspace)) : Place());
  }

  Status Prepare(const OpSequence& sequence) {
    for (size_t value = 0; value < sequence.values.size(); ++value) {
      if (sequence.values[value].constant) COLLAGE_TRY_STATUS(Bring(value, *sequence.values[value].constant));
    }
    COLLAGE_TRY_STATUS(context_->WaitForAll());
    return RunOnce();
  }

 protected:
  virtual Status Compute(const Place& workspace) = 0;
  [[nodiscard]] const Place& At(size_t value) const { return places_.at(value); }
  [[nodiscard]] cl_command_queue Queue() const { return device_->queue(); }

 private:
  [[nodiscard]] Result<Place> PlaceOf(const void* address) const {
    const opencl::BufferPlace place = COLLAGE_TRY(device_->BufferAt(address));
    return Place{place.buffer, place.offset / sizeof(float)};
  }

  Status Bring(size_t value, const Tensor& constant) {
    constants_.push_back(COLLAGE_TRY(DeviceMemory::Allocate(context_, constant.ByteCount())));
    COLLAGE_TRY_STATUS(context_->CopyIn(constants_.back().address(), constant.Bytes(), constant.ByteCount()));
    places_[value] = COLLAGE_TRY(PlaceOf(constants_.back().address()));
    return {};
  }

  Status RunOnce() {
    std::vector<DeviceMemory> memory;
    const auto place = [&](size_t bytes) -> Result<void*> {
      memory.push_back(COLLAGE_TRY(DeviceMemory::Allocate(context_, bytes)));
      return memory.back().address();
    };
    std::vector<const void*> inputs;
    for (const Port& port : inputs_) inputs.push_back(COLLAGE_TRY(place(port.type.ByteCount())));
    void* outputs[] = {COLLAGE_TRY(place(outputs_[0].type.ByteCount()))};
    if (accumulated_input_) inputs[*accumulated_input_] = outputs[0];
    COLLAGE_TRY_STATUS(Run(inputs, outputs, COLLAGE_TRY(place(workspace_bytes_))));
    return context_->WaitForAll();
  }

  std::shared_ptr<OpenClContext> device_;
  std::vector<size_t> parameters_;
  size_t result_;
  std::vector<DeviceMemory> constants_;
  std::unordered_map<size_t, Place> places_;  // by value
};

class ProductKernel final : public BufferKernel {
 public:
  ProductKernel(const OpSequence& sequence, Product product, std::string method, std::shared_ptr<OpenClContext> device)
      : BufferKernel(sequence, std::move(device)), product_(std::move(product)), method_(std::move(method)) {
    const MatrixProduct& p = product_.geometry;
    gemm_ = {p.transpose_a ? clblast::Transpose::kYes : clblast::Transpose::kNo,
             p.transpose_b ? clblast::Transpose::kYes : clblast::Transpose::kNo,
             static_cast<size_t>(p.rows),
             static_cast<size_t>(p.columns),
             static_cast<size_t>(p.depth),
             product_.factor,
             product_.added ? 1.0F : 0.0F};
    const size_t count = product_.offsets_a.size();
    batches_ = {std::vector<float>(count, gemm_.factor), std::vector<float>(count, gemm_.kept), std::vector<size_t>(count),
                std::vector<size_t>(count), std::vector<size_t>(count)};
    if (product_.added) {
      const auto added = std::find(sequence.parameters.begin(), sequence.parameters.end(), *product_.added);
      accumulated_input_ = static_cast<size_t>(added - sequence.parameters.begin());
    }
  }

 protected:
  Status Compute(const Place& /*workspace*/) override {
    const Place& a = At(product_.a);
    const Place& b = At(product_.b);
    const Place& result = At(product_.result);
    if (method_ == kGemv) return gemm_.RunOnVector(a, b, result, Queue());
    if (method_ == kBatched) return RunBatched(a, b, result);
    for (size_t batch = 0; batch < product_.offsets_a.size(); ++batch) {
      COLLAGE_TRY_STATUS(gemm_.Run(a + product_.offsets_a[batch], b + product_.offsets_b[batch],
                                   result + static_cast<int64_t>(batch * gemm_.rows * gemm_.columns), Queue()));
    }
    return {};
  }

 private:
  [[nodiscard]] Status RunBatched(const Place& a, const Place& b, const Place& result) {
    const size_t count = product_.offsets_a.size();
    for (size_t batch = 0; batch < count; ++batch) {
      batches_.a[batch] = (a + product_.offsets_a[batch]).offset;
      batches_.b[batch] = (b + product_.offsets_b[batch]).offset;
      batches_.result[batch] = result.offset + batch * gemm_.rows * gemm_.columns;
    }
    cl_command_queue queue = Queue();
    return StatusOf(
        clblast::GemmBatched(clblast::Layout::kRowMajor, gemm_.transpose_a, gemm_.transpose_b, gemm_.rows, gemm_.columns, gemm_.depth,
                             batches_.factors.data(), a.buffer, batches_.a.data(), gemm_.StrideA(), b.buffer, batches_.b.data(),
                             gemm_.StrideB(), batches_.kept.data(), result.buffer, batches_.result.data(), gemm_.columns, count, &queue),
        "GemmBatched");
  }

  /// What GemmBatched reads of each; kept, so that a run allocates nothing.
  struct Batches {
    std::vector<float> factors, kept;
    std::vector<size_t> a, b, result;
  };

  Product product_;
  std::string method_;
  Gemm gemm_;
  Batches batches_;
};

/// Images as matrices, one after another: the weights of a group times its rows.
class ConvolutionKernel final : public BufferKernel {
 public:
  ConvolutionKernel(const OpSequence& sequence, const ConvolutionLayer& layer, std::string method, std::shared_ptr<OpenClContext> device)
      : BufferKernel(sequence, std::move(device)), layer_(layer), method_(std::move(method)) {
    if (method_ == kIm2col) workspace_bytes_ = static_cast<size_t>(layer.MatrixRows() * layer.MatrixColumns()) * sizeof(float);
    const Convolution& c = layer.geometry;
    gemm_.rows = static_cast<size_t>(c.output_channels / c.groups);
    gemm_.columns = static_cast<size_t>(layer.MatrixColumns());
    gemm_.depth = static_cast<size_t>(layer.MatrixRows() / c.groups);
  }

 protected:
  Status Compute(const Place& workspace) override {
    const Convolution& c = layer_.geometry;
    if (method_ == kConvgemm) return RunConvgemm();
    for (int64_t image = 0; image < c.batch; ++image) {
      const Place data = At(layer_.data) + image * c.input_channels * c.input[0] * c.input[1];
      if (method_ == kIm2col) COLLAGE_TRY_STATUS(RunIm2col(data, workspace));
      const Place result = At(layer_.result) + image * c.output_channels * layer_.MatrixColumns();
      COLLAGE_TRY_STATUS(Multiply(method_ == kIm2col ? workspace : data, result));
    }
    return {};
  }

 private:
  [[nodiscard]] Status Multiply(const Place& matrix, const Place& result) const {
    for (int64_t group = 0; group < layer_.geometry.groups; ++group) {
      const auto step = [&](size_t rows, size_t columns) { return group * static_cast<int64_t>(rows * columns); };
      COLLAGE_TRY_STATUS(gemm_.Run(At(layer_.weight) + step(gemm_.rows, gemm_.depth), matrix + step(gemm_.depth, gemm_.columns),
                                   result + step(gemm_.rows, gemm_.columns), Queue()));
    }
    return {};
  }

  [[nodiscard]] Status RunIm2col(const Place& data, const Place& matrix) const {
    const Convolution& c = layer_.geometry;
    const Window& w = c.window;
    cl_command_queue queue = Queue();
    return StatusOf(clblast::Im2col<float>(clblast::KernelMode::kCrossCorrelation, c.input_channels, c.input[0], c.input[1], w.kernel[0],
                                           w.kernel[1], w.pad_begin[0], w.pad_begin[1], w.stride[0], w.stride[1], w.dilation[0],
                                           w.dilation[1], data.buffer, data.offset, matrix.buffer, matrix.offset, &queue),
                    "Im2col");
  }

  [[nodiscard]] Status RunConvgemm() const {
    const Convolution& c = layer_.geometry;
    const Window& w = c.window;
    const Place& data = At(layer_.data);
    const Place& weight = At(layer_.weight);
    const Place& result = At(layer_.result);
    cl_command_queue queue = Queue();
    return StatusOf(
        clblast::Convgemm<float>(clblast::KernelMode::kCrossCorrelation, c.input_channels, c.input[0], c.input[1], w.kernel[0], w.kernel[1],
                                 w.pad_begin[0], w.pad_begin[1], w.stride[0], w.stride[1], w.dilation[0], w.dilation[1], c.output_channels,
                                 c.batch, data.buffer, data.offset, weight.buffer, weight.offset, result.buffer, result.offset, &queue),
        "Convgemm");
  }

  ConvolutionLayer layer_;
  std::string method_;
  Gemm gemm_;
};

std::vector<std::string> MethodsOf(const Product& product) {
  if (product.offsets_a.size() > 1) return {kGemm, kBatched};
  if (product.geometry.rows == 1 || product.geometry.columns == 1) return {kGemv, kGemm};
  return {kGemm};
}

std::vector<std::string> MethodsOf(const ConvolutionLayer& layer) {
  std::vector<std::string> methods{layer.IsProduct() ? kGemm : kIm2col};
  if (layer.geometry.groups == 1) methods.emplace_back(kConvgemm);
  return methods;
}

template <class Made>
Result<std::unique_ptr<Kernel>> Prepared(std::unique_ptr<Made> kernel, const OpSequence& sequence) {
  COLLAGE_TRY_STATUS(kernel->Prepare(sequence));
  return kernel;
}

}  // namespace

std::vector<std::string> MethodsOf(const Layer& layer) {
  return std::visit([](const auto& of) { return MethodsOf(of); }, layer);
}

Result<std::unique_ptr<Kernel>> MakeKernel(const OpSequence& sequence, const Layer& layer, const std::string& method,
                                           std::shared_ptr<OpenClContext> context) {
  if (const auto* product = std::get_if<Product>(&layer))
    return Prepared(std::make_unique<ProductKernel>(sequence, *product, method, std::move(context)), sequence);
  return Prepared(std::make_unique<ConvolutionKernel>(sequence, std::get<ConvolutionLayer>(layer), method, std::move(context)), sequence);
}

}  // namespace collage::clblast_layers
