#include "collage/pricing/pricer.h"

#include <algorithm>

#include "collage/cost/statistics.h"
#include "collage/ir/visit.h"
#include "collage/runtime/layout_conversion.h"
#include "collage/support/hash.h"
#include "collage/support/log.h"
#include "collage/tensor/tensor.h"

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

/// Within the memory of a device, by itself.
class TranspositionKernel : public Kernel {
 public:
  TranspositionKernel(const TensorType& type, const Layout& from, const Layout& to, const Transposition& transposition,
                      std::shared_ptr<DeviceContext> context)
      : transposition_(transposition) {
    inputs_.push_back({type, from});
    outputs_.push_back({type, to});
    context_ = std::move(context);
  }
  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void*) override {
    return context_->Transpose(transposition_, outputs[0], inputs[0]);
  }

 private:
  Transposition transposition_;
};

/// As a plan brings a tensor from one device to another: out to the host and in, and converted where it is wanted, or where it is made, or
/// on the way.
class TransferKernel : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> Create(const TensorType& type, const TensorPlace& from, const TensorPlace& to, int threads) {
    std::unique_ptr<TransferKernel> kernel(new TransferKernel(type, from, to, threads));
    for (const TensorPlace* place : {&from, &to}) {
      if (place->context) kernel->on_devices_.push_back(COLLAGE_TRY(DeviceMemory::Allocate(place->context, kernel->most_bytes_)));
    }
    if (const auto& converts = kernel->there_ ? to.context : from.context; kernel->there_ || kernel->here_)
      kernel->on_devices_.push_back(COLLAGE_TRY(DeviceMemory::Allocate(converts, kernel->most_bytes_)));
    return kernel;
  }

  Status Run(std::span<const void* const> inputs, std::span<void* const> outputs, void*) override {
    const void* host = inputs[0];
    if (from_) {
      const void* out = on_devices_.front().address();
      if (here_) {
        COLLAGE_TRY_STATUS(from_->Transpose(*here_, on_devices_.back().address(), out));
        out = on_devices_.back().address();
      }
      COLLAGE_TRY_STATUS(from_->CopyOut(staged_.MutableBytes(), out, staged_.ByteCount()));
      COLLAGE_TRY_STATUS(from_->WaitForAll());
      host = staged_.Bytes();
    }
    if (!is_identity_) {
      conversion_.Run(host, outputs[0]);
      host = outputs[0];
    }
    if (!to_) return {};
    void* in = on_devices_[from_ ? 1 : 0].address();
    COLLAGE_TRY_STATUS(to_->CopyIn(in, host, PhysicalByteCount(outputs_[0].type, outputs_[0].layout)));
    if (there_) COLLAGE_TRY_STATUS(to_->Transpose(*there_, on_devices_.back().address(), in));
    return to_->WaitForAll();
  }

 private:
  TransferKernel(const TensorType& type, const TensorPlace& from, const TensorPlace& to, int threads)
      : conversion_(type, from.layout, to.layout, threads),
        there_(TranspositionOn(to.context.get(), type, from.layout, to.layout)),
        here_(there_ ? std::nullopt : TranspositionOn(from.context.get(), type, from.layout, to.layout)),
        is_identity_(there_ || here_ || conversion_.IsIdentity()),
        most_bytes_(std::max(PhysicalByteCount(type, from.layout), PhysicalByteCount(type, to.layout))),
        from_(from.context),
        to_(to.context),
        staged_(TensorType{{static_cast<int64_t>(PhysicalByteCount(type, from.layout))}, DType::kUInt8}) {
    inputs_.push_back({type, from.layout});
    outputs_.push_back({type, to.layout});
  }

  LayoutConversion conversion_;
  std::optional<Transposition> there_;  // where it is wanted
  std::optional<Transposition> here_;   // where it is made
  bool is_identity_;                    // on the way
  size_t most_bytes_;
  std::shared_ptr<DeviceContext> from_;
  std::shared_ptr<DeviceContext> to_;
  Tensor staged_;
  std::vector<DeviceMemory> on_devices_;
};

std::string NameOf(const TensorPlace& place, const Device& host) {
  return place.layout.ToString() + "@" + ToString(place.context ? place.context->device() : host);
}

