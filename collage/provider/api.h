#pragma once

// What the execution provider uses of ONNX Runtime's C interface, and what it has to be for it. PyPI's package has no headers, so the
// tables are declared here. Positions in them never change, and each side says which version of them it knows: the tables of ONNX Runtime
// are asked for by kApiVersion, and it reads no further in ours than they were in kProviderVersion. Names are those of the interface, so
// that its documentation answers for them. The tests run models through all of it, which no wrong position would survive.

#include <cstddef>
#include <cstdint>

namespace collage::provider {

/// Of ONNX Runtime 1.24, the first version that tells a tensor of unknown rank from a scalar.
inline constexpr uint32_t kApiVersion = 24;
/// Of ONNX Runtime 1.23, the first in which providers from outside may compile. Later ones may have more, which none of this needs.
inline constexpr uint32_t kProviderVersion = 23;

// Of its enumerations.
inline constexpr int kFail = 1;
inline constexpr int kInvalidArgument = 2;
inline constexpr int kNotImplemented = 9;
inline constexpr int kProviderFailed = 11;
inline constexpr int kLogInformation = 1;
inline constexpr int kLogWarning = 2;
inline constexpr int kProcessor = 0;  ///< a device that is a CPU
enum AttributeType : int { kUndefined, kInt, kInts, kFloat, kFloats, kString, kStrings, kGraph, kTensor };

// Objects of ONNX Runtime.
struct OrtEpDevice;
struct OrtEpGraphSupportInfo;
struct OrtGraph;
struct OrtHardwareDevice;
struct OrtKernelContext;
struct OrtKeyValuePairs;
struct OrtLogger;
struct OrtNode;
struct OrtNodeComputeContext;
struct OrtOpAttr;
struct OrtSessionOptions;
struct OrtStatus;  // null: success
struct OrtTensorTypeAndShapeInfo;
struct OrtTypeInfo;
struct OrtValue;
struct OrtValueInfo;

struct OrtEpFactory;
struct OrtNodeFusionOptions;
struct EpApi;

template <size_t count>
using Gap = void* [count];

/// OrtApi.
struct Api {
  OrtStatus* (*CreateStatus)(int code, const char* message);
  Gap<1> gap_1;
  const char* (*GetErrorMessage)(const OrtStatus*);
  Gap<48> gap_2;
  OrtStatus* (*GetTensorMutableData)(OrtValue*, void** data);
  Gap<3> gap_3;
  OrtStatus* (*CastTypeInfoToTensorInfo)(const OrtTypeInfo*, const OrtTensorTypeAndShapeInfo**);  // null where it is no tensor
  Gap<4> gap_4;
  OrtStatus* (*GetTensorElementType)(const OrtTensorTypeAndShapeInfo*, int* type);
  OrtStatus* (*GetDimensionsCount)(const OrtTensorTypeAndShapeInfo*, size_t* count);
  OrtStatus* (*GetDimensions)(const OrtTensorTypeAndShapeInfo*, int64_t* extents, size_t count);  // -1: symbolic
  OrtStatus* (*GetSymbolicDimensions)(const OrtTensorTypeAndShapeInfo*, const char** names, size_t count);
  Gap<1> gap_5;
  OrtStatus* (*GetTensorTypeAndShape)(const OrtValue*, OrtTensorTypeAndShapeInfo**);
  Gap<24> gap_6;
  OrtStatus* (*KernelContext_GetInput)(const OrtKernelContext*, size_t index, const OrtValue**);
  OrtStatus* (*KernelContext_GetOutput)(OrtKernelContext*, size_t index, const int64_t* extents, size_t rank, OrtValue**);
  Gap<1> gap_7;
  void (*ReleaseStatus)(OrtStatus*);
  Gap<2> gap_8;
  void (*ReleaseValue)(OrtValue*);
  Gap<2> gap_9;
  void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo*);
  Gap<147> gap_10;
  OrtStatus* (*Logger_LogMessage)(const OrtLogger*, int severity, const char* message, const char* file, int line, const char* function);
  Gap<24> gap_11;
  OrtStatus* (*ReadOpAttr)(const OrtOpAttr*, int type, void* data, size_t bytes, size_t* needed);
  Gap<16> gap_12;
  OrtStatus* (*GetValueInfoName)(const OrtValueInfo*, const char**);
  OrtStatus* (*GetValueInfoTypeInfo)(const OrtValueInfo*, const OrtTypeInfo**);
  Gap<7> gap_13;
  void (*GetKeyValuePairs)(const OrtKeyValuePairs*, const char* const** keys, const char* const** values, size_t* count);
  Gap<1> gap_14;
  void (*ReleaseKeyValuePairs)(OrtKeyValuePairs*);
  Gap<6> gap_15;
  int (*HardwareDevice_Type)(const OrtHardwareDevice*);
  Gap<9> gap_16;
  const EpApi* (*GetEpApi)();
  OrtStatus* (*GetTensorSizeInBytes)(const OrtValue*, size_t* bytes);
  Gap<7> gap_17;
  OrtStatus* (*ValueInfo_GetInitializerValue)(const OrtValueInfo*, const OrtValue**);
  Gap<4> gap_18;
  OrtStatus* (*ValueInfo_IsConstantInitializer)(const OrtValueInfo*, bool*);
  Gap<3> gap_19;
  OrtStatus* (*Graph_GetOnnxIRVersion)(const OrtGraph*, int64_t*);
  OrtStatus* (*Graph_GetNumOperatorSets)(const OrtGraph*, size_t*);
  OrtStatus* (*Graph_GetOperatorSets)(const OrtGraph*, const char** domains, int64_t* versions, size_t);
  OrtStatus* (*Graph_GetNumInputs)(const OrtGraph*, size_t*);
  OrtStatus* (*Graph_GetInputs)(const OrtGraph*, const OrtValueInfo**, size_t);
  OrtStatus* (*Graph_GetNumOutputs)(const OrtGraph*, size_t*);
  OrtStatus* (*Graph_GetOutputs)(const OrtGraph*, const OrtValueInfo**, size_t);
  OrtStatus* (*Graph_GetNumInitializers)(const OrtGraph*, size_t*);
  OrtStatus* (*Graph_GetInitializers)(const OrtGraph*, const OrtValueInfo**, size_t);
  OrtStatus* (*Graph_GetNumNodes)(const OrtGraph*, size_t*);
  OrtStatus* (*Graph_GetNodes)(const OrtGraph*, const OrtNode**, size_t);
  OrtStatus* (*Graph_GetParentNode)(const OrtGraph*, const OrtNode**);
  Gap<2> gap_20;
  OrtStatus* (*Node_GetName)(const OrtNode*, const char**);
  OrtStatus* (*Node_GetOperatorType)(const OrtNode*, const char**);
  OrtStatus* (*Node_GetDomain)(const OrtNode*, const char**);
  Gap<1> gap_21;
  OrtStatus* (*Node_GetNumInputs)(const OrtNode*, size_t*);
  OrtStatus* (*Node_GetInputs)(const OrtNode*, const OrtValueInfo**, size_t);
  OrtStatus* (*Node_GetNumOutputs)(const OrtNode*, size_t*);
  OrtStatus* (*Node_GetOutputs)(const OrtNode*, const OrtValueInfo**, size_t);
  OrtStatus* (*Node_GetNumImplicitInputs)(const OrtNode*, size_t*);
  OrtStatus* (*Node_GetImplicitInputs)(const OrtNode*, const OrtValueInfo**, size_t);
  OrtStatus* (*Node_GetNumAttributes)(const OrtNode*, size_t*);
  OrtStatus* (*Node_GetAttributes)(const OrtNode*, const OrtOpAttr**, size_t);
  Gap<1> gap_22;
  OrtStatus* (*OpAttr_GetTensorAttributeAsOrtValue)(const OrtOpAttr*, OrtValue**);
  OrtStatus* (*OpAttr_GetType)(const OrtOpAttr*, int* type);
  OrtStatus* (*OpAttr_GetName)(const OrtOpAttr*, const char**);
  OrtStatus* (*Node_GetNumSubgraphs)(const OrtNode*, size_t*);
  OrtStatus* (*Node_GetSubgraphs)(const OrtNode*, const OrtGraph**, size_t, const char** attribute_names);
  Gap<1> gap_23;
  OrtStatus* (*Node_GetEpName)(const OrtNode*, const char**);
  Gap<9> gap_24;
  OrtStatus* (*GetTensorData)(const OrtValue*, const void**);
  OrtStatus* (*GetSessionOptionsConfigEntries)(const OrtSessionOptions*, OrtKeyValuePairs**);
  Gap<10> gap_25;
  bool (*TensorTypeAndShape_HasShape)(const OrtTensorTypeAndShapeInfo*);  // false: even the rank is unknown
};

