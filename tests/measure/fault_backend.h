#pragma once

#include "collage/backend/backend.h"

namespace collage {

/// The environment's name of the file by which processes meet. It must be absent or empty.
inline constexpr const char* kSharedFile = "COLLAGE_FAULT_SHARED_FILE";

/// Copies its input, or fails in the way that the variant names: "crash compiling", "crash running", "hang compiling", "hang running",
/// "leak", "throw compiling", "throw running", "exit", "slow compiling" (0.3 s, then right); "wrong" in the first element by 1, "slightly
/// wrong" (each element by 3e-4 of it), "wrong in one" (the last by 3e-4), "not a number" (the last), "unwritten" (the last); or "right".
/// "meet, then alone" is compiled once two processes compile it, and fails where it runs in two of them at a time.
class FaultBackend : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return "fault"; }
  [[nodiscard]] Presence Probe(const Device&) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override;
  [[nodiscard]] std::vector<Variant> Variants(const Function& function, const Device& device) const override;
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& function, const Device& device,
                                                        const Variant& variant) const override;
};

}  // namespace collage
