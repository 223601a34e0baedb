// Prints docs/ops.md: generate_ops_doc > docs/ops.md

#include <iostream>

#include "collage/op/documentation.h"
#include "collage/op/table.h"

int main() {
  std::cout << collage::Documentation(collage::Operators());
  return std::cout.flush() ? 0 : 1;
}