static_assert(offsetof(Api, CreateStatus) == 0 * sizeof(void*));
static_assert(offsetof(Api, GetErrorMessage) == 2 * sizeof(void*));
static_assert(offsetof(Api, GetTensorMutableData) == 51 * sizeof(void*));
static_assert(offsetof(Api, CastTypeInfoToTensorInfo) == 55 * sizeof(void*));
static_assert(offsetof(Api, GetTensorElementType) == 60 * sizeof(void*));
static_assert(offsetof(Api, GetDimensionsCount) == 61 * sizeof(void*));
static_assert(offsetof(Api, GetDimensions) == 62 * sizeof(void*));
static_assert(offsetof(Api, GetSymbolicDimensions) == 63 * sizeof(void*));
static_assert(offsetof(Api, GetTensorTypeAndShape) == 65 * sizeof(void*));
static_assert(offsetof(Api, KernelContext_GetInput) == 90 * sizeof(void*));
static_assert(offsetof(Api, KernelContext_GetOutput) == 91 * sizeof(void*));
static_assert(offsetof(Api, ReleaseStatus) == 93 * sizeof(void*));
static_assert(offsetof(Api, ReleaseValue) == 96 * sizeof(void*));
static_assert(offsetof(Api, ReleaseTensorTypeAndShapeInfo) == 99 * sizeof(void*));
static_assert(offsetof(Api, Logger_LogMessage) == 247 * sizeof(void*));
static_assert(offsetof(Api, ReadOpAttr) == 272 * sizeof(void*));
static_assert(offsetof(Api, GetValueInfoName) == 289 * sizeof(void*));
static_assert(offsetof(Api, GetValueInfoTypeInfo) == 290 * sizeof(void*));
static_assert(offsetof(Api, GetKeyValuePairs) == 298 * sizeof(void*));
static_assert(offsetof(Api, ReleaseKeyValuePairs) == 300 * sizeof(void*));
static_assert(offsetof(Api, HardwareDevice_Type) == 307 * sizeof(void*));
static_assert(offsetof(Api, GetEpApi) == 317 * sizeof(void*));
static_assert(offsetof(Api, GetTensorSizeInBytes) == 318 * sizeof(void*));
static_assert(offsetof(Api, ValueInfo_GetInitializerValue) == 326 * sizeof(void*));
static_assert(offsetof(Api, ValueInfo_IsConstantInitializer) == 331 * sizeof(void*));
static_assert(offsetof(Api, Graph_GetOnnxIRVersion) == 335 * sizeof(void*));
static_assert(offsetof(Api, Graph_GetNumOperatorSets) == 336 * sizeof(void*));
static_assert(offsetof(Api, Graph_GetOperatorSets) == 337 * sizeof(void*));
static_assert(offsetof(Api, Graph_GetNumInputs) == 338 * sizeof(void*));
static_assert(offsetof(Api, Graph_GetInputs) == 339 * sizeof(void*));
static_assert(offsetof(Api, Graph_GetNumOutputs) == 340 * sizeof(void*));
static_assert(offsetof(Api, Graph_GetOutputs) == 341 * sizeof(void*));
static_assert(offsetof(Api, Graph_GetNumInitializers) == 342 * sizeof(void*));
static_assert(offsetof(Api, Graph_GetInitializers) == 343 * sizeof(void*));
static_assert(offsetof(Api, Graph_GetNumNodes) == 344 * sizeof(void*));
static_assert(offsetof(Api, Graph_GetNodes) == 345 * sizeof(void*));
static_assert(offsetof(Api, Graph_GetParentNode) == 346 * sizeof(void*));
static_assert(offsetof(Api, Node_GetName) == 349 * sizeof(void*));
static_assert(offsetof(Api, Node_GetOperatorType) == 350 * sizeof(void*));
static_assert(offsetof(Api, Node_GetDomain) == 351 * sizeof(void*));
static_assert(offsetof(Api, Node_GetNumInputs) == 353 * sizeof(void*));
static_assert(offsetof(Api, Node_GetInputs) == 354 * sizeof(void*));
static_assert(offsetof(Api, Node_GetNumOutputs) == 355 * sizeof(void*));
static_assert(offsetof(Api, Node_GetOutputs) == 356 * sizeof(void*));
static_assert(offsetof(Api, Node_GetNumImplicitInputs) == 357 * sizeof(void*));
static_assert(offsetof(Api, Node_GetImplicitInputs) == 358 * sizeof(void*));
static_assert(offsetof(Api, Node_GetNumAttributes) == 359 * sizeof(void*));
static_assert(offsetof(Api, Node_GetAttributes) == 360 * sizeof(void*));
static_assert(offsetof(Api, OpAttr_GetTensorAttributeAsOrtValue) == 362 * sizeof(void*));
static_assert(offsetof(Api, OpAttr_GetType) == 363 * sizeof(void*));
static_assert(offsetof(Api, OpAttr_GetName) == 364 * sizeof(void*));
static_assert(offsetof(Api, Node_GetNumSubgraphs) == 365 * sizeof(void*));
static_assert(offsetof(Api, Node_GetSubgraphs) == 366 * sizeof(void*));
static_assert(offsetof(Api, Node_GetEpName) == 368 * sizeof(void*));
static_assert(offsetof(Api, GetTensorData) == 378 * sizeof(void*));
static_assert(offsetof(Api, GetSessionOptionsConfigEntries) == 379 * sizeof(void*));
static_assert(offsetof(Api, TensorTypeAndShape_HasShape) == 390 * sizeof(void*));

