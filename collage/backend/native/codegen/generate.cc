#include "collage/backend/native/codegen/generate.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "collage/backend/native/codegen/emitter.h"
#include "collage/support/file.h"

namespace collage::native {
namespace {

constexpr const char* kFunctionName = "collage_native_kernel";

/// Whether code is to hold an infinity or a NaN as an immediate, as the masks of attention do. Of usual code the compiler may take it that
/// there are none, so that whatever it computes of them has no meaning.
bool HoldsNonFinite(const OpSequence& sequence) {
  return std::any_of(sequence.values.begin(), sequence.values.end(), [](const OpSequence::Value& value) {
    if (!value.constant || value.constant->ElementCount() != 1) return false;
    const DType dtype = value.constant->dtype();
    if (dtype == DType::kFloat32) return !std::isfinite(*value.constant->Data<float>());
    return dtype == DType::kFloat64 && !std::isfinite(*value.constant->Data<double>());
  });
}

Halide::Target CodeTarget(const OpSequence& sequence) {
  using T = Halide::Target;
  static const T target = Halide::get_host_target()
                              .with_feature(T::NoRuntime)
                              .with_feature(T::NoAsserts)
                              .with_feature(T::NoBoundsQuery)
                              .with_feature(T::UserContext);
  return HoldsNonFinite(sequence) ? target.with_feature(T::StrictFloat) : target;
}

// Halide writes files only; a file in memory is one.
Result<std::string> CompileToObject(const Halide::Pipeline& pipeline, const std::vector<Halide::Argument>& arguments,
                                    const Halide::Target& target) {
  const int file = ::memfd_create("collage-native", MFD_CLOEXEC);
  if (file < 0) return Fail("native: no file in memory for the generated code");
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  struct Closer {
    int file;
    ~Closer() { ::close(file); }
  } closer{file};
  Halide::Pipeline(pipeline).compile_to_object(path, arguments, kFunctionName, target);
  std::string object;
  char buffer[1 << 16];
  for (off_t at = 0;;) {
    const ssize_t read = ::pread(file, buffer, sizeof buffer, at);
    if (read < 0) return Fail("native: cannot read the generated code");
    if (read == 0) return object;
    object.append(buffer, static_cast<size_t>(read));
    at += read;
  }
}

/// Errors become exceptions; warnings are about schedules that are meant so.
class Reporter : public Halide::CompileTimeErrorReporter {
 public:
  void warning(const char*) override {}
  void error(const char* message) override { throw Halide::CompileError(message); }
};

Result<GeneratedCode> GenerateOrThrow(const GenerateRequest& request) {
  Options options;
  options.threads = request.threads;
  options.parallel = request.schedule != "serial";
  const auto tuned = [&](const char* name, int& number) {
    if (const auto at = request.tuning.find(name); at != request.tuning.end()) number = at->second;
  };
  tuned("vector_percent", options.vector_percent);
  tuned("unroll", options.unroll);
  tuned("tasks", options.tasks);
  tuned("tile_rows", options.tile_rows);
  tuned("tile_vectors", options.tile_vectors);
  options.inputs = request.inputs;
  options.outputs = request.outputs;
  Emitter emitter(*request.sequence, options);
  COLLAGE_TRY_STATUS(emitter.Build());
  std::string object = COLLAGE_TRY(CompileToObject(emitter.MakePipeline(), emitter.Arguments(), CodeTarget(*request.sequence)));
  return GeneratedCode{std::move(object), emitter.constants()};
}

Result<GeneratedCode> GenerateCode(const GenerateRequest& request) {
  // Halide's names and LLVM's contexts are made for one compilation at a time.
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  static Reporter reporter;
  Halide::set_custom_compile_time_error_reporter(&reporter);
  try {
    return GenerateOrThrow(request);
  } catch (const Halide::Error& error) {
    return Fail(std::string("native: Halide: ") + error.what());
  } catch (const std::exception& error) {
    return Fail(std::string("native: ") + error.what());
  }
}

}  // namespace
}  // namespace collage::native

extern "C" __attribute__((visibility("default"))) const collage::native::Generate collage_native_generate = &collage::native::GenerateCode;
