#pragma once

#include <cstddef>

namespace collage {

/// Memory for small objects that are made one after another in great numbers and live about equally long: they lie side by side in
/// blocks, so that going through them goes through memory in order, and making one costs an addition. A block is given back when its
/// last object is. Any thread may free what another has made.
void* AllocateInBlock(size_t bytes);
void FreeInBlock(const void* object);

}  // namespace collage