/// OrtEpApi.
struct EpApi {
  OrtStatus* (*CreateEpDevice)(OrtEpFactory*, const OrtHardwareDevice*, const OrtKeyValuePairs* metadata, const OrtKeyValuePairs* options,
                               OrtEpDevice**);
  Gap<1> release_ep_device;
  OrtStatus* (*EpGraphSupportInfo_AddNodesToFuse)(OrtEpGraphSupportInfo*, const OrtNode* const* nodes, size_t count,
                                                  const OrtNodeFusionOptions*);
};

/// OrtApiBase.
struct ApiBase {
  const Api* (*GetApi)(uint32_t version);  ///< null: it has no such version
  const char* (*GetVersionString)();
};

// What the provider has to be. The functions that ONNX Runtime calls; null where it may be left out.

struct OrtNodeFusionOptions {
  uint32_t version = kProviderVersion;
  bool drop_constant_initializers = false;  ///< they are no inputs of the fused node
};

struct OrtNodeComputeInfo {
  uint32_t version = kProviderVersion;
  OrtStatus* (*CreateState)(OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state) = nullptr;
  OrtStatus* (*Compute)(OrtNodeComputeInfo*, void* state, OrtKernelContext*) = nullptr;
  void (*ReleaseState)(OrtNodeComputeInfo*, void* state) = nullptr;
};

