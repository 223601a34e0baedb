#include "collage/backend/dnnl/implementations.h"

#include <algorithm>
#include <map>
#include <set>

namespace collage::dnnl_backend {
namespace {

// Generations of generated code, newest last; plain GEMM-based code is of no generation, as it picks its own.
enum class Generation { kReference, kGemm, kSse41, kAvx, kAvx2, kAvx512 };

Generation GenerationOf(const std::string& implementation) {
  const auto has = [&](const char* part) { return implementation.find(part) != std::string::npos; };
  if (has("avx512")) return Generation::kAvx512;
  if (has("avx2")) return Generation::kAvx2;
  if (has("avx")) return Generation::kAvx;
  if (has("sse41")) return Generation::kSse41;
  if (has("gemm")) return Generation::kGemm;
  return has("ref") ? Generation::kReference : Generation::kGemm;
}

// GEMM-based code is what remains for layouts that generated code does not take (row-major convolution).
bool IsWorth(Generation own, Generation best, size_t better_in_layout) {
  return own == best || (own == Generation::kGemm && best > Generation::kGemm && better_in_layout == 0);
}

// oneDNN 2.6.3 writes beyond its memory there, found where 33 channels come out of 72. brgconv_1x1 does the same work on the same tiles.
bool WritesBeyondItsMemory(const std::string& implementation) { return implementation.starts_with("jit_1x1:avx512_core_amx"); }

}  // namespace

std::string ImplementationOf(const dnnl::primitive_desc_base& primitive) {
  const char* name = primitive.impl_info_str();
  return name ? name : "";
}

std::vector<Plan> WorthOffering(std::vector<Found> found, size_t most) {
  std::erase_if(found, [](const Found& one) { return WritesBeyondItsMemory(one.implementation); });
  Generation best = Generation::kReference;
  for (const Found& one : found) best = std::max(best, GenerationOf(one.implementation));
  std::vector<Plan> plans;
  std::set<std::string> seen;
  std::map<std::string, size_t> of_layouts;
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.rank < b.rank; });
  for (Found& one : found) {
    size_t& offered = of_layouts[one.plan.name.substr(0, one.plan.name.find('/')) + one.layouts];
    if (offered == most || !IsWorth(GenerationOf(one.implementation), best, offered) || !seen.insert(one.plan.name).second) continue;
    ++offered;
    plans.push_back(std::move(one.plan));
  }
  return plans;
}

}  // namespace collage::dnnl_backend
