#include "collage/backend/dnnl/plan_cache.h"

#include <mutex>
#include <sstream>
#include <unordered_map>

#include "collage/support/hash.h"

namespace collage::dnnl_backend {
namespace {

void DescribeValue(const OpSequence::Value& value, bool by_content, std::ostream& out) {
  out << ToString(value.type);
  if (!value.constant) return;
  out << " constant";
  const Tensor& constant = *value.constant;
  if (by_content) out << HashBytes({reinterpret_cast<const char*>(constant.Bytes()), constant.ByteCount()});
  // Scalars end up in the primitive itself.
  if (value.type.ElementCount() == 1) out << value.constant->ToDouble()[0];
}

std::string KeyOf(const OpSequence& sequence, int threads, DType stored) {
  std::ostringstream key;
  key.precision(17);
  key << threads << Name(stored);
  // The scales of integers are the primitive's own, and follow from the weights.
  const bool by_content = IsQuantised(sequence);
  for (const OpSequence::Value& value : sequence.values) DescribeValue(value, by_content, key << ';');
  for (const OpSequence::Step& step : sequence.steps) {
    key << '\n' << step.op->name;
    for (const auto& [name, value] : step.attributes.entries()) key << ',' << name << '=' << ToString(value);
    for (const size_t input : step.inputs) key << " <" << input;
    for (const size_t output : step.outputs) key << " >" << output;
  }
  for (const size_t parameter : sequence.parameters) key << " p" << parameter;
  for (const size_t result : sequence.results) key << " r" << result;
  return key.str();
}

}  // namespace

std::shared_ptr<const std::vector<Plan>> CachedPlans(const OpSequence& sequence, int threads, DType stored) {
  static std::mutex mutex;
  static std::unordered_map<std::string, std::shared_ptr<const std::vector<Plan>>> cache;
  std::string key = KeyOf(sequence, threads, stored);
  const std::lock_guard lock(mutex);
  std::shared_ptr<const std::vector<Plan>>& plans = cache[key];
  if (!plans) plans = std::make_shared<const std::vector<Plan>>(Plans(sequence, stored));
  return plans;
}

}  // namespace collage::dnnl_backend
