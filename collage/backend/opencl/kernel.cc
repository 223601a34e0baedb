#include "collage/backend/opencl/kernel.h"

#include <algorithm>

#include "collage/backend/element_code/source.h"

namespace collage::opencl {
namespace {

using element_code::GeneratedSource;
using element_code::Launch;

std::string KernelText(const std::string& name, const std::vector<std::string>& inputs, const std::string& body) {
  std::string parameters;
  for (const std::string& input : inputs) parameters += "__global const float* " + input + ", ";
  return "__kernel void " + name + "(" + parameters + "__global float* out) {\n  const int i = get_global_id(0);\n" + body + "}\n";
}

size_t Aligned(size_t bytes) {
  constexpr size_t kAlignment = 64;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

class OpenClKernel final : public Kernel {
 public:
  OpenClKernel(const OpSequence& sequence, GeneratedSource source, std::shared_ptr<OpenClContext> context)
      : source_(std::move(source)),
        device_(context),
        addresses_(sequence.values.size(), nullptr),
        parameters_(sequence.parameters),
        results_(sequence.results) {
    context_ = std::move(context);
    for (const size_t value : sequence.parameters) inputs_.push_back({sequence.values[value].type, Layout()});
    for (const size_t value : sequence.results) outputs_.push_back({sequence.values[value].type, Layout()});
    for (const size_t value : source_.intermediate) {
      offsets_.push_back(workspace_bytes_);
      workspace_bytes_ += Aligned(sequence.values[value].type.ByteCount());
    }
  }
  ~OpenClKernel() override {
    for (cl_kernel kernel : kernels_) clReleaseKernel(kernel);
    if (program_) clReleaseProgram(program_);
  }

  Status Build(const OpSequence& sequence) {
    const char* text = source_.text.c_str();
    const size_t length = source_.text.size();
    cl_int error = CL_SUCCESS;
    program_ = clCreateProgramWithSource(device_->context(), 1, &text, &length, &error);
    if (error != CL_SUCCESS) return FailOf("clCreateProgramWithSource", error);
    cl_device_id id = device_->id();
    error = clBuildProgram(program_, 1, &id, "", nullptr, nullptr);
    if (error != CL_SUCCESS) return Fail(FailOf("clBuildProgram", error).value().message + ": " + BuildLog());
    for (const Launch& launch : source_.launches) {
      kernels_.push_back(clCreateKernel(program_, launch.name.c_str(), &error));
      if (error != CL_SUCCESS) return FailOf("clCreateKernel", error);
    }
    for (const size_t value : source_.constants) {
      const Tensor& constant = *sequence.values[value].constant;
      constants_.push_back(COLLAGE_TRY(DeviceMemory::Allocate(context_, constant.ByteCount())));
      addresses_[value] = constants_.back().address();
      COLLAGE_TRY_STATUS(context_->CopyIn(addresses_[value], constant.Bytes(), constant.ByteCount()));
    }
    return context_->WaitForAll();
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    for (size_t i = 0; i < inputs.size(); ++i) addresses_[parameters_[i]] = const_cast<void*>(inputs[i]);
    for (size_t i = 0; i < outputs.size(); ++i) addresses_[results_[i]] = outputs[i];
    for (size_t i = 0; i < offsets_.size(); ++i) addresses_[source_.intermediate[i]] = static_cast<std::byte*>(workspace) + offsets_[i];
    for (size_t k = 0; k < kernels_.size(); ++k) COLLAGE_TRY_STATUS(Enqueue(source_.launches[k], kernels_[k]));
    return {};
  }

 private:
  Status Enqueue(const Launch& launch, cl_kernel kernel) {
    for (cl_uint i = 0; i < launch.values.size(); ++i) {
      const cl_int error = clSetKernelArgSVMPointer(kernel, i, addresses_[launch.values[i]]);
      if (error != CL_SUCCESS) return FailOf("clSetKernelArgSVMPointer", error);
    }
    const cl_int error = clEnqueueNDRangeKernel(device_->queue(), kernel, 1, nullptr, &launch.items, nullptr, 0, nullptr, nullptr);
    return error == CL_SUCCESS ? Status() : FailOf("clEnqueueNDRangeKernel", error);
  }

  [[nodiscard]] std::string BuildLog() const {
    size_t bytes = 0;
    clGetProgramBuildInfo(program_, device_->id(), CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
    std::string log(bytes, '\0');
    clGetProgramBuildInfo(program_, device_->id(), CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
    constexpr size_t kMost = 400;
    return log.substr(0, std::min(log.find('\0'), kMost));
  }

  GeneratedSource source_;
  std::shared_ptr<OpenClContext> device_;
  std::vector<void*> addresses_;  // by value
  std::vector<size_t> parameters_;
  std::vector<size_t> results_;
  std::vector<size_t> offsets_;  // in the workspace, of what lies between kernels
  std::vector<DeviceMemory> constants_;
  cl_program program_ = nullptr;
  std::vector<cl_kernel> kernels_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> CompileKernel(const OpSequence& sequence, std::shared_ptr<OpenClContext> context) {
  GeneratedSource source = COLLAGE_TRY(element_code::GenerateSource(sequence, KernelText));
  auto kernel = std::make_unique<OpenClKernel>(sequence, std::move(source), std::move(context));
  COLLAGE_TRY_STATUS(kernel->Build(sequence));
  return kernel;
}

}  // namespace collage::opencl
