#include "collage/op/table.h"

namespace collage {

const OpTable& Operators() {
  static const OpTable table;
  return table;
}

}  // namespace collage
