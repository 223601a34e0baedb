#include <cstdint>
#include <cstring>

#include "collage/c/objects.h"
#include "collage/runtime/executable.h"
#include "collage/support/memory.h"

namespace collage::c_abi {
namespace {

/// For tensors without elements, whose data the caller may leave null.
void* NoBytes() {
  alignas(kBufferAlignment) static std::byte nothing[kBufferAlignment];
  return nothing;
}

std::vector<Tensor> Handles(const std::vector<NamedType>& types) {
  std::vector<Tensor> tensors;
  for (const NamedType& one : types) tensors.push_back(Tensor::Borrowed(one.type, NoBytes()));
  return tensors;
}

collage_error* RefuseCount(const char* what, size_t given, size_t wanted) {
  return Refuse(std::to_string(given) + " " + what + "s were given, expected " + std::to_string(wanted));
}

/// Null when the buffer fits.
collage_error* CheckBuffer(const char* what, const NamedType& expected, const void* data, size_t bytes) {
  const size_t wanted = expected.type.ByteCount();
  const auto refuse = [&](const std::string& found) {
    return Refuse(std::string(what) + " '" + expected.name + "' " + found + ", expected " + std::to_string(wanted) + " for " +
                  ToString(expected.type));
  };
  if (bytes != wanted) return refuse("has " + std::to_string(bytes) + " bytes");
  if (!data && bytes > 0) return refuse("is null");
  return nullptr;
}

void UseProfile(collage_session& session, size_t profile) {
  const ShapeProfile& shapes = session.executable->shape_profiles()[profile];
  session.profile = profile;
  session.results.clear();
  session.inputs = Handles(shapes.inputs);
  session.outputs = Handles(shapes.outputs);
  session.staged.assign(session.outputs.size(), {});
  session.is_staged.assign(session.outputs.size(), false);
}

collage_error* BindInputs(collage_session& session, const collage_input* inputs) {
  const ShapeProfile& shapes = session.executable->shape_profiles()[session.profile];
  for (size_t i = 0; i < session.inputs.size(); ++i) {
    if (collage_error* error = CheckBuffer("input", shapes.inputs[i], inputs[i].data, inputs[i].bytes)) return error;
    session.inputs[i].MoveTo(inputs[i].bytes > 0 ? const_cast<void*>(inputs[i].data) : NoBytes());
  }
  return nullptr;
}

collage_error* BindOutputs(collage_session& session, const collage_output* outputs) {
  const ShapeProfile& shapes = session.executable->shape_profiles()[session.profile];
  for (size_t i = 0; i < session.outputs.size(); ++i) {
    if (collage_error* error = CheckBuffer("output", shapes.outputs[i], outputs[i].data, outputs[i].bytes)) return error;
    session.is_staged[i] = !IsAligned(outputs[i].data);
    if (session.is_staged[i] && !session.staged[i].Defined()) session.staged[i] = Tensor(shapes.outputs[i].type);
    void* data = session.is_staged[i] ? session.staged[i].MutableBytes() : outputs[i].data;
    session.outputs[i].MoveTo(outputs[i].bytes > 0 ? data : NoBytes());
  }
  return nullptr;
}

/// One run of a session at a time; false while there is another.
class Running {
 public:
  explicit Running(collage_session& session) : session_(session), is_first_(!session.running.test_and_set(std::memory_order_acquire)) {}
  ~Running() {
    if (is_first_) session_.running.clear(std::memory_order_release);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  explicit operator bool() const { return is_first_; }

 private:
  collage_session& session_;
  bool is_first_;
};

}  // namespace
}  // namespace collage::c_abi

using namespace collage::c_abi;

collage_error* collage_session_create(collage_program* program, collage_session** session) noexcept {
  return Guarded([&]() -> collage_error* {
    if (!program || !session) return Refuse("collage_session_create: program and session must not be null");
    *session = nullptr;
    collage::Result<collage::Executable*> executable = program->shared->Lend();
    if (!executable) return MakeError(COLLAGE_ERROR_LOAD, executable.error().message);
    auto made = std::make_unique<collage_session>();
    made->program = program;
    made->executable = *executable;
    // Whoever had it before may have measured.
    made->executable->SetProfiling(true);
    made->executable->SetProfiling(false);
    UseProfile(*made, 0);
    *session = made.release();
    return nullptr;
  });
}

void collage_session_free(collage_session* session) noexcept {
  if (!session) return;
  session->program->shared->TakeBack(session->executable);
  delete session;
}

collage_error* collage_session_select_profile(collage_session* session, size_t profile) noexcept {
  return Guarded([&]() -> collage_error* {
    if (!session) return Refuse("collage_session_select_profile: session must not be null");
    const size_t count = session->executable->shape_profiles().size();
    if (profile >= count) return Refuse("there is no profile " + std::to_string(profile) + "; there are " + std::to_string(count));
    const Running running(*session);
    if (!running) return Refuse("collage_session_select_profile: this session is running, in another thread");
    if (profile != session->profile) UseProfile(*session, profile);
    return nullptr;
  });
}

collage_error* collage_session_run(collage_session* session, const collage_input* inputs, size_t input_count, const collage_output* outputs,
                                   size_t output_count) noexcept {
  return Guarded([&]() -> collage_error* {
    if (!session) return Refuse("collage_session_run: session must not be null");
    if (!session->program->shared->info().remainders.empty())
      return Refuse("collage_session_run: the shapes of this program's outputs depend on data; use collage_session_evaluate");
    if (input_count != session->inputs.size()) return RefuseCount("input", input_count, session->inputs.size());
    if (output_count != session->outputs.size()) return RefuseCount("output", output_count, session->outputs.size());
    if ((!inputs && input_count > 0) || (!outputs && output_count > 0)) return Refuse("collage_session_run: buffers must not be null");
    const Running running(*session);
    if (!running) return Refuse("collage_session_run: this session is running already, in another thread");
    if (collage_error* error = BindInputs(*session, inputs)) return error;
    if (collage_error* error = BindOutputs(*session, outputs)) return error;
    const collage::Status status = session->executable->Run(session->inputs, session->outputs);
    if (!status) return MakeError(COLLAGE_ERROR_RUN, status.error().message);
    for (size_t i = 0; i < output_count; ++i) {
      if (session->is_staged[i]) std::memcpy(outputs[i].data, session->staged[i].Bytes(), outputs[i].bytes);
    }
    return nullptr;
  });
}

collage_error* collage_session_evaluate(collage_session* session, const collage_input* inputs, size_t input_count) noexcept {
  return Guarded([&]() -> collage_error* {
    if (!session) return Refuse("collage_session_evaluate: session must not be null");
    if (input_count != session->inputs.size()) return RefuseCount("input", input_count, session->inputs.size());
    if (!inputs && input_count > 0) return Refuse("collage_session_evaluate: buffers must not be null");
    const Running running(*session);
    if (!running) return Refuse("collage_session_evaluate: this session is running already, in another thread");
    if (collage_error* error = BindInputs(*session, inputs)) return error;
    session->results.clear();
    const collage::Remainders& remainders = session->program->shared->info().remainders;
    collage::Result<std::vector<collage::Tensor>> results = collage::RunWhole(*session->executable, remainders, session->inputs);
    if (!results) return MakeError(COLLAGE_ERROR_RUN, results.error().message);
    session->results = std::move(*results);
    return nullptr;
  });
}

collage_result collage_session_result(const collage_session* session, size_t index) noexcept {
  if (!session || index >= session->results.size()) return {};
  const collage::Tensor& tensor = session->results[index];
  const collage::ProgramInfo& info = session->program->shared->info();
  const collage::Remainder* remainder = collage::RemainderOf(info.remainders, session->profile);
  const std::string& name = remainder ? remainder->outputs()[index].name : info.profiles[session->profile].outputs[index].name;
  return {tensor.Bytes(), InfoOf(name, tensor.dtype(), &tensor.shape())};
}

void collage_session_set_profiling(collage_session* session, int on) noexcept { session->executable->SetProfiling(on != 0); }

size_t collage_session_step_count(const collage_session* session) noexcept { return session->executable->profile().size(); }

collage_step collage_session_step(const collage_session* session, size_t index) noexcept {
  const std::vector<collage::StepProfile>& steps = session->executable->profile();
  if (index >= steps.size()) return {};
  const collage::StepProfile& step = steps[index];
  return {step.kind.c_str(), step.record.name.c_str(), step.record.backend.c_str(), step.calls, step.microseconds};
}
