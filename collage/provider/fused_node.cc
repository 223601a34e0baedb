#include "collage/provider/fused_node.h"

#include <algorithm>
#include <functional>

#include "collage/provider/guarded.h"

namespace collage::provider {
namespace {

std::string ToText(const int64_t* extents, size_t rank) {
  std::string text;
  for (size_t i = 0; i < rank; ++i) text += (i ? "x" : "") + std::to_string(extents[i]);
  return text;
}

using InfoOf = collage_tensor_info (*)(const collage_program*, size_t profile, size_t index) noexcept;

}  // namespace

Result<std::unique_ptr<FusedNode>> FusedNode::Create(const Ort& ort, Program program, bool has_profiles,
                                                     const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  std::unique_ptr<FusedNode> node(new FusedNode(ort, std::move(program), has_profiles));
  const collage_program* of = node->program_.get();
  const size_t profiles = collage_program_profile_count(of);
  const auto places = [&](size_t count, InfoOf info, const std::vector<std::string>& given) -> Result<std::vector<Place>> {
    std::vector<Place> found;
    for (size_t i = 0; i < count; ++i) {
      Place place{0, {}};
      for (size_t profile = 0; profile < profiles; ++profile) place.profiles.push_back(info(of, profile, i));
      const std::string name = place.profiles[0].name;
      place.in_context = std::find(given.begin(), given.end(), name) - given.begin();
      if (place.in_context == given.size()) return Fail("the program has '" + name + "', which ONNX Runtime does not pass");
      found.push_back(std::move(place));
    }
    if (found.size() < given.size() && &given == &outputs) return Fail("the program lacks an output that ONNX Runtime wants");
    return found;
  };
  node->inputs_ = COLLAGE_TRY(places(collage_program_input_count(of), collage_program_input, inputs));
  node->outputs_ = COLLAGE_TRY(places(collage_program_output_count(of), collage_program_output, outputs));
  // What cannot be made is an error now, not in the first run.
  node->sessions_.GiveBack(COLLAGE_TRY(node->sessions_.Take()));
  return node;
}

FusedNode::FusedNode(const Ort& ort, Program program, bool has_profiles)
    : ort_(ort), program_(std::move(program)), sessions_(program_.get()), has_profiles_(has_profiles) {
  CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*, void** state) -> OrtStatus* {
    *state = self;  // runs keep nothing between them but what the pool has
    return nullptr;
  };
  Compute = [](OrtNodeComputeInfo* self, void*, OrtKernelContext* context) -> OrtStatus* {
    auto* node = static_cast<FusedNode*>(self);
    // Not as a provider's failure: ONNX Runtime's Python would answer that with another provider, and nobody would see it.
    return Guarded(node->ort_.api, kFail, [&] { return node->Run(context); });
  };
  ReleaseState = [](OrtNodeComputeInfo*, void*) {};
}

Status FusedNode::Run(OrtKernelContext* context) {
  collage_session* session = COLLAGE_TRY(sessions_.Take());
  const Status status = RunWith(session, context);
  sessions_.GiveBack(session);
  return status;
}

Result<size_t> FusedNode::ProfileOf(const std::vector<const OrtValue*>& inputs) const {
  const size_t count = collage_program_profile_count(program_.get());
  std::vector<bool> fits(count, true);
  std::string given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    OrtTensorTypeAndShapeInfo* type = nullptr;
    COLLAGE_TRY_STATUS(ort_.Check(ort_.api.GetTensorTypeAndShape(inputs[i], &type)));
    const auto extents =
        ort_.List<int64_t>(ort_.api.GetDimensionsCount, ort_.api.GetDimensions, static_cast<const OrtTensorTypeAndShapeInfo*>(type));
    ort_.api.ReleaseTensorTypeAndShapeInfo(type);
    if (!extents) return Fail(extents.error());
    for (size_t profile = 0; profile < count; ++profile) {
      const collage_tensor_info& info = inputs_[i].profiles[profile];
      if (!std::equal(extents->begin(), extents->end(), info.shape, info.shape + info.rank)) fits[profile] = false;
    }
    given += (given.empty() ? "" : ", ") + std::string(inputs_[i].profiles[0].name) + "=" + ToText(extents->data(), extents->size());
  }
  const auto found = std::find(fits.begin(), fits.end(), true);
  if (found == fits.end()) return Fail("the inputs are " + given + ", and option 'shapes' has no such profile");
  return found - fits.begin();
}

Status FusedNode::RunWith(collage_session* session, OrtKernelContext* context) const {
  std::vector<const OrtValue*> values;
  std::vector<collage_input> inputs;
  for (const Place& place : inputs_) {
    const OrtValue* value = nullptr;
    COLLAGE_TRY_STATUS(ort_.Check(ort_.api.KernelContext_GetInput(context, place.in_context, &value)));
    const void* data = COLLAGE_TRY(ort_.Get<const void*>(ort_.api.GetTensorData, value));
    inputs.push_back({data, COLLAGE_TRY(ort_.Get<size_t>(ort_.api.GetTensorSizeInBytes, value))});
    values.push_back(value);
  }
  const size_t profile = has_profiles_ ? COLLAGE_TRY(ProfileOf(values)) : 0;
  if (collage_error* error = collage_session_select_profile(session, profile)) return Fail(ErrorOf(error));
  std::vector<collage_output> outputs;
  for (const Place& place : outputs_) {
    const collage_tensor_info& info = place.profiles[profile];
    OrtValue* value = nullptr;
    COLLAGE_TRY_STATUS(ort_.Check(ort_.api.KernelContext_GetOutput(context, place.in_context, info.shape, info.rank, &value)));
    void* data = nullptr;
    COLLAGE_TRY_STATUS(ort_.Check(ort_.api.GetTensorMutableData(value, &data)));
    outputs.push_back({data, info.bytes});
  }
  if (collage_error* error = collage_session_run(session, inputs.data(), inputs.size(), outputs.data(), outputs.size()))
    return Fail(ErrorOf(error));
  return {};
}

}  // namespace collage::provider
