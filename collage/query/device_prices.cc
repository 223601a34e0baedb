#include "collage/query/device_prices.h"

#include <algorithm>

namespace collage {
namespace {

Result<double> PriceFrom(const JsonReader& reader) {
  const double price = COLLAGE_TRY(reader.Number());
  if (price < 0) return reader.Expected("a number that is not negative");
  return price;
}

Result<std::string> ListedName(const std::string& name, const JsonReader& place, const DeviceConfiguration& configuration) {
  const auto& devices = configuration.devices();
  const bool listed = std::any_of(devices.begin(), devices.end(), [&](const auto& device) { return device.Place().ToString() == name; });
  if (!listed) return place.Wrong("\"" + name + "\" is none of the devices");
  return name;
}

std::string DeviceName(const VirtualDevice& place) {
  return VirtualDevice{place.device_type, place.virtual_device_id, std::nullopt, ""}.ToString();
}

}  // namespace

Result<DevicePrices> DevicePrices::Read(const JsonReader& prices, const std::optional<JsonReader>& copies,
                                        const DeviceConfiguration& configuration) {
  COLLAGE_TRY_STATUS(prices.OnlyFields({"per_operator", "factor"}));
  DevicePrices result;
  result.factor_ = COLLAGE_TRY(prices.NumberOr("factor", 1));
  if (result.factor_ < 0) return COLLAGE_TRY(prices.At("factor")).Expected("a number that is not negative");
  const JsonReader per_operator = COLLAGE_TRY(prices.At("per_operator"));
  for (const auto& [backend, price] : COLLAGE_TRY(per_operator.Fields())) {
    PerOperator& entry = result.per_operator_[backend];
    if (!price.IsObject()) {
      entry.everywhere = COLLAGE_TRY(PriceFrom(price));
      continue;
    }
    for (const auto& [device, value] : COLLAGE_TRY(price.Fields())) {
      entry.by_device[COLLAGE_TRY(ListedName(device, price, configuration))] = COLLAGE_TRY(PriceFrom(value));
    }
  }
  if (!copies) return result;
  for (const auto& [from, row] : COLLAGE_TRY(copies->Fields())) {
    COLLAGE_TRY(ListedName(from, *copies, configuration));
    for (const auto& [to, value] : COLLAGE_TRY(row.Fields())) {
      result.copies_[{from, COLLAGE_TRY(ListedName(to, row, configuration))}] = COLLAGE_TRY(PriceFrom(value));
    }
  }
  return result;
}

std::optional<double> DevicePrices::OfPartition(const std::string& backend, const ListedDevice& device, size_t operators) const {
  const auto entry = per_operator_.find(backend);
  if (entry == per_operator_.end()) return std::nullopt;
  std::optional<double> each = entry->second.everywhere;
  if (const auto at = entry->second.by_device.find(device.Place().ToString()); at != entry->second.by_device.end()) each = at->second;
  if (!each) return std::nullopt;
  double sum = 0;
  double share = 1;
  for (size_t i = 0; i < operators; ++i, share *= factor_) sum += share;
  return *each * sum;
}

std::optional<double> DevicePrices::OfCopy(const VirtualDevice& from, const VirtualDevice& to) const {
  const auto at = copies_.find({DeviceName(from), DeviceName(to)});
  if (at != copies_.end()) return at->second;
  return DeviceName(from) == DeviceName(to) ? std::optional<double>(0) : std::nullopt;
}

double DevicePrices::DearestCopy() const {
  double dearest = 0;
  for (const auto& [pair, price] : copies_) dearest = std::max(dearest, price);
  return dearest;
}

}  // namespace collage
