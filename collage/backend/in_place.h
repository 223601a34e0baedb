#pragma once

namespace collage {

/// Who "runs" a partition that nothing has to run: a concatenate whose parts are computed where its result lies, a split or slice that is
/// read where its argument lies. It stands where the name of a backend stands ("Compiler"); "Variant" is the layout of all its tensors,
/// in which the parts lie one after another.
inline constexpr const char* kInPlace = "in_place";

}  // namespace collage
