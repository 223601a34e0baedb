#include "collage/support/priority.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

namespace collage {
namespace {

std::string Session() {
  std::ifstream file("/proc/self/autogroup");
  std::string line;
  std::getline(file, line);
  return line;
}

TEST(RaisedPriorityTest, TheSessionStaysAsItIsUnlessAsked) {
  const std::string session = Session();
  const RaisedPriority priority(RaisedPriority::Reach::kProcess);
  if (priority.is_raised()) {
    EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), -20);
  }
  EXPECT_EQ(Session(), session);
}

TEST(RaisedPriorityTest, IsRaisedOnlyWhileItLives) {
  const int before = ::getpriority(PRIO_PROCESS, 0);
  const std::string session = Session();
  {
    const RaisedPriority priority(RaisedPriority::Reach::kSession);
    if (priority.is_raised()) {
      EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), -20);
      if (!session.empty()) {
        EXPECT_TRUE(Session().ends_with(" nice -20")) << Session();
      }
    } else {
      EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), before);
      EXPECT_EQ(Session(), session);
    }
  }
  EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), before);
  EXPECT_EQ(Session(), session);
}

/// A session of its own, whose leader only waits while a child raises the priority and is killed.
TEST(RaisedPriorityTest, AKilledProcessLeavesItsSessionAsItWas) {
  if (Session().empty()) GTEST_SKIP() << "processes are not grouped by session here";
  const pid_t leader = ::fork();
  if (leader == 0) {
    ::setsid();
    const std::string before = Session();
    int raised[2];
    if (::pipe(raised) != 0) ::_exit(2);
    const pid_t child = ::fork();
    if (child == 0) {
      const RaisedPriority priority(RaisedPriority::Reach::kSession);
      if (::write(raised[1], "x", 1) != 1) ::_exit(1);
      while (true) ::pause();
    }
    char byte = 0;
    if (::read(raised[0], &byte, 1) != 1) ::_exit(3);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (int tries = 0; tries < 1000 && Session() != before; ++tries) ::usleep(10000);
    ::_exit(Session() == before ? 0 : 4);
  }
  int status = 0;
  ::waitpid(leader, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace collage
