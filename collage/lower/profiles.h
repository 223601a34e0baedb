#pragma once

#include <vector>

#include "collage/lower/lower.h"

namespace collage {

/// One program of several, each compiled by itself for other shapes of one model's inputs: their functions and blocks side by side, one
/// entry each. Its shape profiles are theirs, in order; one that has several of its own brings them all. What runs behind each is as it
/// was: whoever adds programs for rows of remainders does so behind joining (AddBlocks). Errors when names of inputs or of what the whole
/// gives differ, or two take the same types.
Result<LoweredModel> JoinProfiles(std::vector<LoweredModel> profiles);

/// A program with further blocks, behind those that it has, which nothing in it runs: whoever has it does (Executable::RunBlock).
Result<LoweredModel> AddBlocks(LoweredModel model, std::vector<LoweredModel> blocks);

}  // namespace collage
