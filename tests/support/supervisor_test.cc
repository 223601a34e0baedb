#include "collage/support/supervisor.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "collage/support/process.h"

namespace collage {
namespace {

SupervisedEnd RunProgram(const std::vector<std::string>& words, double most_seconds = 30) {
  const Activity activity = Activity::Create().value();
  std::vector<std::string> arguments = {"supervised_program"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  return Supervise(COLLAGE_SUPERVISED_PROGRAM, arguments, activity, most_seconds).value();
}

TEST(SupervisorTest, GivesTheExitCodeAndPassesArgumentsOn) {
  const SupervisedEnd end = RunProgram({"end"});
  EXPECT_EQ(WaitStatusToString(end.wait_status), "exit code 3");
  EXPECT_FALSE(end.Crashed());
  EXPECT_EQ(WaitStatusToString(RunProgram({"echo", "two words"}).wait_status), "exit code 0");
}

TEST(SupervisorTest, ItIsListedUnderItsFirstArgument) {
  const Activity activity = Activity::Create().value();
  const SupervisedEnd end = Supervise(COLLAGE_SUPERVISED_PROGRAM, {"some_name", "name"}, activity, 30).value();
  EXPECT_EQ(WaitStatusToString(end.wait_status), "exit code 0");
}

TEST(SupervisorTest, AProgramThatIsNotThereIsAnError) {
  const Activity activity = Activity::Create().value();
  const auto end = Supervise("/nowhere/program", {"program"}, activity, 1);
  ASSERT_FALSE(end);
  EXPECT_NE(end.error().message.find("/nowhere/program: cannot be started: No such file"), std::string::npos) << end.error().message;
}

TEST(SupervisorTest, ACrashTellsWhatWasBeingDone) {
  const SupervisedEnd end = RunProgram({"crash"});
  EXPECT_TRUE(end.Crashed());
  EXPECT_EQ(end.line, "the first thing");
  EXPECT_EQ(WaitStatusToString(end.wait_status), "signal 11, Segmentation fault");
}

TEST(SupervisorTest, ACrashOfNothingInParticularBlamesNobody) {
  const SupervisedEnd end = RunProgram({"crash idle"});
  EXPECT_TRUE(end.Crashed());
  EXPECT_EQ(end.line, "");
}

TEST(SupervisorTest, WhatHangsIsKilled) {
  const SupervisedEnd end = RunProgram({"hang"}, 0.5);
  EXPECT_TRUE(end.was_hanging);
  EXPECT_TRUE(end.Crashed());
  EXPECT_EQ(end.line, "what never ends");
}

TEST(SupervisorTest, WhatGoesOnOrDoesNothingOfNoteDoesNotHang) {
  const SupervisedEnd end = RunProgram({"slow"}, 1.0);
  EXPECT_FALSE(end.was_hanging);
  EXPECT_EQ(WaitStatusToString(end.wait_status), "exit code 0");
}

TEST(SupervisorTest, AnInterruptIsPassedOn) {
  const SupervisedEnd end = RunProgram({"stop"});
  EXPECT_EQ(end.requested, SIGINT);
  EXPECT_EQ(WaitStatusToString(end.wait_status), "exit code 4");
  EXPECT_FALSE(end.Crashed());
}

TEST(SupervisorTest, AnInterruptWaitsForWhoCannotBeToldYet) {
  EXPECT_EQ(WaitStatusToString(RunProgram({"stop early", "by itself"}).wait_status), "exit code 4");
  const Activity activity = Activity::Create().value();
  const std::atomic<bool> is_stop_requested = true;
  const SupervisedEnd end = Supervise(COLLAGE_SUPERVISED_PROGRAM, {"program", "stop early"}, activity, 30, &is_stop_requested).value();
  EXPECT_EQ(WaitStatusToString(end.wait_status), "exit code 4");
  EXPECT_EQ(end.requested, SIGINT);
}

TEST(SupervisorTest, NobodySupervisesWhoWasNotStartedByASupervisor) {
  EXPECT_FALSE(Activity::OfSupervisor());
  // The variable may be inherited; the parent is another.
  ::setenv("COLLAGE_SUPERVISOR", "3:1", 1);
  EXPECT_FALSE(Activity::OfSupervisor());
  ::setenv("COLLAGE_SUPERVISOR", "nonsense", 1);
  EXPECT_FALSE(Activity::OfSupervisor());
  ::unsetenv("COLLAGE_SUPERVISOR");
}

TEST(SupervisorTest, TheProcessDiesWithItsSupervisor) {
  // An open end of the pipe means that somebody lives: the supervisor, or what it runs.
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t supervisor = ::fork();
  if (supervisor == 0) {
    ::close(ends[0]);
    RunProgram({"orphan"});
    ::_exit(0);
  }
  ::close(ends[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(supervisor, &status, 0), supervisor);
  EXPECT_TRUE(WIFSIGNALED(status)) << "it was killed";
  ::alarm(30);  // a test that would wait for the orphan is one that fails
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);
  ::alarm(0);
  ::close(ends[0]);
}

TEST(ActivityTest, EqualLinesHaveOneNumberAndClearForgets) {
  Activity activity = Activity::Create().value();
  EXPECT_EQ(activity.CurrentLine(), "");
  EXPECT_EQ(activity.NumberOf("a"), 1u);
  EXPECT_EQ(activity.NumberOf("b c"), 2u);
  EXPECT_EQ(activity.NumberOf("a"), 1u);
  activity.now().store(uint64_t{77} << 32 | 2);
  EXPECT_EQ(activity.CurrentLine(), "b c");
  activity.now().store(3);
  EXPECT_EQ(activity.CurrentLine(), "") << "never said";
  activity.Clear();
  EXPECT_EQ(activity.now().load(), 0u);
  EXPECT_EQ(activity.NumberOf("d"), 1u);
  activity.now().store(1);
  EXPECT_EQ(activity.CurrentLine(), "d");
}

TEST(ActivityTest, WhereThereIsNoRoomLinesHaveNoNumber) {
  Activity activity = Activity::Create().value();
  const std::string large(size_t{40} << 20, 'x');
  EXPECT_EQ(activity.NumberOf(large), 1u);
  EXPECT_EQ(activity.NumberOf(large + "y"), 0u);
  EXPECT_EQ(activity.NumberOf("small"), 2u);
}

}  // namespace
}  // namespace collage
