#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collage/device/configuration.h"

namespace collage {

/// Tensors of a program, numbered, and what is known of where they are. What must agree is joined to classes by union-find, apart for
/// device (type and id), target and scope: a copy parts the places of two tensors, never their targets, and memory scopes differ
/// within one device.
class TensorClasses {
 public:
  static constexpr size_t kNobody = static_cast<size_t>(-1);

  size_t Add(bool is_scalar, bool is_operator_result);
  [[nodiscard]] size_t size() const { return devices_.size(); }

  /// One tensor in all fields. Only before anything is stated, so it cannot fail.
  void Unify(size_t a, size_t b);
  /// One device; targets and scopes stay apart.
  void UnifyDevices(size_t a, size_t b);
  /// Takes a statement in, or changes nothing and gives the earlier statement that contradicts it in the first field that differs.
  std::optional<size_t> State(size_t tensor, const VirtualDevice& device, size_t statement);
  /// Joins type and id together, then the scope, where possible.
  void Cross(size_t a, size_t b);
  /// Joins scopes of one device where one is open. Types and ids must be known.
  void JoinOpenScopes(size_t a, size_t b);
  void MarkReadByHost(size_t tensor) { devices_[DeviceOf(tensor)].read_by_host = true; }

  /// Fills types, ids and, on the default device, scopes that are open. A type that is not listed is left without an id.
  void ApplyDefaults(const DeviceConfiguration& configuration);

  /// A number that tensors of one device (type and id) share.
  [[nodiscard]] size_t DeviceClassOf(size_t tensor) const { return DeviceOf(tensor); }
  /// What is known of a tensor.
  [[nodiscard]] VirtualDevice Of(size_t tensor) const;
  /// Whether two tensors whose devices are known are in contradicting places.
  [[nodiscard]] bool Contradict(size_t a, size_t b) const;
  /// Who stated the id, else the type; kNobody where neither was stated.
  [[nodiscard]] size_t WhoStatedDevice(size_t tensor) const;
  [[nodiscard]] size_t WhoStatedTarget(size_t tensor) const { return targets_[TargetOf(tensor)].by; }

 private:
  struct Device {
    size_t parent;
    size_t members = 1;
    std::optional<DeviceKind> type = {};
    std::optional<int64_t> id = {};
    size_t type_by = kNobody;
    size_t id_by = kNobody;
    bool scalars_only;
    bool has_operator_result;
    bool read_by_host = false;
    bool took_host = false;
  };
  struct TargetClass {
    size_t parent;
    size_t members = 1;
    std::optional<Target> target = {};
    size_t by = kNobody;
  };
  struct Scope {
    size_t parent;
    size_t members = 1;
    std::string scope = {};
    size_t by = kNobody;
  };

  template <class Class>
  static size_t Root(std::vector<Class>& classes, size_t at) {
    while (classes[at].parent != at) at = classes[at].parent = classes[classes[at].parent].parent;
    return at;
  }
  template <class Class>
  static bool Link(std::vector<Class>& classes, size_t& kept, size_t& gone);
  bool LinkDevices(size_t a, size_t b);
  bool LinkScopes(size_t a, size_t b);
  [[nodiscard]] size_t DeviceOf(size_t tensor) const { return Root(devices_, tensor); }
  [[nodiscard]] size_t TargetOf(size_t tensor) const { return Root(targets_, tensor); }
  [[nodiscard]] size_t ScopeOf(size_t tensor) const { return Root(scopes_, tensor); }

  // Finding a root shortens the way to it, which nobody sees.
  mutable std::vector<Device> devices_;
  mutable std::vector<TargetClass> targets_;
  mutable std::vector<Scope> scopes_;
};

}  // namespace collage