MeasurementKey InContext(MeasurementKey key, uint64_t context) {
  key.fact = Fact::kKernelInProgram;
  key.context = context;
  return key;
}

/// "nn.conv2d + nn.relu", in the order in which they run; of long ones the beginning.
std::string OperatorsOf(const Function& function) {
  constexpr size_t kMostShown = 8;
  std::string names;
  size_t count = 0;
  PostOrder(function.body, [&](const Expr& expr) {
    const OpDef* op = CalledOp(expr);
    if (op && count++ < kMostShown) names += (names.empty() ? "" : " + ") + op->name;
  });
  if (count > kMostShown) names += " + ... (" + std::to_string(count) + " operators)";
  return names.empty() ? "a function without operators" : names;
}

std::string PriceOf(const KeyedKernel& kernel) {
  return "the price of " + OperatorsOf(*kernel.kernel.function->As<Function>()) + " by " + kernel.key.backend + ", variant '" +
         kernel.key.variant + "',";
}

}  // namespace

Error NotInCache(const std::string& what) {
  return Error{what + " is not in the cache, and only prices from the cache are allowed; compile once without --cache-only"};
}

tl::unexpected<Error> Pricer::Missed(const std::string& what) {
  has_missed_ = true;
  return Fail(NotInCache(what));
}

MeasurementKey Pricer::KeyOf(uint64_t function_hash, const std::string& backend, const std::string& backend_version,
                             const std::string& variant) const {
  // Prices taken with colder caches are prices of another kind.
  const std::string context = "/evicting " + std::to_string(options_.eviction_bytes >> 20) + " MiB";
  return {function_hash, backend, backend_version, variant, fingerprint_ + context, device_.threads};
}

MeasurementKey Pricer::KeyOf(Fact fact, uint64_t about, uint64_t context) const {
  MeasurementKey key = KeyOf(about, {}, {}, {});
  key.fact = fact;
  key.context = context;
  return key;
}

Result<std::optional<Measurement>> Pricer::Find(const MeasurementKey& key) {
  std::optional<Measurement> found = COLLAGE_TRY(cache_.Find(key));
  if (found) ++counts_.cached;
  if (found && !found->invalid_reason.empty()) ++counts_.rejected;
  return found;
}

Result<Measurement> Pricer::Measure(const MeasurementKey& key, const PricedKernel& kernel) {
  if (only_cached_) return Missed(PriceOf({key, kernel}));
  const Measurement measurement = COLLAGE_TRY(timer_->Measure(JobOf(kernel)));
  COLLAGE_TRY_STATUS(Keep({key, kernel}, measurement));
  return measurement;
}

Status Pricer::Keep(const KeyedKernel& kernel, const Measurement& measurement) {
  if (!measurement.invalid_reason.empty()) COLLAGE_TRY_STATUS(timer_->CheckDevice(kernel.kernel.backend, kernel.kernel.device));
  Count(kernel.key, measurement);
  return cache_.Store(kernel.key, measurement);
}

void Pricer::Count(const MeasurementKey& key, const Measurement& measurement) {
  ++counts_.measured;
  if (!measurement.invalid_reason.empty()) ++counts_.rejected;
  spdlog::debug(
      "{} {:016x} {}: {}", key.backend, key.function_hash, key.variant,
      measurement.invalid_reason.empty() ? std::to_string(Median(measurement.samples) * 1e6) + " us" : measurement.invalid_reason);
}

Result<size_t> Pricer::AtOnce() {
  if (only_cached_) return 1;
  return fleet_ ? std::max(timer_->AtOnce(), COLLAGE_TRY(fleet_->AtOnce())) : timer_->AtOnce();
}

