#include "collage/query/device_json.h"
#include "collage/query/queries.h"

namespace collage {

Result<Json> AnswerVirtualDevice(const JsonReader& query) {
  const JsonReader asked = COLLAGE_TRY(query.At("virtual-device"));
  COLLAGE_TRY_STATUS(asked.OnlyFields({"join", "default"}));
  if (asked.Has("join") == asked.Has("default")) return asked.Expected("either join or default, of two devices");
  const bool join = asked.Has("join");
  const JsonReader pair = COLLAGE_TRY(asked.At(join ? "join" : "default"));
  const std::vector<JsonReader> items = COLLAGE_TRY(pair.Items());
  if (items.size() != 2) return pair.Expected("two devices");
  const VirtualDevice a = COLLAGE_TRY(VirtualDeviceFrom(items[0]));
  const VirtualDevice b = COLLAGE_TRY(VirtualDeviceFrom(items[1]));
  if (!join) return Json{{"virtual_device", Default(a, b).ToString()}};
  const JoinedDevice joined = Join(a, b);
  if (joined.conflict) return Json{{"virtual_device", nullptr}, {"conflict", Name(*joined.conflict)}};
  return Json{{"virtual_device", joined.device.ToString()}};
}

}  // namespace collage
