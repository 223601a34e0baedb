#include "collage/runtime/layout_conversion.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "collage/tensor/float16.h"
#include "collage/tensor/tensor.h"
#include "tests/runtime/layout_oracle.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

std::vector<std::byte> RandomBytes(size_t count, std::mt19937& random) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

void CheckConversion(const TensorType& type, const std::string& from_tag, const std::string& to_tag, int threads, std::mt19937& random) {
  SCOPED_TRACE(ToString(type) + " " + from_tag + " -> " + to_tag);
  const Layout from = Layout::Of(from_tag);
  const Layout to = Layout::Of(to_tag);
  const size_t element = ByteSize(type.dtype);
  // Garbage in the source's padding must not come through.
  const std::vector<std::byte> source = RandomBytes(PhysicalByteCount(type, from), random);
  std::vector<std::byte> expected(PhysicalByteCount(type, to), std::byte{0});
  ForEachIndex(type.shape, [&](const std::vector<int64_t>& index) {
    std::memcpy(&expected[PhysicalOffset(type, to, index) * element], &source[PhysicalOffset(type, from, index) * element], element);
  });
  constexpr size_t kGuard = 64;
  std::vector<std::byte> target = RandomBytes(expected.size() + kGuard, random);
  const std::vector<std::byte> before = target;
  LayoutConversion(type, from, to, threads).Run(source.data(), target.data());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), target.begin()));
  EXPECT_TRUE(std::equal(before.end() - kGuard, before.end(), target.end() - kGuard)) << "wrote past the end";
}

TEST(LayoutConversionTest, RandomShapesAndLayoutsOfFourDimensions) {
  std::mt19937 random(7);
  const std::vector<std::string> tags = {"plain",      "acdb", "aBcd8b",   "aBcd16b",     "aBcd4b",  "bacd",      "Abcd16a",
                                         "ABcd16b16a", "cdba", "ABcd8b8a", "ABcd4b16a4b", "aBcd12b", "ABcd16a4b", "aBcD8b4d"};
  const std::vector<DType> dtypes = {DType::kFloat32, DType::kFloat32, DType::kInt8, DType::kFloat16, DType::kInt64};
  for (size_t round = 0; round < Rounds(600); ++round) {
    const auto extent = [&](int most) { return static_cast<int64_t>(1 + random() % static_cast<unsigned>(most)); };
    const TensorType type{{extent(3), extent(70), extent(9), extent(9)}, dtypes[random() % dtypes.size()]};
    CheckConversion(type, tags[random() % tags.size()], tags[random() % tags.size()], 1 + static_cast<int>(random() % 2), random);
  }
}

TEST(LayoutConversionTest, LargeOnesSplitOverThreads) {
  std::mt19937 random(8);
  size_t count = 0;
  for (const Shape& shape : {Shape{2, 64, 56, 56}, Shape{1, 3, 112, 97}, Shape{1, 130, 31, 31}}) {
    for (const char* from : {"plain", "acdb", "aBcd16b", "aBcd8b"}) {
      for (const char* to : {"plain", "acdb", "aBcd16b", "aBcd8b"}) {
        if (count++ % kOneOfCases == 0) CheckConversion({shape, DType::kFloat32}, from, to, 2, random);
      }
    }
  }
}

TEST(LayoutConversionTest, ImagesOfThreeChannels) {
  std::mt19937 random(11);
  for (int64_t width = 1; width < 12; ++width) {
    for (const DType dtype : {DType::kFloat32, DType::kUInt8}) {
      CheckConversion({{2, 3, 1, width}, dtype}, "plain", "acdb", 1, random);
      CheckConversion({{2, 3, 1, width}, dtype}, "acdb", "plain", 1, random);
    }
  }
  // Several units of work, the last one of a size that no vector has.
  CheckConversion({{1, 3, 131, 127}, DType::kFloat32}, "plain", "acdb", 2, random);
  CheckConversion({{1, 3, 131, 127}, DType::kFloat32}, "acdb", "plain", 2, random);
}

TEST(LayoutConversionTest, OtherRanks) {
  std::mt19937 random(9);
  CheckConversion({{}, DType::kFloat32}, "plain", "plain", 1, random);
  CheckConversion({{5}, DType::kFloat32}, "plain", "A16a", 1, random);
  CheckConversion({{37, 21}, DType::kFloat32}, "plain", "ba", 1, random);
  CheckConversion({{37, 21}, DType::kFloat32}, "BA16a16b", "plain", 1, random);
  CheckConversion({{2, 19, 3, 5, 7}, DType::kFloat32}, "plain", "aBcde16b", 2, random);
  CheckConversion({{2, 19, 3, 5, 7}, DType::kFloat32}, "acdeb", "aBcde16b", 2, random);
  CheckConversion({{1000003}, DType::kUInt8}, "plain", "plain", 2, random);
}

