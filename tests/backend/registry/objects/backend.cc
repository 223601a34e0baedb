// A backend of somebody else that runs nothing; what its entry says is given where it is compiled.

#include "collage/backend/entry.h"

#ifndef CONTRACT
#define CONTRACT collage::kBackendContract
#endif
#ifndef HEADERS
#define HEADERS collage::kContractHeaders
#endif
#ifndef NAME
#define NAME "another"
#endif

namespace collage {
namespace {

class IdleBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view Name() const override { return NAME; }
  [[nodiscard]] Presence Probe(const Device& /*device*/) const override { return Presence::Version("1"); }
  [[nodiscard]] BackendRules Rules() const override { return {}; }
  [[nodiscard]] std::vector<Variant> Variants(const Function& /*function*/, const Device& /*device*/) const override { return {}; }
  [[nodiscard]] Result<std::unique_ptr<Kernel>> Compile(const Function& /*function*/, const Device& /*device*/,
                                                        const Variant& /*variant*/) const override {
    return Fail("it runs nothing");
  }
};

}  // namespace
}  // namespace collage

extern "C" __attribute__((visibility("default"))) const collage::BackendEntry collage_backend_entry;
const collage::BackendEntry collage_backend_entry = {CONTRACT, HEADERS, []() -> const collage::Backend* {
                                                       static const collage::IdleBackend backend;
                                                       return &backend;
                                                     }};
