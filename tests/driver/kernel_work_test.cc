#include "collage/driver/kernel_work.h"

#include <gtest/gtest.h>

#include "tests/support/text.h"

namespace collage {
namespace {
}
}
