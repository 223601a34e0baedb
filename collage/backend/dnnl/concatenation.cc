#include <algorithm>

#include "collage/backend/dnnl/implementations.h"
#include "collage/backend/dnnl/layouts.h"
#include "collage/backend/dnnl/plan.h"

namespace collage::dnnl_backend {
namespace {

using dnnl::memory;
using Descriptor = dnnl::concat::primitive_desc;

// A blocked tensor can be a part of another only where blocks begin.
bool Fits(const Chain& chain, size_t axis, const std::string& tag) {
  if (tag == kPlain) return true;
  if (chain.ShapeOf(chain.result).size() != 4) return false;
  const Layout layout = Layout::Of(tag);
  if (axis != 1 || layout.blocks().empty()) return true;
  const std::vector<size_t>& parts = chain.base->inputs;
  return std::all_of(parts.begin(), parts.end(), [&](size_t part) { return chain.ShapeOf(part)[1] % layout.blocks()[0].extent == 0; });
}

std::optional<Found> Concatenation(const Chain& chain, size_t axis, const std::string& tag) {
  const memory::dims dims = Dims(chain.ShapeOf(chain.result));
  std::vector<memory::desc> parts;
  for (const size_t part : chain.base->inputs) parts.push_back(Describe(Dims(chain.ShapeOf(part)), tag, chain.stored));
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const Descriptor primitive = OrEmpty<Descriptor>(
      [&] { return Descriptor(Describe(dims, tag, chain.stored), static_cast<int>(axis), parts, Engine(), attributes); });
  if (!primitive.get(/*allow_empty=*/true)) return std::nullopt;
  Plan plan{"concatenation/" + ImplementationOf(primitive) + "/" + tag, primitive, {}};
  for (size_t i = 0; i < parts.size(); ++i) {
    const memory::desc desc = primitive.src_desc(static_cast<int>(i));
    plan.arguments.push_back(
        {DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), chain.base->inputs[i], desc, PhysicalLayout(desc.dims(), tag, chain.stored)});
  }
  plan.arguments.push_back({DNNL_ARG_DST, chain.result, primitive.dst_desc(), PhysicalLayout(dims, tag, chain.stored)});
  return Found{std::move(plan), ImplementationOf(primitive), tag};
}

}  // namespace

std::vector<Plan> ConcatenationPlans(const Chain& chain) {
  const auto rank = static_cast<int64_t>(chain.ShapeOf(chain.result).size());
  int64_t axis = chain.base->attributes.Int("axis", 0).value_or(0);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || !chain.post_ops.empty()) return {};
  std::vector<Plan> plans;
  for (const std::string& tag : {BlockedTag(), std::string(kChannelsLast), std::string(kPlain)}) {
    if (!Fits(chain, static_cast<size_t>(axis), tag)) continue;
    // Nothing is computed here, so the library's loops over reorders ("ref") are as good as its single copy loop.
    if (std::optional<Found> found = Concatenation(chain, static_cast<size_t>(axis), tag)) plans.push_back(std::move(found->plan));
  }
  return plans;
}

}  // namespace collage::dnnl_backend
