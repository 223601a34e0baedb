#pragma once

#include "collage/backend/backend.h"

namespace collage {

/// The environment's name of the file by which processes meet. It must be absent or empty.
inline constexpr const char* kSharedFile = "COLLAGE_FAULT_SHARED_FILE";

/// The environment's name of what says, by being there, that the device is gone for every process that starts from then on.
inline constexpr const char* kDeviceIsGone = "COLLAGE_FAULT_DEVICE_IS_GONE";

/// Copies its input, or fails in the way that the variant names: "crash compiling", "crash running", "hang compiling", "hang running",
/// "leak", "throw compiling", "throw running", "exit", "slow compiling" (0.3 s, then right); "wrong" in the first element by 1, "slightly
/// wrong" (each element by 3e-4 of it), "wrong in one" (the last by 3e-4), "not a number" (the last), "unwritten" (the last); or "right".
/// "meet, then alone" is compiled once two processes compile it, and fails where it runs in two of them at a time. On its accelerator
/// "right" and "breaks its device" run, after which that does nothing for the process any more.
class FaultBackend : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "fault"; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override;
  [[nodiscard]] Result<std::shared_ptr<DeviceContext>> Open(const Device& device) const override;
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override;
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override;
};

}  // namespace collage
