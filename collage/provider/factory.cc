// What ONNX Runtime looks for in this library: CreateEpFactories and ReleaseEpFactory.

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "collage/provider/guarded.h"
#include "collage/provider/provider.h"

namespace collage::provider {
namespace {

/// ONNX Runtime passes options of a provider among those of the session, under its name in small letters.
std::string OptionPrefix() {
  std::string prefix = "ep." + std::string(kProviderName) + ".";
  std::transform(prefix.begin(), prefix.end(), prefix.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return prefix;
}

class Factory : public OrtEpFactory {
 public:
  explicit Factory(const Ort& ort) : ort_(ort) {
    GetName = [](const OrtEpFactory*) { return kProviderName; };
    GetVendor = [](const OrtEpFactory*) { return "Collage"; };
    GetVendorId = [](const OrtEpFactory*) { return uint32_t{0}; };
    GetVersion = [](const OrtEpFactory*) { return COLLAGE_VERSION; };
    GetSupportedDevices = [](OrtEpFactory* self, const OrtHardwareDevice* const* devices, size_t count, OrtEpDevice** ep_devices,
                             size_t most, size_t* ep_device_count) -> OrtStatus* {
      const auto* factory = static_cast<Factory*>(self);
      return Guarded(factory->ort_.api, kProviderFailed, [&] {
        return factory->TakeProcessors(self, {devices, count}, {ep_devices, most}, *ep_device_count);
      });
    };
    CreateEp = [](OrtEpFactory* self, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const*, size_t,
                  const OrtSessionOptions* options, const OrtLogger* logger, OrtEp** provider) -> OrtStatus* {
      const auto* factory = static_cast<Factory*>(self);
      return Guarded(factory->ort_.api, kInvalidArgument, [&] { return factory->Create(options, logger, *provider); });
    };
    ReleaseEp = [](OrtEpFactory*, OrtEp* provider) { delete static_cast<Provider*>(provider); };
    // Memory is the host's, work is done when a call returns, and there are no compiled models but files of Collage.
    ValidateCompiledModelCompatibilityInfo = [](OrtEpFactory*, const OrtHardwareDevice* const*, size_t, const char*,
                                                int* compatibility) -> OrtStatus* {
      *compatibility = 0;
      return nullptr;
    };
    CreateAllocator = [](OrtEpFactory*, const void*, const OrtKeyValuePairs*, void** allocator) -> OrtStatus* {
      *allocator = nullptr;
      return nullptr;
    };
    ReleaseAllocator = [](OrtEpFactory*, void*) {};
    CreateDataTransfer = [](OrtEpFactory*, void** data_transfer) -> OrtStatus* {
      *data_transfer = nullptr;
      return nullptr;
    };
    IsStreamAware = [](const OrtEpFactory*) { return false; };
    CreateSyncStreamForDevice = [](OrtEpFactory*, const void*, const OrtKeyValuePairs*, void** stream) -> OrtStatus* {
      *stream = nullptr;
      return nullptr;
    };
  }

 private:
  [[nodiscard]] Status TakeProcessors(OrtEpFactory* self, std::span<const OrtHardwareDevice* const> devices, std::span<OrtEpDevice*> taken,
                                      size_t& count) const {
    count = 0;
    for (const OrtHardwareDevice* device : devices) {
      if (count == taken.size() || ort_.api.HardwareDevice_Type(device) != kProcessor) continue;
      COLLAGE_TRY_STATUS(ort_.Check(ort_.ep.CreateEpDevice(self, device, nullptr, nullptr, &taken[count])));
      ++count;
    }
    return {};
  }

  [[nodiscard]] Status Create(const OrtSessionOptions* session_options, const OrtLogger* logger, OrtEp*& provider) const {
    OrtKeyValuePairs* entries = nullptr;
    COLLAGE_TRY_STATUS(ort_.Check(ort_.api.GetSessionOptionsConfigEntries(session_options, &entries)));
    const std::unique_ptr<OrtKeyValuePairs, void (*)(OrtKeyValuePairs*)> held(entries, ort_.api.ReleaseKeyValuePairs);
    const char* const* keys = nullptr;
    const char* const* values = nullptr;
    size_t count = 0;
    ort_.api.GetKeyValuePairs(entries, &keys, &values, &count);
    const std::string prefix = OptionPrefix();
    std::map<std::string, std::string> options;
    for (size_t i = 0; i < count; ++i) {
      const std::string key = keys[i];
      if (key == "ep.context_enable" && std::string(values[i]) == "1")
        return Fail("session option 'ep.context_enable' is 1, but there are no EPContext models; option 'cache' keeps what was compiled");
      if (key.starts_with(prefix)) options[key.substr(prefix.size())] = values[i];
    }
    provider = new Provider(ort_, logger, COLLAGE_TRY(ReadProviderOptions(options)));
    return {};
  }

  Ort ort_;
};

}  // namespace
}  // namespace collage::provider

using namespace collage::provider;

#define COLLAGE_EXPORTED extern "C" __attribute__((visibility("default")))

COLLAGE_EXPORTED OrtStatus* CreateEpFactories(const char* /*registered_name*/, const ApiBase* base, const OrtLogger* /*logger*/,
                                              OrtEpFactory** factories, size_t most, size_t* count) {
  const Api* api = base->GetApi(kApiVersion);
  if (!api) {
    const std::string message = std::string("Collage: this is ONNX Runtime ") + base->GetVersionString() + ", expected 1." +
                                std::to_string(kApiVersion) + " or later";
    return base->GetApi(1)->CreateStatus(kNotImplemented, message.c_str());
  }
  return Guarded(*api, kProviderFailed, [&]() -> collage::Status {
    if (most < 1) return collage::Fail("ONNX Runtime has no room for a provider");
    factories[0] = new Factory(Ort(*api, *api->GetEpApi()));
    *count = 1;
    return {};
  });
}

COLLAGE_EXPORTED OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  delete static_cast<Factory*>(factory);
  return nullptr;
}
