#include "collage/backend/c/compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

namespace collage::c_source {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr double kAmple = 60;

/// With a folder of its own for whatever programs leave behind, and the variables as they were in the end.
class CompilerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "c_compiler_test.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::filesystem::create_directory(folder_ / "temporary");
    ::setenv("TMPDIR", (folder_ / "temporary").c_str(), 1);
  }
  void TearDown() override {
    EXPECT_TRUE(std::filesystem::is_empty(folder_ / "temporary"));
    ::unsetenv("TMPDIR");
    ::unsetenv("COLLAGE_CC");
    std::filesystem::remove_all(folder_);
  }

  /// A program in the shell's language.
  [[nodiscard]] std::filesystem::path Script(const std::string& text) const {
    const std::filesystem::path path = folder_ / "script";
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    ::chmod(path.c_str(), 0700);
    return path;
  }
  static std::filesystem::path Cc() {
    const Result<std::filesystem::path> found = FindCompiler();
    if (!found) throw std::runtime_error(found.error().message);  // scripts/setup installs one
    return *found;
  }
  static std::string ErrorOf(const Result<std::string>& result) { return result ? "" : result.error().message; }

  std::filesystem::path folder_;
};

TEST_F(CompilerTest, GivesAnObject) {
  const Result<std::string> object = CompileSource(Cc(), "int twice(int x) { return 2 * x; }\n", kAmple);
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ(object->substr(0, 4), "\177ELF");
}

TEST_F(CompilerTest, AnErrorIsQuotedWithItsLine) {
  const std::string error = ErrorOf(CompileSource(Cc(), "int one(void) { return 1; }\nint two(void) { return 2 * x; }\n", kAmple));
  EXPECT_THAT(error, AllOf(HasSubstr(": exit code 1: "), HasSubstr("<stdin>:2:"), HasSubstr("error: "),
                           EndsWith(R"(in the line "int two(void) { return 2 * x; }")")));
}

TEST_F(CompilerTest, WhatTakesTooLongIsEndedWithAllThatItHasStarted) {
  const std::filesystem::path mark = folder_ / "ended";
  const std::filesystem::path script = Script("trap 'touch " + mark.string() + "; exit 1' TERM; sleep 1000 & wait");
  EXPECT_EQ(ErrorOf(CompileSource(script, "int x;\n", 1)), script.string() + " took longer than 1 s, and was ended");
  EXPECT_TRUE(std::filesystem::exists(mark));
}

TEST_F(CompilerTest, OneThatCrashesOrWritesNothingIsAnError) {
  EXPECT_THAT(ErrorOf(CompileSource(Script("kill -SEGV $$"), "int x;\n", kAmple)), HasSubstr("signal 11"));
  EXPECT_THAT(ErrorOf(CompileSource(Script("exit 0"), "int x;\n", kAmple)), EndsWith("has written nothing"));
  EXPECT_THAT(ErrorOf(CompileSource("/nowhere/cc", "int x;\n", kAmple)), HasSubstr("/nowhere/cc: cannot be started"));
}

TEST_F(CompilerTest, AnotherOneIsNamedByAVariable) {
  const std::filesystem::path script = Script("echo 'mine 1.0'; echo more");
  ::setenv("COLLAGE_CC", script.c_str(), 1);
  EXPECT_EQ(FindCompiler().value(), script);
  EXPECT_EQ(VersionOf(script).value(), "mine 1.0");
  ::setenv("COLLAGE_CC", "no_such_compiler", 1);
  EXPECT_THAT(FindCompiler().error().message, HasSubstr("no C compiler 'no_such_compiler' on PATH"));
  ::setenv("COLLAGE_CC", "/nowhere/cc", 1);
  EXPECT_THAT(FindCompiler().error().message, HasSubstr("/nowhere/cc, which COLLAGE_CC names"));
}

}  // namespace
}  // namespace collage::c_source
