#pragma once

// What this backend uses of ONNX Runtime's C interface. The library exports one function, OrtGetApiBase; that gives a table of functions
// for each version of the interface, in which positions never change. Here is that table up to the last function in use, the others as
// gaps. The tests run a model through it, which no wrong position would survive.

#include <cstddef>
#include <cstdint>

#include "collage/support/result.h"

namespace collage::onnxruntime {

// Opaque objects of the library.
struct OrtEnv;
struct OrtMemoryInfo;
struct OrtRunOptions;
struct OrtSession;
struct OrtSessionOptions;
struct OrtStatus;  // null: success
struct OrtValue;

/// The version of the interface that has every function below.
inline constexpr uint32_t kApiVersion = 12;
inline constexpr int kLogErrors = 3;          // of 0 (everything) to 4 (what is fatal)
inline constexpr int kAllOptimizations = 99;  // of the graph, layouts included
inline constexpr int kNoOptimizations = 0;
inline constexpr int kDeviceAllocator = 0;  // whose memory a value is in: the caller's
inline constexpr int kDefaultMemory = 0;

template <size_t count>
using Gap = void* [count];

struct Api {
  Gap<2> to_messages;
  const char* (*GetErrorMessage)(const OrtStatus*);
  OrtStatus* (*CreateEnv)(int least_severity, const char* name, OrtEnv**);
  Gap<2> to_telemetry;
  OrtStatus* (*DisableTelemetryEvents)(const OrtEnv*);
  Gap<1> to_sessions;
  OrtStatus* (*CreateSessionFromArray)(const OrtEnv*, const void* model, size_t bytes, const OrtSessionOptions*, OrtSession**);
  OrtStatus* (*Run)(OrtSession*, const OrtRunOptions*, const char* const* input_names, const OrtValue* const* inputs, size_t input_count,
                    const char* const* output_names, size_t output_count, OrtValue** outputs);
  OrtStatus* (*CreateSessionOptions)(OrtSessionOptions**);
  Gap<12> to_optimization;
  OrtStatus* (*SetSessionGraphOptimizationLevel)(OrtSessionOptions*, int level);
  OrtStatus* (*SetIntraOpNumThreads)(OrtSessionOptions*, int threads);
  OrtStatus* (*SetInterOpNumThreads)(OrtSessionOptions*, int threads);
  Gap<23> to_values;
  OrtStatus* (*CreateTensorWithDataAsOrtValue)(const OrtMemoryInfo*, void* data, size_t bytes, const int64_t* shape, size_t rank, int type,
                                               OrtValue**);
  Gap<19> to_memory;
  OrtStatus* (*CreateCpuMemoryInfo)(int allocator, int memory, OrtMemoryInfo**);
  Gap<23> to_releases;
  void (*ReleaseStatus)(OrtStatus*);
  Gap<1> release_memory_info;
  void (*ReleaseSession)(OrtSession*);
  void (*ReleaseValue)(OrtValue*);
  Gap<3> to_release_of_options;
  void (*ReleaseSessionOptions)(OrtSessionOptions*);
  Gap<29> to_entries;
  OrtStatus* (*AddSessionConfigEntry)(OrtSessionOptions*, const char* key, const char* value);
  Gap<79> to_initializers;
  OrtStatus* (*AddExternalInitializers)(OrtSessionOptions*, const char* const* names, const OrtValue* const* values, size_t count);
};

// Where the interface has them.
static_assert(offsetof(Api, GetErrorMessage) == 2 * sizeof(void*));
static_assert(offsetof(Api, CreateEnv) == 3 * sizeof(void*));
static_assert(offsetof(Api, DisableTelemetryEvents) == 6 * sizeof(void*));
static_assert(offsetof(Api, CreateSessionFromArray) == 8 * sizeof(void*));
static_assert(offsetof(Api, Run) == 9 * sizeof(void*));
static_assert(offsetof(Api, CreateSessionOptions) == 10 * sizeof(void*));
static_assert(offsetof(Api, SetSessionGraphOptimizationLevel) == 23 * sizeof(void*));
static_assert(offsetof(Api, SetIntraOpNumThreads) == 24 * sizeof(void*));
static_assert(offsetof(Api, SetInterOpNumThreads) == 25 * sizeof(void*));
static_assert(offsetof(Api, CreateTensorWithDataAsOrtValue) == 49 * sizeof(void*));
static_assert(offsetof(Api, CreateCpuMemoryInfo) == 69 * sizeof(void*));
static_assert(offsetof(Api, ReleaseStatus) == 93 * sizeof(void*));
static_assert(offsetof(Api, ReleaseSession) == 95 * sizeof(void*));
static_assert(offsetof(Api, ReleaseValue) == 96 * sizeof(void*));
static_assert(offsetof(Api, ReleaseSessionOptions) == 100 * sizeof(void*));
static_assert(offsetof(Api, AddSessionConfigEntry) == 130 * sizeof(void*));
static_assert(offsetof(Api, AddExternalInitializers) == 210 * sizeof(void*));

/// What OrtGetApiBase points to.
struct ApiBase {
  const Api* (*GetApi)(uint32_t version);  ///< null: the library has no such version
  const char* (*GetVersionString)();
};

/// The library, opened on the first call and never closed.
struct Library {
  const Api* api;
  const char* version;
  OrtEnv* env;
  OrtMemoryInfo* memory;  ///< the host's
};
/// Errors say where the library was looked for, or why it cannot be used.
const Result<Library>& OpenLibrary();

/// The error of a call as the library says it; takes the status over.
Status Check(const Library& library, OrtStatus* status);

}  // namespace collage::onnxruntime
