#include "collage/runtime/container.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "collage/support/file.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

class ContainerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "container_test.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = folder_ / "file";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void WriteExample() const {
    Result<ContainerWriter> writer = ContainerWriter::Create(path_);
    ASSERT_TRUE(writer) << writer.error().message;
    EXPECT_EQ(writer->Reserve(), 0u);
    EXPECT_EQ(writer->Add(Tensor::FromVector<float>({{3}, DType::kFloat32}, {1, 2, 3})), 1u);
    EXPECT_EQ(writer->Add(""), 2u);
    EXPECT_EQ(writer->Add(std::string(100, 'x')), 3u);
    EXPECT_EQ(writer->Add(Tensor::FromVector<float>({{1, 3}, DType::kFloat32}, {1, 2, 3})), 1u);
    EXPECT_EQ(writer->Reserve(), 4u);
    writer->Fill(0, "metadata");
    ASSERT_TRUE(writer->Commit());
  }

  [[nodiscard]] std::string ErrorFor(const std::string& content) const {
    std::ofstream(path_, std::ios::binary) << content;  // not synced: this runs hundreds of times
    const Result<Container> container = Container::Open(path_);
    return container ? "no error" : container.error().message;
  }

  std::filesystem::path folder_;
  std::filesystem::path path_;
};

TEST_F(ContainerTest, GivesBlobsBackAligned) {
  WriteExample();
  EXPECT_EQ(*Container::IsContainer(path_), true);
  const Result<Container> container = Container::Open(path_);
  ASSERT_TRUE(container) << container.error().message;
  ASSERT_EQ(container->size(), 5u);
  EXPECT_EQ(container->blob(0), "metadata");
  EXPECT_EQ(container->blob(1).size(), 12u);
  EXPECT_EQ(reinterpret_cast<const float*>(container->blob(1).data())[2], 3.0f);
  EXPECT_EQ(container->blob(2), "");
  EXPECT_EQ(container->blob(3), std::string(100, 'x'));
  EXPECT_EQ(container->blob(4), "");
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(reinterpret_cast<uintptr_t>(container->blob(i).data()) % 64, 0u);
}

TEST_F(ContainerTest, EveryTruncationAndEveryFlippedBitIsNoticed) {
  WriteExample();
  const std::string good = *ReadFile(path_);
  for (size_t size = 0; size < good.size(); ++size) EXPECT_NE(ErrorFor(good.substr(0, size)), "no error") << size;
  for (size_t at = 0; at < good.size(); ++at) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    EXPECT_NE(ErrorFor(damaged), "no error") << at;
  }
  EXPECT_THAT(ErrorFor(good + "x"), HasSubstr("damaged"));
  EXPECT_THAT(ErrorFor(good + good), HasSubstr("damaged"));
  EXPECT_EQ(ErrorFor(good), "no error");
}

TEST_F(ContainerTest, ErrorsSayWhatIsWrong) {
  WriteExample();
  const std::string good = *ReadFile(path_);
  EXPECT_THAT(ErrorFor(""), HasSubstr("is empty"));
  EXPECT_THAT(ErrorFor("\x08\x07onnx"), HasSubstr("is not a compiled model"));
  EXPECT_THAT(ErrorFor(good.substr(0, 20)), HasSubstr("is truncated"));
  EXPECT_THAT(ErrorFor(good.substr(0, good.size() - 1)), HasSubstr("is truncated"));
  std::string other_version = good;
  other_version[8] = 9;
  EXPECT_THAT(ErrorFor(other_version), HasSubstr("format version 9"));
  EXPECT_EQ(*Container::IsContainer(path_), true);
  EXPECT_THAT(Container::Open(folder_ / "none").error().message, HasSubstr("none: cannot be opened"));
  EXPECT_THAT(Container::Open(folder_).error().message, HasSubstr("not a regular file"));
  EXPECT_FALSE(Container::IsContainer(folder_ / "none"));
}

TEST_F(ContainerTest, AFailedWriteLeavesNothingBehind) {
  EXPECT_THAT(ContainerWriter::Create(folder_ / "no" / "file").error().message, HasSubstr("cannot be written"));
  std::filesystem::create_directory(folder_ / "taken");
  EXPECT_FALSE(ContainerWriter::Create(folder_ / "taken"));  // a folder cannot be replaced by a file
  ContainerWriter::Create(path_)->Add("x");                  // not committed
  Result<ContainerWriter> full = ContainerWriter::Create("/dev/full");
  ASSERT_TRUE(full) << full.error().message;
  full->Add("x");
  EXPECT_THAT(full->Commit().error().message, HasSubstr("/dev/full: cannot be written"));
  size_t entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) entries += entry.is_directory() ? 0 : 1;
  EXPECT_EQ(entries, 0u);
}

}  // namespace
}  // namespace collage
