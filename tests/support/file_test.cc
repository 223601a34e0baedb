#include "collage/support/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

namespace collage {
namespace {

class FileTest : public testing::Test {
 protected:
  FileTest() : folder_(testing::TempDir() + "/collage_file_test." + std::to_string(::getpid())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~FileTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::filesystem::path At(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] size_t FileCount() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(FileTest, WritesAndReplaces) {
  for (const std::string content : {"first", "", "second, and longer"}) {
    ASSERT_TRUE(WriteFileAtomically(At("a"), content));
    EXPECT_EQ(ReadFile(At("a")).value(), content);
  }
  EXPECT_EQ(FileCount(), 1);
}

TEST_F(FileTest, WithoutCommitNothingChanges) {
  ASSERT_TRUE(WriteFileAtomically(At("a"), "before"));
  {
    Result<AtomicFile> file = AtomicFile::Create(At("a"));
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->Append("after"));
  }
  EXPECT_EQ(ReadFile(At("a")).value(), "before");
  EXPECT_EQ(FileCount(), 1);
}

TEST_F(FileTest, FoldersAndMissingFoldersAreErrors) {
  EXPECT_FALSE(WriteFileAtomically(At(""), "x"));
  EXPECT_FALSE(WriteFileAtomically(At("none/a"), "x"));
  EXPECT_FALSE(ReadFile(At("")));
  EXPECT_FALSE(ReadFile(At("none")));
}

// The file that a link names is replaced, so that the link goes on naming it.
TEST_F(FileTest, LinksStay) {
  ASSERT_TRUE(WriteFileAtomically(At("a"), "before"));
  std::filesystem::create_symlink("a", At("link"));
  ASSERT_TRUE(WriteFileAtomically(At("link"), "after"));
  EXPECT_TRUE(std::filesystem::is_symlink(At("link")));
  EXPECT_EQ(ReadFile(At("a")).value(), "after");
}

// Root may rename a file over /dev/null, which the whole machine would miss.
TEST_F(FileTest, DevicesAreWrittenToAndStay) {
  ASSERT_EQ(::mkfifo(At("pipe").c_str(), 0600), 0);
  const int reader = ::open(At("pipe").c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(WriteFileAtomically(At("pipe"), "through"));
  EXPECT_TRUE(std::filesystem::is_fifo(At("pipe")));
  std::array<char, 16> text{};
  EXPECT_EQ(::read(reader, text.data(), text.size()), 7);
  EXPECT_EQ(std::string(text.data()), "through");
  ::close(reader);
  EXPECT_EQ(FileCount(), 1);
}

TEST_F(FileTest, AFullDiskIsAnError) {
  if (!std::filesystem::is_character_file("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  std::filesystem::create_symlink("/dev/full", At("full"));
  const Status status = WriteFileAtomically(At("full"), "x");
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("full: cannot be written"), std::string::npos) << status.error().message;
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

}  // namespace
}  // namespace collage
