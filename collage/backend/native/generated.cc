#include "collage/backend/native/generated.h"

#include "collage/backend/native/generator.h"
#include "collage/backend/native/native_kernel.h"
#include "collage/backend/native/supports.h"
#include "collage/backend/native/variants.h"
#include "collage/backend/tuning.h"

namespace collage::native {
namespace {

std::string Joined(const std::vector<size_t>& numbers) {
  std::string text;
  for (const size_t number : numbers) text += std::to_string(number) + ",";
  return text + ";";
}

std::string Joined(const std::vector<Layout>& layouts) {
  std::string text;
  for (const Layout& layout : layouts) text += layout.ToString() + ",";
  return text + ";";
}

/// All that code is generated from (codegen/generate.h).
std::string TextOf(const OpSequence& sequence, const Device& device, const Variant& variant) {
  std::string text = variant.name + ";" + std::to_string(device.threads) + ";" + Joined(variant.inputs) + Joined(variant.outputs) +
                     Joined(sequence.parameters) + Joined(sequence.results);
  for (const OpSequence::Value& value : sequence.values) {
    text += ToString(value.type);
    if (value.constant) text += "=";
    if (value.constant && value.constant->ElementCount() == 1)
      text.append(reinterpret_cast<const char*>(value.constant->Bytes()), value.constant->ByteCount());
    text += ";";
  }
  for (const OpSequence::Step& step : sequence.steps) {
    text += step.op->name + "(" + Joined(step.inputs) + Joined(step.outputs);
    for (const Type& type : step.argument_types) text += ToString(type) + ",";
    text += ToString(step.result_type);
    for (const auto& [name, value] : step.attributes.entries()) text += "," + name + "=" + ToString(value);
    text += ";";
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<Kernel>> CompileGenerated(const OpSequence& sequence, const Device& device, const Variant& variant) {
  if (const Verdict verdict = SupportsSequence(sequence); !verdict.accepted) return Fail("native: " + verdict.reason);
  if (!IsVariantOf(sequence, variant)) return Fail("native: variant " + variant.name + " is not one of this function");
  const std::string text = TextOf(sequence, device, variant);
  std::shared_ptr<const artifact::LinkedCode> code = Codes().Find(text);
  GeneratedCode generated = COLLAGE_TRY(GenerateWithHalide(
      {&sequence, device.threads, ScheduleOf(variant), TunedValues(variant.name), variant.inputs, variant.outputs, code != nullptr}));
  if (!code) code = COLLAGE_TRY(Codes().Add(text, std::move(generated.object)));
  KernelImage image{{}, {}, std::move(generated.constants), std::move(code)};
  for (size_t i = 0; i < variant.inputs.size(); ++i)
    image.inputs.push_back({sequence.values[sequence.parameters[i]].type, variant.inputs[i]});
  for (size_t i = 0; i < variant.outputs.size(); ++i)
    image.outputs.push_back({sequence.values[sequence.results[i]].type, variant.outputs[i]});
  return MakeKernel(std::move(image), device);
}

}  // namespace collage::native
