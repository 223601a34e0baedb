#include "collage/tensor/extents.h"

namespace collage {

std::string ExtentsText(const Shape& shape) {
  if (shape.empty()) return "()";
  std::string text;
  for (const int64_t extent : shape) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

}  // namespace collage
