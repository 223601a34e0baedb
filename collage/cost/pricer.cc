#include "collage/cost/pricer.h"

#include "collage/runtime/layout_conversion.h"
#include "collage/support/hash.h"
#include "collage/support/log.h"

namespace collage {
namespace {

// Conversions are priced as kernels, so that one protocol serves both.
class ConversionKernel : public Kernel {
 public:
  ConversionKernel(const TensorType& type, const Layout& from, const Layout& to, int threads) : conversion_(type, from, to, threads) {
    inputs_.push_back({type, from});
    outputs_.push_back({type, to});
  }
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void*) override {
    conversion_.Run(inputs[0], outputs[0]);
    return {};
  }

 private:
  LayoutConversion conversion_;
};

}  // namespace

Result<Measurement> Pricer::MeasureVariant(const MeasurementKey& key, const Function& function, const Backend& backend,
                                           const Variant& variant) {
  if (std::optional<Measurement> cached = COLLAGE_TRY(cache_.Find(key))) {
    ++counts_.cached;
    return std::move(*cached);
  }
  ++counts_.measured;
  Result<std::unique_ptr<Kernel>> kernel = backend.Compile(function, device_, variant);
  Measurement measurement = kernel ? MeasureKernel(**kernel, device_, options_) : Measurement{{}, kernel.error().message};
  COLLAGE_TRY_STATUS(cache_.Store(key, measurement));
  return measurement;
}

Result<std::vector<PricedVariant>> Pricer::Price(uint64_t hash, const Function& function, const Backend& backend,
                                                 const std::string& backend_version) {
  const std::string id = std::string(backend.Name()) + ":" + std::to_string(hash);
  if (const auto at = priced_.find(id); at != priced_.end()) return at->second;
  ++counts_.distinct;
  std::vector<PricedVariant> priced;
  for (Variant& variant : backend.Variants(function, device_)) {
    MeasurementKey key{hash, std::string(backend.Name()), backend_version, variant.name, fingerprint_, device_.threads};
    const Measurement measurement = COLLAGE_TRY(MeasureVariant(key, function, backend, variant));
    const Cost cost = measurement.ToCost(options_.percentile);
    if (cost.IsInvalid()) ++counts_.rejected;
    spdlog::debug("{} {:016x} {}: {}", backend.Name(), hash, variant.name,
                  cost.IsInvalid() ? measurement.invalid_reason : std::to_string(cost.ToMicroseconds()) + " us");
    priced.push_back({std::move(variant), cost, measurement.invalid_reason, std::move(key)});
  }
  return priced_.emplace(id, std::move(priced)).first->second;
}

Result<Cost> Pricer::PriceConversion(const TensorType& type, const Layout& from, const Layout& to) {
  if (from == to) return Cost();
  const std::string name = from.ToString() + "->" + to.ToString();
  const std::string id = ToString(type) + name;
  if (const auto at = conversions_.find(id); at != conversions_.end()) return at->second;
  const MeasurementKey key{HashBytes(ToString(type)), "layout conversion", "1", name, fingerprint_, device_.threads};
  std::optional<Measurement> measurement = COLLAGE_TRY(cache_.Find(key));
  if (!measurement) {
    ConversionKernel kernel(type, from, to, device_.threads);
    MeasureOptions quick = options_;
    quick.budget_seconds = options_.budget_seconds / 8;
    measurement = MeasureKernel(kernel, device_, quick);
    COLLAGE_TRY_STATUS(cache_.Store(key, *measurement));
  }
  return conversions_.emplace(id, measurement->ToCost(options_.percentile)).first->second;
}

Status Pricer::MarkInvalid(const MeasurementKey& key, const std::string& reason) {
  ++counts_.rejected;
  for (auto& [id, variants] : priced_) {
    for (PricedVariant& variant : variants) {
      if (variant.key == key) {
        variant.cost = Cost::Invalid();
        variant.invalid_reason = reason;
      }
    }
  }
  return cache_.Store(key, {{}, reason});
}

}  // namespace collage
