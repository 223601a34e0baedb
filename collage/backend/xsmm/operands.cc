#include "collage/backend/xsmm/operands.h"

#include <algorithm>
#include <cstring>

#include "collage/runtime/layout_conversion.h"
#include "collage/support/memory.h"

namespace collage::xsmm {

Source Operands::Of(const Chain& chain, size_t value, const Layout& layout) {
  const OpSequence::Value& tensor = chain.sequence->values[value];
  if (!tensor.constant) {
    const std::vector<size_t>& parameters = chain.sequence->parameters;
    return {nullptr, static_cast<size_t>(std::find(parameters.begin(), parameters.end(), value) - parameters.begin())};
  }
  storage_.push_back(AllocateWeights(PhysicalByteCount(tensor.type, layout)));
  if (layout.IsPlain()) {
    std::memcpy(storage_.back().get(), tensor.constant->Bytes(), tensor.constant->ByteCount());
  } else {
    LayoutConversion(tensor.type, Layout(), layout, 1).Run(tensor.constant->Bytes(), storage_.back().get());
  }
  return {reinterpret_cast<const float*>(storage_.back().get())};
}

float* Operands::Allocate(int64_t elements) {
  storage_.push_back(AllocateWeights(static_cast<size_t>(elements) * sizeof(float)));
  return reinterpret_cast<float*>(storage_.back().get());
}

}  // namespace collage::xsmm
