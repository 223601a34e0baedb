#include "collage/backend/native/generated.h"

#include "collage/backend/native/generator.h"
#include "collage/backend/native/native_kernel.h"
#include "collage/backend/native/supports.h"
#include "collage/backend/native/variants.h"
#include "collage/backend/tuning.h"

namespace collage::native {

Result<std::unique_ptr<Kernel>> CompileGenerated(const OpSequence& sequence, const Device& device, const Variant& variant) {
  if (const Verdict verdict = SupportsSequence(sequence); !verdict.accepted) return Fail("native: " + verdict.reason);
  if (!IsVariantOf(sequence, variant)) return Fail("native: variant " + variant.name + " is not one of this function");
  GeneratedCode code = COLLAGE_TRY(
      GenerateWithHalide({&sequence, device.threads, ScheduleOf(variant), TunedValues(variant.name), variant.inputs, variant.outputs}));
  KernelImage image{{}, {}, std::move(code.constants), std::move(code.object)};
  for (size_t i = 0; i < variant.inputs.size(); ++i)
    image.inputs.push_back({sequence.values[sequence.parameters[i]].type, variant.inputs[i]});
  for (size_t i = 0; i < variant.outputs.size(); ++i)
    image.outputs.push_back({sequence.values[sequence.results[i]].type, variant.outputs[i]});
  return MakeKernel(std::move(image), device);
}

}  // namespace collage::native
