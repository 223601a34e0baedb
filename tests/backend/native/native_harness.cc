#include "tests/backend/native/native_harness.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "collage/backend/registry.h"
#include "collage/ir/op_sequence.h"
#include "collage/op/table.h"
#include "collage/tensor/agreement.h"

namespace collage::testing {
namespace {

// Memory whose end is the end of the world: reading or writing beyond it stops the test.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t bytes) : bytes_((bytes + 63) / 64 * 64) {
    const size_t whole = (bytes_ + kPage - 1) / kPage * kPage;
    mapped_ = whole + kPage;
    memory_ = static_cast<std::byte*>(::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(memory_, MAP_FAILED);
    EXPECT_EQ(::mprotect(memory_ + whole, kPage, PROT_NONE), 0);
    data_ = memory_ + whole - bytes_;
  }
  ~GuardedBuffer() {
    if (memory_) ::munmap(memory_, mapped_);
  }
  GuardedBuffer(GuardedBuffer&& other) noexcept
      : bytes_(other.bytes_), mapped_(other.mapped_), memory_(std::exchange(other.memory_, nullptr)), data_(other.data_) {}
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  void* data() { return data_; }

 private:
  static constexpr size_t kPage = 4096;
  size_t bytes_;
  size_t mapped_ = 0;
  std::byte* memory_ = nullptr;
  std::byte* data_ = nullptr;
};

// Where the element at a row-major position lies in the layout.
size_t PhysicalPosition(const Shape& shape, const Layout& layout, int64_t flat) {
  std::vector<int64_t> position(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i]) position[i] = flat % shape[i];
  std::vector<int64_t> block(shape.size(), 1);
  for (const Layout::Block& inner : layout.blocks()) block[inner.dimension] *= inner.extent;
  int64_t at = 0;
  for (size_t dimension : layout.order())
    at = at * ((shape[dimension] + block[dimension] - 1) / block[dimension]) + position[dimension] / block[dimension];
  for (const Layout::Block& inner : layout.blocks()) at = at * inner.extent + position[inner.dimension] % inner.extent;
  return static_cast<size_t>(at);
}

void Convert(const Tensor& plain, const Layout& layout, void* physical, bool to_physical, Tensor* back) {
  const size_t size = ByteSize(plain.dtype());
  for (int64_t i = 0; i < plain.ElementCount(); ++i) {
    const size_t at = layout.IsPlain() ? static_cast<size_t>(i) : PhysicalPosition(plain.shape(), layout, i);
    auto* place = static_cast<std::byte*>(physical) + at * size;
    if (to_physical) {
      std::memcpy(place, plain.Bytes() + static_cast<size_t>(i) * size, size);
    } else {
      std::memcpy(back->MutableBytes() + static_cast<size_t>(i) * size, place, size);
    }
  }
}

Result<std::vector<Tensor>> RunKernel(Kernel& kernel, const std::vector<Tensor>& inputs) {
  std::vector<GuardedBuffer> buffers;
  std::vector<const void*> sources;
  std::vector<void*> targets;
  for (size_t i = 0; i < inputs.size(); ++i) {
    buffers.emplace_back(PhysicalByteCount(inputs[i].type(), kernel.inputs()[i].layout));
    Convert(inputs[i], kernel.inputs()[i].layout, buffers.back().data(), true, nullptr);
    sources.push_back(buffers.back().data());
  }
  std::vector<GuardedBuffer> results;
  for (const Port& port : kernel.outputs()) {
    results.emplace_back(PhysicalByteCount(port.type, port.layout));
    std::memset(results.back().data(), 0x5a, PhysicalByteCount(port.type, port.layout));
    targets.push_back(results.back().data());
  }
  GuardedBuffer workspace(kernel.workspace_bytes());
  COLLAGE_TRY_STATUS(kernel.Run(sources, targets, workspace.data()));
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    Tensor output(kernel.outputs()[i].type);
    Convert(output, kernel.outputs()[i].layout, results[i].data(), false, &output);
    outputs.push_back(std::move(output));
  }
  return outputs;
}

