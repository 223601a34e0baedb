#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collage/provider/ort.h"
#include "collage/provider/programs.h"

namespace collage::provider {

/// A region that ONNX Runtime runs as one node: a program of Collage on the buffers that ONNX Runtime has.
class FusedNode : public OrtNodeComputeInfo {
 public:
  /// `inputs` and `outputs` name what ONNX Runtime passes, in its order. `has_profiles`: the shapes of inputs are known only when it runs.
  /// Errors when the program has other inputs or outputs.
  static Result<std::unique_ptr<FusedNode>> Create(const Ort& ort, Program program, bool has_profiles,
                                                   const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);

 private:
  /// An input or output of the program.
  struct Place {
    size_t in_context;                          ///< its index for ONNX Runtime
    std::vector<collage_tensor_info> profiles;  ///< what it is in each profile
  };

  FusedNode(const Ort& ort, Program program, bool has_profiles);
  [[nodiscard]] Status Run(OrtKernelContext* context);
  [[nodiscard]] Result<size_t> ProfileOf(const std::vector<const OrtValue*>& inputs) const;
  [[nodiscard]] Status RunWith(collage_session* session, OrtKernelContext* context) const;

  const Ort& ort_;
  Program program_;
  SessionPool sessions_;
  bool has_profiles_;
  std::vector<Place> inputs_;
  std::vector<Place> outputs_;
};

}  // namespace collage::provider
