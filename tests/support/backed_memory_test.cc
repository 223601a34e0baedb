#include "collage/support/backed_memory.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "collage/support/file.h"
#include "collage/support/mapped_file.h"
#include "collage/support/mappings.h"
#include "collage/support/memory.h"
#include "collage/support/sanitizers.h"

namespace collage {
namespace {

using ::testing::HasSubstr;

class BackedMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::current_path() / "backed.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(BackedMemoryTest, PagesAreGivenBackAndComeAgain) {
  constexpr size_t kBytes = (size_t{32} << 20) + 100;  // the last page is not whole
  std::shared_ptr<std::byte> block = AllocateBuffer(kBytes);
#if COLLAGE_ADDRESS_SANITIZER
  GTEST_SKIP() << "the sanitizer has all blocks";
#endif
  for (size_t i = 0; i < kBytes; ++i) block.get()[i] = static_cast<std::byte>(i * 7 % 251);
  const auto is_kept = [&] {
    for (size_t i = 0; i < kBytes; ++i) {
      if (block.get()[i] != static_cast<std::byte>(i * 7 % 251)) return false;
    }
    return true;
  };
  GiveBack(block.get(), kBytes);
  EXPECT_TRUE(is_kept()) << "no file holds it yet";
  {
    Result<BackedMemory> memory = BackedMemory::Create(folder_);
    ASSERT_TRUE(memory) << memory.error().message;
    const size_t before = PrivateMemory();
    ASSERT_TRUE(memory->Take(block.get(), kBytes));
    ASSERT_TRUE(memory->Take(block.get(), kBytes)) << "a second time it is left as it is";
    ASSERT_TRUE(memory->Finish());
    EXPECT_LT(PrivateMemory() + kBytes / 2, before);
    EXPECT_TRUE(is_kept());
    GiveBack(block.get(), kBytes);
    EXPECT_TRUE(is_kept());
    EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "it has no name";
  }
  EXPECT_TRUE(is_kept()) << "whoever has the block keeps what it holds";
}

TEST_F(BackedMemoryTest, SmallBlocksStayWhereTheyAre) {
  const std::shared_ptr<std::byte> block = AllocateBuffer(100000);
  Result<BackedMemory> memory = BackedMemory::Create(folder_);
  ASSERT_TRUE(memory) << memory.error().message;
  ASSERT_TRUE(memory->Take(block.get(), 100000));
  std::fill_n(block.get(), 100000, std::byte{3});
  GiveBack(block.get(), 100000);
  EXPECT_EQ(block.get()[50000], std::byte{3});
}

TEST_F(BackedMemoryTest, AFolderThatIsNotThereIsNamed) {
  const Result<BackedMemory> memory = BackedMemory::Create(folder_ / "none");
  ASSERT_FALSE(memory);
  EXPECT_THAT(memory.error().message, HasSubstr("none"));
}

/// Bytes of files and of what is shared that this process has in memory.
size_t FilePagesInMemory() {
  std::ifstream file("/proc/self/statm");
  size_t all = 0;
  size_t resident = 0;
  size_t shared = 0;
  file >> all >> resident >> shared;
  return shared * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(BackedMemoryTest, ReadingOnceTakesTheMemoryOfOnePiece) {
  const std::filesystem::path path = folder_ / "content";
  std::string content(size_t{64} << 20, '\0');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7 % 251);
  ASSERT_TRUE(WriteFileAtomically(path, content));
  Result<MappedFile> file = MappedFile::Open(path);
  ASSERT_TRUE(file) << file.error().message;
  const size_t before = FilePagesInMemory();
  size_t most = before;
  size_t at = 0;
  bool is_equal = true;
  ReadOnce(file->content(), [&](std::string_view piece) {
    is_equal &= content.compare(at, piece.size(), piece) == 0;
    at += piece.size();
    most = std::max(most, FilePagesInMemory());
  });
  EXPECT_TRUE(is_equal);
  EXPECT_EQ(at, content.size());
  EXPECT_LT(most - before, content.size() / 2);
}

}  // namespace
}  // namespace collage
