#include "collage/ir/op_def.h"

#include <array>

#include "collage/support/check.h"

namespace collage {

std::string_view Name(OpKind kind) {
  constexpr std::array<std::string_view, 7> kNames = {"elementwise", "broadcast", "injective", "comm-reduce", "out-elementwise-fusable",
                                                      "tuple",       "opaque"};
  return kNames[static_cast<size_t>(kind)];
}

void OpTable::Add(OpDef op) {
  records_.push_back(std::make_unique<const OpDef>(std::move(op)));
  const OpDef* record = records_.back().get();
  COLLAGE_CHECK(by_name_.emplace(record->name, record).second, "operator " + record->name + " is in the table twice");
}

const OpDef* OpTable::Find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : at->second;
}

}  // namespace collage
