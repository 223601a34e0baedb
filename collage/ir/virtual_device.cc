#include "collage/ir/virtual_device.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "collage/support/check.h"

namespace collage {
namespace {

bool IsLetterOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }
bool IsScopeCharacter(char c) { return IsLetterOrDigit(c) || c == '_' || c == '.' || c == '-'; }

/// What stands in front and satisfies `accept`; `text` goes on behind it.
template <class Accept>
std::string_view TakeWhile(std::string_view& text, Accept&& accept) {
  size_t length = 0;
  while (length < text.size() && accept(text[length])) ++length;
  const std::string_view taken = text.substr(0, length);
  text.remove_prefix(length);
  return taken;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Reads the devices of one value, in the form of its type.
class DevicesReader {
 public:
  explicit DevicesReader(std::string_view text) : all_(text), rest_(text) {}

  Result<std::vector<VirtualDevice>> Read(const Type& type) {
    COLLAGE_TRY_STATUS(ReadValue(type));
    SkipSpaces();
    if (!rest_.empty()) return Wrong("'" + std::string(rest_) + "' stands behind the devices");
    return std::move(devices_);
  }

 private:
  [[nodiscard]] tl::unexpected<Error> Wrong(const std::string& message) const {
    return Fail("virtual device '" + std::string(all_) + "': " + message);
  }

  void SkipSpaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }

  bool Accept(std::string_view word) {
    SkipSpaces();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  [[nodiscard]] bool AtFunction() const { return rest_.starts_with("fn(") || rest_.starts_with("fn "); }

  // Types are nested as deep as the reader of their text allows, which is little.
  Status ReadValue(const Type& type) {  // NOLINT(misc-no-recursion)
    SkipSpaces();
    if (AtFunction()) {
      const FunctionType* function = type.AsFunction();
      if (!function) return Wrong("found devices of a function, expected those of " + collage::ToString(type));
      rest_.remove_prefix(2);
      COLLAGE_TRY_STATUS(ReadList(function->parameters, type));
      if (!Accept("->")) return Wrong("expected '->' behind the parameters of a function");
      return ReadValue(*function->result);
    }
    if (!rest_.starts_with("(")) return ReadDevice(type);
    const TupleType* tuple = type.AsTuple();
    if (!tuple) return Wrong("found devices of a tuple, expected those of " + collage::ToString(type));
    return ReadList(tuple->fields, type);
  }

  Status ReadList(const std::vector<Type>& types, const Type& whole) {  // NOLINT(misc-no-recursion)
    if (!Accept("(")) return Wrong("expected '(' before the parameters of a function");
    for (size_t i = 0; i < types.size(); ++i) {
      if (i > 0 && !Accept(",")) return Wrong("found too few devices, expected those of " + collage::ToString(whole));
      COLLAGE_TRY_STATUS(ReadValue(types[i]));
    }
    if (types.size() == 1) Accept(",");
    if (!Accept(")")) return Wrong("found '" + std::string(rest_) + "', expected ')' behind the devices of " + collage::ToString(whole));
    return {};
  }

  Status ReadDevice(const Type& type) {
    const size_t length = DeviceLength();
    const Result<VirtualDevice> device = VirtualDevice::Parse(Trimmed(rest_.substr(0, length)));
    if (!device) return all_.size() == length ? Fail(device.error()) : Wrong(device.error().message);
    devices_.insert(devices_.end(), CountDeviceTensors(type), *device);
    rest_.remove_prefix(length);
    return {};
  }

  /// A comma inside of an attribute's value belongs to the value ("-libs=dnnl,openblas") unless a space follows.
  [[nodiscard]] size_t DeviceLength() const {
    bool in_attribute = false;
    size_t length = 0;
    for (; length < rest_.size(); ++length) {
      const char c = rest_[length];
      if (c == ')' || c == '(') break;
      if (c == ' ') in_attribute = length + 1 < rest_.size() && rest_[length + 1] == '-';
      if (c == ',' && (!in_attribute || length + 1 == rest_.size() || rest_[length + 1] == ' ')) break;
    }
    return length;
  }

  std::string_view all_;
  std::string_view rest_;
  std::vector<VirtualDevice> devices_;
};

bool AllEqual(std::span<const VirtualDevice> devices) {
  return std::adjacent_find(devices.begin(), devices.end(), [](const auto& a, const auto& b) { return !(a == b); }) == devices.end();
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the type
std::string ListToString(std::span<const VirtualDevice>& devices, const std::vector<Type>& types);

// NOLINTNEXTLINE(misc-no-recursion): as deep as the type
std::string TakeAsText(std::span<const VirtualDevice>& devices, const Type& type) {
  const std::span<const VirtualDevice> own = devices.subspan(0, CountDeviceTensors(type));
  if (!own.empty() && AllEqual(own)) {
    devices = devices.subspan(own.size());
    return own.front().ToString();
  }
  if (const TupleType* tuple = type.AsTuple()) return ListToString(devices, tuple->fields);
  const FunctionType* function = type.AsFunction();
  COLLAGE_CHECK(function != nullptr);
  const std::string parameters = ListToString(devices, function->parameters);
  return "fn " + parameters + " -> " + TakeAsText(devices, *function->result);
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the type
std::string ListToString(std::span<const VirtualDevice>& devices, const std::vector<Type>& types) {
  std::string text = "(";
  for (const Type& type : types) text += (text.size() > 1 ? ", " : "") + TakeAsText(devices, type);
  return text + ")";
}

}  // namespace

std::string_view Name(VirtualDeviceField field) {
  constexpr std::array<std::string_view, 4> kNames = {"device_type", "virtual_device_id", "target", "memory_scope"};
  return kNames[static_cast<size_t>(field)];
}

Result<VirtualDevice> VirtualDevice::Parse(std::string_view text) {
  const auto fail = [&](const std::string& what) {
    return Fail("virtual device '" + std::string(text) + "': " + what + ", expected TYPE:ID@SCOPE -attribute=value, parts of it, or ?");
  };
  VirtualDevice device;
  if (text == "?") return device;
  if (text.empty()) return fail("is empty");
  std::string_view rest = text;
  const std::string_view type = TakeWhile(rest, IsLetterOrDigit);
  if (!type.empty()) {
    device.device_type = DeviceKindFromName(type);
    if (!device.device_type) return fail("'" + std::string(type) + "' is no device type (cpu, cuda, opencl)");
  }
  if (rest.starts_with(":")) {
    rest.remove_prefix(1);
    const std::string_view id = TakeWhile(rest, [](char c) { return c >= '0' && c <= '9'; });
    int64_t value = 0;
    if (id.empty() || std::from_chars(id.data(), id.data() + id.size(), value).ec != std::errc())
      return fail("':' has no number behind it");
    device.virtual_device_id = value;
  }
  if (rest.starts_with("@")) {
    rest.remove_prefix(1);
    device.memory_scope = TakeWhile(rest, IsScopeCharacter);
    if (device.memory_scope.empty()) return fail("'@' has no memory scope behind it");
  }
  if (rest.empty()) return device;
  if (rest.front() != ' ') return fail("cannot read '" + std::string(rest) + "'");
  if (!device.device_type) return fail("attributes need the type of the device");
  Result<Target> target = Target::Parse(std::string(type) + std::string(rest));
  if (!target) return fail(target.error().message);
  if (target->attributes.empty()) return fail("a space without attributes behind it");
  device.target = *std::move(target);
  return device;
}

std::string VirtualDevice::ToString() const {
  std::string text;
  if (device_type) text += collage::Name(*device_type);
  if (virtual_device_id) text += ":" + std::to_string(*virtual_device_id);
  if (!memory_scope.empty()) text += "@" + memory_scope;
  if (target) {
    for (const auto& [name, value] : target->attributes) text += " -" + name + "=" + value;
  }
  return text.empty() ? "?" : text;
}

bool operator==(const VirtualDevice& a, const VirtualDevice& b) {
  return a.device_type == b.device_type && a.virtual_device_id == b.virtual_device_id && a.memory_scope == b.memory_scope &&
         a.target.has_value() == b.target.has_value() && (!a.target || SameTarget(*a.target, *b.target));
}

std::optional<Target> JoinTargets(const Target& a, const Target& b) {
  if (SameTarget(a, b) || Refines(a, b)) return a;
  if (Refines(b, a)) return b;
  return std::nullopt;
}

JoinedDevice Join(const VirtualDevice& a, const VirtualDevice& b) {
  const auto conflict = [](VirtualDeviceField field) { return JoinedDevice{{}, field}; };
  JoinedDevice joined{a, std::nullopt};
  if (!a.device_type) joined.device.device_type = b.device_type;
  if (b.device_type && joined.device.device_type != b.device_type) return conflict(VirtualDeviceField::kDeviceType);
  if (!a.virtual_device_id) joined.device.virtual_device_id = b.virtual_device_id;
  if (b.virtual_device_id && joined.device.virtual_device_id != b.virtual_device_id) return conflict(VirtualDeviceField::kVirtualDeviceId);
  if (!a.target) {
    joined.device.target = b.target;
  } else if (b.target) {
    joined.device.target = JoinTargets(*a.target, *b.target);
    if (!joined.device.target) return conflict(VirtualDeviceField::kTarget);
  }
  if (a.memory_scope.empty()) joined.device.memory_scope = b.memory_scope;
  if (!b.memory_scope.empty() && joined.device.memory_scope != b.memory_scope) return conflict(VirtualDeviceField::kMemoryScope);
  return joined;
}

VirtualDevice Default(const VirtualDevice& a, const VirtualDevice& b) {
  VirtualDevice filled = a;
  if (!filled.device_type) filled.device_type = b.device_type;
  if (b.device_type && filled.device_type != b.device_type) return filled;
  if (!filled.virtual_device_id) filled.virtual_device_id = b.virtual_device_id;
  if (b.virtual_device_id && filled.virtual_device_id != b.virtual_device_id) return filled;
  if (!filled.target) filled.target = b.target;
  if (filled.memory_scope.empty()) filled.memory_scope = b.memory_scope;
  return filled;
}

size_t CountDeviceTensors(const Type& type) {
  size_t count = 0;
  std::vector<const Type*> pending = {&type};
  while (!pending.empty()) {
    const Type* next = pending.back();
    pending.pop_back();
    if (next->AsTensor()) ++count;
    if (const TupleType* tuple = next->AsTuple()) {
      for (const Type& field : tuple->fields) pending.push_back(&field);
    } else if (const FunctionType* function = next->AsFunction()) {
      for (const Type& parameter : function->parameters) pending.push_back(&parameter);
      pending.push_back(function->result.get());
    }
  }
  return count;
}

Result<std::vector<VirtualDevice>> ParseDevices(std::string_view text, const Type& type) { return DevicesReader(text).Read(type); }

std::string ToString(std::span<const VirtualDevice> devices, const Type& type) { return TakeAsText(devices, type); }

}  // namespace collage