struct OrtEp {
  uint32_t version = kProviderVersion;
  const char* (*GetName)(const OrtEp*) = nullptr;
  OrtStatus* (*GetCapability)(OrtEp*, const OrtGraph*, OrtEpGraphSupportInfo*) = nullptr;
  OrtStatus* (*Compile)(OrtEp*, const OrtGraph** graphs, const OrtNode** fused_nodes, size_t count, OrtNodeComputeInfo**,
                        OrtNode** context_nodes) = nullptr;
  void (*ReleaseNodeComputeInfos)(OrtEp*, OrtNodeComputeInfo**, size_t count) = nullptr;
  Gap<2> data_layout = {};
  Gap<1> set_dynamic_options = {};
  Gap<2> on_run = {};
  Gap<1> create_allocator = {};
  Gap<1> create_sync_stream = {};
  Gap<1> get_compiled_model_compatibility = {};
};

struct OrtEpFactory {
  uint32_t version = kProviderVersion;
  const char* (*GetName)(const OrtEpFactory*) = nullptr;
  const char* (*GetVendor)(const OrtEpFactory*) = nullptr;
  OrtStatus* (*GetSupportedDevices)(OrtEpFactory*, const OrtHardwareDevice* const* devices, size_t count, OrtEpDevice** ep_devices,
                                    size_t most_ep_devices, size_t* ep_device_count) = nullptr;
  OrtStatus* (*CreateEp)(OrtEpFactory*, const OrtHardwareDevice* const* devices, const OrtKeyValuePairs* const* metadata, size_t count,
                         const OrtSessionOptions*, const OrtLogger*, OrtEp**) = nullptr;
  void (*ReleaseEp)(OrtEpFactory*, OrtEp*) = nullptr;
  uint32_t (*GetVendorId)(const OrtEpFactory*) = nullptr;
  const char* (*GetVersion)(const OrtEpFactory*) = nullptr;
  OrtStatus* (*ValidateCompiledModelCompatibilityInfo)(OrtEpFactory*, const OrtHardwareDevice* const* devices, size_t count,
                                                       const char* info, int* compatibility) = nullptr;
  OrtStatus* (*CreateAllocator)(OrtEpFactory*, const void* memory_info, const OrtKeyValuePairs*, void** allocator) = nullptr;
  void (*ReleaseAllocator)(OrtEpFactory*, void* allocator) = nullptr;
  OrtStatus* (*CreateDataTransfer)(OrtEpFactory*, void** data_transfer) = nullptr;
  bool (*IsStreamAware)(const OrtEpFactory*) = nullptr;
  OrtStatus* (*CreateSyncStreamForDevice)(OrtEpFactory*, const void* device, const OrtKeyValuePairs*, void** stream) = nullptr;
};

}  // namespace collage::provider