Result<std::vector<std::optional<Measurement>>> Pricer::MeasureEach(std::span<const KeyedKernel> kernels,
                                                                    const std::function<bool()>& stop) {
  std::vector<std::optional<Measurement>> found(kernels.size());
  if (fleet_ && !only_cached_) {
    // What runs on other processors than the host's is for this machine to time.
    std::vector<Fleet::Wanted> wanted;
    std::vector<size_t> places;
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (!(kernels[i].kernel.device == device_)) continue;
      wanted.push_back({kernels[i].key, JobOf(kernels[i].kernel)});
      places.push_back(i);
    }
    std::vector<std::optional<Measurement>> answers = COLLAGE_TRY(fleet_->Measure(wanted, stop));
    for (size_t i = 0; i < answers.size(); ++i) found[places[i]] = std::move(answers[i]);
  }
  std::vector<size_t> left;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (!found[i]) {
      left.push_back(i);
      continue;
    }
    ++counts_.elsewhere;
    Count(kernels[i].key, *found[i]);
  }
  if (only_cached_ && !left.empty()) return Missed(PriceOf(kernels[left.front()]));
  std::vector<KernelJob> jobs;
  for (const size_t i : left) jobs.push_back(JobOf(kernels[i].kernel));
  for (size_t begin = 0; begin < left.size() && !(stop && stop());) {
    const std::span<const KernelJob> waiting = std::span(jobs).subspan(begin);
    for (Measurement& measured : COLLAGE_TRY(timer_->MeasureEach(waiting.first(timer_->Together(waiting))))) {
      const size_t i = left[begin++];
      COLLAGE_TRY_STATUS(Keep(kernels[i], measured));
      found[i] = std::move(measured);
    }
  }
  return found;
}

Result<Measurement> Pricer::MeasureAgain(const PricedKernel& kernel) { return timer_->Measure(JobOf(kernel)); }

Result<double> Pricer::Difference(const PricedKernel& kernel) { return timer_->Difference(JobOf(kernel)); }

MeasurementKey Pricer::KeyOfConversion(const TensorType& type, const TensorPlace& from, const TensorPlace& to) const {
  const uint64_t hash = HashBytes(ToString(type));
  if (!from.context && !to.context)
    return KeyOf(hash, "layout conversion", std::string(LayoutConversionVersion()), from.layout.ToString() + " -> " + to.layout.ToString());
  std::string version(LayoutConversionVersion());
  for (const TensorPlace* place : {&from, &to}) version += place->context ? " " + place->context->name() : "";
  return KeyOf(hash, "transfer", version, NameOf(from, device_) + " -> " + NameOf(to, device_));
}

Result<Measurement> Pricer::MeasureConversion(const TensorType& type, const TensorPlace& from, const TensorPlace& to) {
  const MeasurementKey key = KeyOfConversion(type, from, to);
  if (only_cached_) return Missed("the price of converting " + ToString(type) + " " + key.variant);
  ++counts_.measured;
  std::unique_ptr<Kernel> kernel;
  const auto within = from.context == to.context ? TranspositionOn(to.context.get(), type, from.layout, to.layout) : std::nullopt;
  if (within) {
    kernel = std::make_unique<TranspositionKernel>(type, from.layout, to.layout, *within, to.context);
  } else if (from.context || to.context) {
    kernel = COLLAGE_TRY(TransferKernel::Create(type, from, to, device_.threads));
  } else {
    kernel = std::make_unique<ConversionKernel>(type, from.layout, to.layout, device_.threads);
  }
  Tensor input(type);
  FillRandom(input, 1);
  MeasureOptions quick = options_;
  // There are many, and little hangs on each.
  quick.budget_seconds = options_.budget_seconds / 8;
  const Measurement measurement = MeasureKernel(*kernel, {&input, 1}, device_, quick);
  for (const TensorPlace* place : {&from, &to}) {
    if (!measurement.invalid_reason.empty() && place->context) COLLAGE_TRY_STATUS(place->context->Check());
  }
  COLLAGE_TRY_STATUS(cache_.Store(key, measurement));
  return measurement;
}

Result<std::optional<Measurement>> Pricer::FindInContext(const MeasurementKey& key, uint64_t context) {
  return cache_.Find(InContext(key, context));
}

Status Pricer::StoreInContext(const MeasurementKey& key, uint64_t context, const Measurement& measurement) {
  return cache_.Store(InContext(key, context), measurement);
}

Status Pricer::MarkInvalid(const KeyedKernel& kernel, const std::string& reason) {
  COLLAGE_TRY_STATUS(timer_->CheckDevice(kernel.kernel.backend, kernel.kernel.device));
  ++counts_.rejected;
  return cache_.Store(kernel.key, {{}, reason});
}

}  // namespace collage