TEST(LayoutConversionTest, NothingToDoWithoutElements) {
  std::mt19937 random(10);
  CheckConversion({{1, 0, 4, 4}, DType::kFloat32}, "plain", "aBcd16b", 2, random);
  CheckConversion({{0, 5, 4, 4}, DType::kFloat32}, "aBcd16b", "acdb", 2, random);
}

void CheckStored(const TensorType& type, const std::string& from_tag, const std::string& to_tag, int threads) {
  SCOPED_TRACE(ToString(type) + " " + from_tag + " -> " + to_tag);
  const Layout from = Layout::Of(from_tag);
  const Layout to = Layout::Of(to_tag);
  Tensor plain(type);
  FillRandom(plain, 3);
  const auto store = [&](const Layout& layout, const std::function<float(float)>& changed) {
    std::vector<std::byte> bytes(PhysicalByteCount(type, layout), std::byte{0});
    int64_t i = 0;
    ForEachIndex(type.shape, [&](const std::vector<int64_t>& index) {
      const float value = changed(plain.Data<float>()[i++]);
      const uint16_t narrow = ToBFloat16(value);
      const size_t offset = PhysicalOffset(type, layout, index);
      if (layout.stored()) std::memcpy(&bytes[offset * sizeof narrow], &narrow, sizeof narrow);
      if (!layout.stored()) std::memcpy(&bytes[offset * sizeof value], &value, sizeof value);
    });
    return bytes;
  };
  const auto as_it_is = [](float value) { return value; };
  const auto rounded = [](float value) { return FromBFloat16(ToBFloat16(value)); };
  const std::vector<std::byte> source = store(from, as_it_is);
  const std::vector<std::byte> expected = from.stored() ? store(to, rounded) : store(to, as_it_is);
  std::vector<std::byte> target(expected.size(), std::byte{0x5a});
  const LayoutConversion conversion(type, from, to, threads);
  conversion.Run(source.data(), target.data());
  EXPECT_EQ(target, expected);
  EXPECT_FALSE(conversion.IsIdentity() && from.stored() != to.stored());
}

TEST(LayoutConversionTest, RoundsWhatIsStoredWithFewerBits) {
  const std::vector<std::string> tags = {"plain", "acdb", "aBcd16b", "plain:bf16", "acdb:bf16", "aBcd16b:bf16"};
  size_t count = 0;
  for (const Shape& shape : {Shape{2, 35, 5, 7}, Shape{1, 64, 28, 28}, Shape{1, 3, 64, 65}}) {
    for (const std::string& from : tags) {
      for (const std::string& to : tags) {
        if (count++ % kOneOfCases == 0) CheckStored({shape, DType::kFloat32}, from, to, 2);
      }
    }
  }
  CheckStored({{1000003}, DType::kFloat32}, "plain", "plain:bf16", 2);
  CheckStored({{}, DType::kFloat32}, "plain:bf16", "plain", 1);
}

TEST(LayoutConversionTest, RoundsToTheNearestAndKeepsWhatIsNoNumber) {
  // Halfway to an even and to an odd neighbour, beyond the greatest number, and a NaN whose upper bits are those of an infinity.
  const std::vector<float> values = {0x1.01p0f, 0x1.03p0f, -0x1.010002p0f, 0x1.fffffep127f, std::bit_cast<float>(0x7f800001u)};
  const TensorType type{{static_cast<int64_t>(values.size())}, DType::kFloat32};
  std::vector<uint16_t> narrow(values.size());
  LayoutConversion(type, Layout(), Layout::Of("plain:bf16"), 1).Run(values.data(), narrow.data());
  std::vector<float> wide(values.size());
  LayoutConversion(type, Layout::Of("plain:bf16"), Layout(), 1).Run(narrow.data(), wide.data());
  EXPECT_EQ(wide[0], 0x1.00p0f);
  EXPECT_EQ(wide[1], 0x1.04p0f);
  EXPECT_EQ(wide[2], -0x1.02p0f);
  EXPECT_TRUE(std::isinf(wide[3]));
  EXPECT_TRUE(std::isnan(wide[4]));
}

}  // namespace
}  // namespace collage
