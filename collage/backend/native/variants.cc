#include "collage/backend/native/variants.h"

namespace collage::native {

std::vector<Variant> ListVariants(const OpSequence& sequence, const Device& device) {
  (void)device;
  Variant plain{"default", std::vector<Layout>(sequence.parameters.size()), std::vector<Layout>(sequence.results.size())};
  return {plain};
}

std::string ScheduleOf(const Variant& variant) { return variant.name.substr(0, variant.name.find('/')); }

}  // namespace collage::native