std::vector<Tensor> RunReference(const OpSequence& sequence, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> values(sequence.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) values[sequence.parameters[i]] = inputs[i];
  for (size_t i = 0; i < values.size(); ++i) {
    if (sequence.values[i].constant) values[i] = *sequence.values[i].constant;
  }
  for (const OpSequence::Step& step : sequence.steps) {
    std::vector<Tensor> arguments;
    std::vector<Tensor> outputs;
    for (size_t input : step.inputs) arguments.push_back(values[input]);
    for (size_t output : step.outputs) outputs.emplace_back(sequence.values[output].type);
    step.op->reference(arguments, step.attributes, outputs);
    for (size_t i = 0; i < outputs.size(); ++i) values[step.outputs[i]] = outputs[i];
  }
  std::vector<Tensor> results;
  for (size_t result : sequence.results) results.push_back(values[result]);
  return results;
}

void ExpectClose(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_EQ(Objection(Compare(actual[i], expected[i]), tolerance), "") << what << ", output " << i;
}

}  // namespace

Expr Parameter(const std::string& name, Shape shape, DType dtype) { return MakeVar(name, TensorType{std::move(shape), dtype}); }

Expr CallNamed(const std::string& op, std::vector<Expr> args, Attributes attributes) {
  const OpDef* def = Operators().Find(op);
  if (!def) {
    ADD_FAILURE() << "no operator " << op;
    return nullptr;
  }
  Result<Expr> call = MakeCall(def, std::move(args), std::move(attributes));
  if (!call) ADD_FAILURE() << call.error().message;
  return call ? *call : nullptr;
}

Expr RandomConstant(Shape shape, uint64_t seed, double low, double high) {
  Tensor tensor(TensorType{std::move(shape), DType::kFloat32});
  FillRandom(tensor, seed, low, high);
  return MakeConstant(tensor);
}

Expr ScalarConstant(double value, DType dtype) { return MakeConstant(Tensor::Scalar(value, dtype)); }

void ExpectMatchesReference(const std::vector<Expr>& parameters, const Expr& body, const CheckOptions& options) {
  ASSERT_NE(body, nullptr);
  Result<Expr> function = MakeFunction(parameters, body);
  ASSERT_TRUE(function.has_value()) << function.error().message;
  const Function& primitive = *(*function)->As<Function>();
  const Result<OpSequence> sequence = ToOpSequence(primitive);
  ASSERT_TRUE(sequence.has_value()) << sequence.error().message;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < sequence->parameters.size(); ++i) {
    inputs.emplace_back(sequence->values[sequence->parameters[i]].type);
    FillRandom(inputs.back(), options.seed + i, options.low, options.high);
  }
  const std::vector<Tensor> expected = RunReference(*sequence, inputs);
  for (int threads : {1, 2}) {
    const Device device{DeviceKind::kCpu, 0, threads};
    const Result<const Backend*> backend = FindBackend("native", device);
    ASSERT_TRUE(backend.has_value()) << backend.error().message;
    const std::vector<Variant> variants = (*backend)->Variants(primitive, device);
    ASSERT_FALSE(variants.empty());
    for (const Variant& variant : variants) {
      const std::string what = variant.name + ", " + std::to_string(threads) + " threads";
      Result<std::unique_ptr<Kernel>> kernel = (*backend)->Compile(primitive, device, variant);
      ASSERT_TRUE(kernel.has_value()) << what << ": " << kernel.error().message;
      for (int run = 0; run < 2; ++run) {
        const Result<std::vector<Tensor>> actual = RunKernel(**kernel, inputs);
        ASSERT_TRUE(actual.has_value()) << actual.error().message;
        ExpectClose(*actual, expected, options.tolerance, what);
      }
      const std::string artifact = (*kernel)->Serialize();
      ASSERT_FALSE(artifact.empty());
      Result<std::unique_ptr<Kernel>> loaded = (*backend)->Load(artifact, device);
      ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
      const Result<std::vector<Tensor>> again = RunKernel(**loaded, inputs);
      ASSERT_TRUE(again.has_value()) << again.error().message;
      ExpectClose(*again, expected, options.tolerance, what + ", loaded");
    }
  }
}

}  // namespace collage::testing
