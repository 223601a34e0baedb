#pragma once

#include <map>
#include <optional>
#include <string>

#include "collage/device/configuration.h"
#include "collage/query/json_reader.h"

namespace collage {

/// Prices as data where kernels run on devices: {"per_operator": {backend: c, or {device: c}}, "factor"} and what copies cost,
/// {from: {to: price}}.
class DevicePrices {
 public:
  static Result<DevicePrices> Read(const JsonReader& prices, const std::optional<JsonReader>& copies,
                                   const DeviceConfiguration& configuration);

  /// Of n operators in one partition: c (1 + f + .. + f^(n-1)). Nothing for a backend that has no price on this device.
  [[nodiscard]] std::optional<double> OfPartition(const std::string& backend, const ListedDevice& device, size_t operators) const;
  /// Of a copy between two places. Nothing where a pair of devices has no price; within one device it need not have one.
  [[nodiscard]] std::optional<double> OfCopy(const VirtualDevice& from, const VirtualDevice& to) const;
  /// The largest of all that a copy may cost.
  [[nodiscard]] double DearestCopy() const;

 private:
  struct PerOperator {
    std::optional<double> everywhere;
    std::map<std::string, double> by_device;
  };
  std::map<std::string, PerOperator> per_operator_;
  std::map<std::pair<std::string, std::string>, double> copies_;
  double factor_ = 1;
};

}  // namespace collage
