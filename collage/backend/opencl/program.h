#pragma once

#include <CL/cl.h>

#include <memory>
#include <string>
#include <vector>

#include "collage/backend/artifact_bytes.h"
#include "collage/backend/opencl_device/context.h"

namespace collage::opencl {

/// OpenCL C, and what a driver made of it: enough to make it again on any device, at once where the device and its driver are the same.
struct SavedProgram {
  std::string source;
  std::string made_by;  ///< OpenClContext::Identity of the device
  std::string code;     ///< the driver's own, empty where it gives none

  void Write(artifact::ArtifactWriter& writer) const;
  /// Code that has changed since it was written is left out, so that no driver sees it.
  static Result<SavedProgram> Read(artifact::ArtifactReader& reader);
};

/// A program in a context, with its kernels.
class BuiltProgram {
 public:
  /// Of these kernels. Errors quote the driver's compiler.
  static Result<std::unique_ptr<BuiltProgram>> Compile(std::shared_ptr<OpenClContext> context, std::string source,
                                                       const std::vector<std::string>& kernels);
  /// From the saved code where it was made by this driver for this device. From the source where it was not, or where the driver does not
  /// take it; the log says why.
  static Result<std::unique_ptr<BuiltProgram>> Load(std::shared_ptr<OpenClContext> context, SavedProgram saved,
                                                    const std::vector<std::string>& kernels);
  ~BuiltProgram();
  BuiltProgram(const BuiltProgram&) = delete;
  BuiltProgram& operator=(const BuiltProgram&) = delete;

  /// In the order of their names.
  [[nodiscard]] const std::vector<cl_kernel>& kernels() const { return kernels_; }
  [[nodiscard]] SavedProgram Saved() const;

 private:
  BuiltProgram(std::shared_ptr<OpenClContext> context, std::string source) : context_(std::move(context)), source_(std::move(source)) {}
  Status FromSource(const std::vector<std::string>& kernels);
  Status FromSource(const std::vector<std::string>& kernels, const char* options);
  Status FromCode(const std::string& code, const std::vector<std::string>& kernels);
  Status Build(const std::vector<std::string>& kernels, const char* options);
  void Release();
  [[nodiscard]] std::string BuildLog() const;

  std::shared_ptr<OpenClContext> context_;
  std::string source_;
  cl_program program_ = nullptr;
  std::vector<cl_kernel> kernels_;
};

}  // namespace collage::opencl
