#include "collage/backend/native/generated.h"

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

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

/// How the constants of generated code are made, by its key. There are few of them, and they hold no weights: what they say of one kernel
/// serves all layers that share its code, for which nothing is generated then.
class KnownConstants {
 public:
  using Makers = std::shared_ptr<const std::vector<MakeConstant>>;

  Makers Find(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto known = by_key_.find(key);
    return known == by_key_.end() ? nullptr : known->second;
  }

  Makers Add(const std::string& key, std::vector<MakeConstant> makers) {
    const std::lock_guard lock(mutex_);
    return by_key_.insert_or_assign(key, std::make_shared<const std::vector<MakeConstant>>(std::move(makers))).first->second;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Makers> by_key_;
};

KnownConstants& Constants() {
  static auto* constants = new KnownConstants;  // its functions are those of a shared object that may be gone at exit
  return *constants;
}

}  // namespace

Result<std::unique_ptr<Kernel>> CompileGenerated(const Function& function, const Device& device, const Variant& variant) {
  const OpSequence sequence = COLLAGE_TRY(ToOpSequence(function));
  if (const Verdict verdict = SupportsSequence(sequence); !verdict.accepted) return Fail("native: " + verdict.reason);
  if (!IsVariantOf(sequence, variant)) return Fail("native: variant " + variant.name + " is not one of this function");
  const std::string key = COLLAGE_TRY(KeyOf(function, sequence, device, variant));
  std::shared_ptr<const artifact::LinkedCode> code = Codes().Find(key);
  std::shared_ptr<const std::vector<MakeConstant>> constants = Constants().Find(key);
  if (!code || !constants) {
    GeneratedCode generated = COLLAGE_TRY(
        GenerateWithHalide({&sequence, device.threads, ScheduleOf(variant), TunedValues(variant.name), variant.inputs, variant.outputs}));
    code = COLLAGE_TRY(Codes().Add(key, std::move(generated.object)));
    constants = Constants().Add(key, std::move(generated.constants));
  }
  KernelImage image{{}, {}, {}, std::move(code)};
  for (const MakeConstant& make : *constants) image.constants.push_back(make(sequence));
  for (size_t i = 0; i < variant.inputs.size(); ++i)
    image.inputs.push_back({sequence.values[sequence.parameters[i]].type, variant.inputs[i]});
  for (size_t i = 0; i < variant.outputs.size(); ++i)
    image.outputs.push_back({sequence.values[sequence.results[i]].type, variant.outputs[i]});
  return MakeKernel(std::move(image), device);
}

}  // namespace collage::native
