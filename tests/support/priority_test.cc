#include "collage/support/priority.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace collage {
namespace {

TEST(RaisedPriorityTest, IsRaisedOnlyWhileItLives) {
  const int before = ::getpriority(PRIO_PROCESS, 0);
  {
    const RaisedPriority priority;
    if (priority.is_raised()) {
      EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), -20);
    } else {
      EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), before);
    }
  }
  EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), before);
}

}  // namespace
}  // namespace collage
