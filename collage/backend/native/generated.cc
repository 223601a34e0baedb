#include "collage/backend/native/generated.h"

#include "collage/backend/native/generator.h"
#include "collage/backend/native/native_kernel.h"
#include "collage/backend/native/supports.h"
#include "collage/backend/native/variants.h"
#include "collage/backend/tuning.h"
#include "collage/ir/op_sequence.h"
#include "collage/ir/structural.h"

namespace collage::native {
namespace {

/// Of what code is generated from: weights count by type alone and single numbers by value, as in prices (codegen/generate.h). One constant
/// that is read twice is one argument, two are two: numbers of values tell them apart.
Result<std::string> KeyOf(const Function& function, const OpSequence& sequence, const Device& device, const Variant& variant) {
  const Expr whole = COLLAGE_TRY(MakeFunction(function.parameters, function.body, function.attributes, function.result_type));
  std::string key = std::to_string(StructuralHash(whole, ForPricing())) + " " + std::to_string(device.threads) + " " + variant.name;
  for (const auto* layouts : {&variant.inputs, &variant.outputs}) {
    for (const Layout& layout : *layouts) key += " " + layout.ToString();
  }
  for (const OpSequence::Step& step : sequence.steps) {
    for (const size_t input : step.inputs) key += " " + std::to_string(input);
  }
  return key;
}

}  // namespace

Result<std::unique_ptr<Kernel>> CompileGenerated(const Function& function, const Device& device, const Variant& variant) {
  const OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
  if (const Verdict verdict = SupportsSequence(sequence); !verdict.accepted) return Fail("native: " + verdict.reason);
  if (!IsVariantOf(sequence, variant)) return Fail("native: variant " + variant.name + " is not one of this function");
  const std::string key = COLLAGE_TRY(KeyOf(function, sequence, device, variant));
  std::shared_ptr<const artifact::LinkedCode> code = Codes().Find(key);
  GeneratedCode generated = COLLAGE_TRY(GenerateWithHalide(
      {&sequence, device.threads, ScheduleOf(variant), TunedValues(variant.name), variant.inputs, variant.outputs, code != nullptr}));
  if (!code) code = COLLAGE_TRY(Codes().Add(key, std::move(generated.object)));
  KernelImage image{{}, {}, std::move(generated.constants), std::move(code)};
  for (size_t i = 0; i < variant.inputs.size(); ++i)
    image.inputs.push_back({sequence.values[sequence.parameters[i]].type, variant.inputs[i]});
  for (size_t i = 0; i < variant.outputs.size(); ++i)
    image.outputs.push_back({sequence.values[sequence.results[i]].type, variant.outputs[i]});
  return MakeKernel(std::move(image), device);
}

}  // namespace collage::native
