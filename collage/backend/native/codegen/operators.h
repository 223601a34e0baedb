#pragma once

#include <unordered_map>

#include "collage/backend/native/codegen/emitter.h"

namespace collage::native {

using EmitTable = std::unordered_map<std::string, EmitOperator>;

// The families add their operators.
void AddPointwise(EmitTable& table);
void AddMovement(EmitTable& table);
void AddReductions(EmitTable& table);
void AddNormalisation(EmitTable& table);
void AddPooling(EmitTable& table);
void AddCol2Im(EmitTable& table);
void AddConvolution(EmitTable& table);
void AddMatmul(EmitTable& table);

}  // namespace collage::native
