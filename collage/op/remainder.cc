#include "collage/op/remainder.h"

namespace collage {

std::string Remainder::Summary() const {
  return std::to_string(node_count()) + (node_count() == 1 ? " node" : " nodes") + ", since extents depend on data: " + parts_.reason;
}

}  // namespace collage
