#pragma once

#include <string>

#include "collage/provider/options.h"
#include "collage/provider/ort.h"

namespace collage::provider {

/// As sessions list it.
inline constexpr char kProviderName[] = "CollageExecutionProvider";

/// The provider of one session: says which nodes it takes, and makes programs of them.
class Provider : public OrtEp {
 public:
  Provider(const Ort& ort, const OrtLogger* logger, ProviderOptions options);

 private:
  [[nodiscard]] Status TakeNodes(const OrtGraph* graph, OrtEpGraphSupportInfo* support) const;
  [[nodiscard]] Status MakePrograms(const OrtGraph** graphs, const OrtNode** fused_nodes, size_t count, OrtNodeComputeInfo** infos) const;
  [[nodiscard]] Result<OrtNodeComputeInfo*> MakeProgram(const OrtGraph* graph, const OrtNode* fused_node, double budget_share) const;

  const Ort& ort_;
  Log log_;
  ProviderOptions options_;
};

}  // namespace collage::provider
