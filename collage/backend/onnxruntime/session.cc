#include "collage/backend/onnxruntime/session.h"

#include <utility>
#include <vector>

#include "collage/backend/onnxruntime/api.h"
#include "collage/onnx/data_type.h"

namespace collage::onnxruntime {
namespace {

using Weights = std::vector<std::pair<std::string, Tensor>>;

/// Owns a session, and the weights that it may read where they are. Its Run may be called by several threads at once.
class Session {
 public:
  static Result<std::shared_ptr<Session>> Create(const std::string& model, Weights weights, int threads, int optimizations,
                                                 Arithmetic arithmetic) {
    if (!OpenLibrary()) return Fail(OpenLibrary().error());
    auto session = std::make_shared<Session>(*OpenLibrary(), std::move(weights));
    OrtSessionOptions* options = nullptr;
    COLLAGE_TRY_STATUS(session->Check(session->api().CreateSessionOptions(&options)));
    Status made = session->Configure(*options, threads, optimizations, arithmetic);
    if (made) made = session->GiveWeights(*options);
    if (made) made = session->Make(model, *options);
    session->api().ReleaseSessionOptions(options);
    if (!made) return Fail(made.error());
    return session;
  }

  Session(const Library& library, Weights weights) : library_(library), weights_(std::move(weights)) {}
  ~Session() {
    if (session_) api().ReleaseSession(session_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const Api& api() const { return *library_.api; }
  [[nodiscard]] const OrtMemoryInfo* memory() const { return library_.memory; }
  [[nodiscard]] OrtSession* get() const { return session_; }
  [[nodiscard]] Status Check(OrtStatus* status) const { return onnxruntime::Check(library_, status); }

 private:
  [[nodiscard]] Status Configure(OrtSessionOptions& options, int threads, int optimizations, Arithmetic arithmetic) const {
    COLLAGE_TRY_STATUS(Check(api().SetIntraOpNumThreads(&options, threads)));
    COLLAGE_TRY_STATUS(Check(api().SetInterOpNumThreads(&options, 1)));
    COLLAGE_TRY_STATUS(Check(api().SetSessionGraphOptimizationLevel(&options, optimizations)));
    // Its threads spin while they wait for the next operator, and beside another library's between two runs they would take turns with
    // that on the processors.
    COLLAGE_TRY_STATUS(Check(api().AddSessionConfigEntry(&options, "session.intra_op.allow_spinning", "1")));
    COLLAGE_TRY_STATUS(Check(api().AddSessionConfigEntry(&options, "session.force_spinning_stop", "1")));
    const char* as_written = arithmetic == Arithmetic::kAsWritten ? "1" : "0";
    return Check(api().AddSessionConfigEntry(&options, "session.disable_quant_qdq", as_written));
  }

  /// Those that are not in the model's bytes.
  [[nodiscard]] Status GiveWeights(OrtSessionOptions& options) const {
    if (weights_.empty()) return {};
    std::vector<const char*> names;
    std::vector<OrtValue*> values(weights_.size(), nullptr);
    Status status;
    for (size_t i = 0; i < weights_.size() && status; ++i) {
      const auto& [name, tensor] = weights_[i];
      names.push_back(name.c_str());
      // The library only reads them; its interface has no tensor of constant memory.
      status = Check(api().CreateTensorWithDataAsOrtValue(memory(), const_cast<std::byte*>(tensor.Bytes()), tensor.ByteCount(),
                                                          tensor.shape().data(), tensor.shape().size(),
                                                          static_cast<int>(onnx_io::OnnxDataType(tensor.dtype())), &values[i]));
    }
    if (status) status = Check(api().AddExternalInitializers(&options, names.data(), values.data(), values.size()));
    for (OrtValue* value : values) {
      if (value) api().ReleaseValue(value);
    }
    return status;
  }

  Status Make(const std::string& model, const OrtSessionOptions& options) {
    return Check(api().CreateSessionFromArray(library_.env, model.data(), model.size(), &options, &session_));
  }

  const Library& library_;
  Weights weights_;
  OrtSession* session_ = nullptr;
};

/// The caller's buffer as a tensor of the library. Making one allocates, so it is made only when the buffer is another one.
class Slot {
 public:
  Slot(const Session& session, TensorType type) : session_(session), type_(std::move(type)) {}
  Slot(Slot&& other) noexcept
      : session_(other.session_), type_(std::move(other.type_)), buffer_(other.buffer_), value_(std::exchange(other.value_, nullptr)) {}
  Slot& operator=(Slot&&) = delete;
  ~Slot() { Release(); }

  [[nodiscard]] const TensorType& type() const { return type_; }
  Result<OrtValue*> At(void* buffer) {
    if (value_ && buffer == buffer_) return value_;
    Release();
    COLLAGE_TRY_STATUS(session_.Check(
        session_.api().CreateTensorWithDataAsOrtValue(session_.memory(), buffer, type_.ByteCount(), type_.shape.data(), type_.shape.size(),
                                                      static_cast<int>(onnx_io::OnnxDataType(type_.dtype)), &value_)));
    buffer_ = buffer;
    return value_;
  }

 private:
  void Release() {
    if (value_) session_.api().ReleaseValue(std::exchange(value_, nullptr));
  }

  const Session& session_;
  TensorType type_;
  void* buffer_ = nullptr;
  OrtValue* value_ = nullptr;
};

/// One side of a run: names and tensors, as the library wants them.
struct Side {
  Side(const Session& session, const std::vector<std::string>& given_names, const std::vector<TensorType>& types) : names(given_names) {
    for (const TensorType& type : types) slots.emplace_back(session, type);
    for (const std::string& name : names) pointers.push_back(name.c_str());
    values.resize(types.size());
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  std::vector<std::string> names;
  std::vector<const char*> pointers;
  std::vector<Slot> slots;
  std::vector<OrtValue*> values;
};

class SessionKernel final : public Kernel {
 public:
  SessionKernel(std::shared_ptr<Session> session, const std::vector<std::string>& input_names, const std::vector<TensorType>& inputs,
                const std::vector<std::string>& output_names, const std::vector<TensorType>& outputs)
      : session_(std::move(session)), given_(*session_, input_names, inputs), got_(*session_, output_names, outputs) {
    for (const TensorType& type : inputs) inputs_.push_back({type, Layout()});
    for (const TensorType& type : outputs) outputs_.push_back({type, Layout()});
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* /*workspace*/) override {
    // The library only reads inputs; its interface has no tensor of constant memory.
    for (size_t i = 0; i < inputs.size(); ++i) given_.values[i] = COLLAGE_TRY(given_.slots[i].At(const_cast<void*>(inputs[i])));
    for (size_t i = 0; i < outputs.size(); ++i) got_.values[i] = COLLAGE_TRY(got_.slots[i].At(outputs[i]));
    return session_->Check(session_->api().Run(session_->get(), nullptr, given_.pointers.data(), given_.values.data(), given_.values.size(),
                                               got_.pointers.data(), got_.values.size(), got_.values.data()));
  }

  [[nodiscard]] std::unique_ptr<Kernel> Twin() const override {
    return std::make_unique<SessionKernel>(session_, given_.names, TypesOf(inputs_), got_.names, TypesOf(outputs_));
  }

 private:
  static std::vector<TensorType> TypesOf(const std::vector<Port>& ports) {
    std::vector<TensorType> types;
    for (const Port& port : ports) types.push_back(port.type);
    return types;
  }

  std::shared_ptr<Session> session_;
  Side given_;
  Side got_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> MakeSession(const OnnxForm& form, const Device& device, Arithmetic arithmetic) {
  std::shared_ptr<Session> session = COLLAGE_TRY(Session::Create(form.bytes, form.weights, device.threads, kAllOptimizations, arithmetic));
  return std::make_unique<SessionKernel>(std::move(session), form.input_names, form.inputs, form.output_names, form.outputs);
}

Status HasKernelsFor(const std::string& onnx_model) {
  COLLAGE_TRY(Session::Create(onnx_model, {}, 1, kNoOptimizations, Arithmetic::kAsWritten));
  return {};
}

}  // namespace collage::onnxruntime
