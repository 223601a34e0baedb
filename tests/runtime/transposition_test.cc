#include "collage/runtime/transposition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/runtime/layout_oracle.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

/// Where each element of the source comes to lie.
std::vector<size_t> Moved(const TensorType& type, const Layout& from, const Layout& to) {
  std::vector<size_t> places(static_cast<size_t>(type.ElementCount()));
  ForEachIndex(type.shape,
               [&](const std::vector<int64_t>& index) { places[PhysicalOffset(type, from, index)] = PhysicalOffset(type, to, index); });
  return places;
}

std::vector<size_t> Moved(const Transposition& transposition) {
  std::vector<size_t> places;
  for (int64_t batch = 0; batch < transposition.batches; ++batch) {
    for (int64_t row = 0; row < transposition.rows; ++row) {
      for (int64_t column = 0; column < transposition.columns; ++column)
        places.push_back(static_cast<size_t>((batch * transposition.columns + column) * transposition.rows + row));
    }
  }
  return places;
}

std::string RandomTag(size_t rank, std::mt19937& random) {
  std::string tag(rank, 'a');
  std::iota(tag.begin(), tag.end(), 'a');
  std::shuffle(tag.begin(), tag.end(), random);
  return tag;
}

TEST(TranspositionTest, WhatIsOneMovesEveryElementToWhereTheLayoutsSay) {
  std::mt19937 random(5);
  size_t found = 0;
  for (size_t round = 0; round < Rounds(2000); ++round) {
    TensorType type{{}, round % 2 == 0 ? DType::kFloat32 : DType::kFloat16};
    const size_t rank = 2 + random() % 4;
    for (size_t d = 0; d < rank; ++d) type.shape.push_back(1 + static_cast<int64_t>(random() % 4));
    const Layout from = Layout::Of(RandomTag(rank, random));
    const Layout to = Layout::Of(RandomTag(rank, random));
    const auto transposition = AsTransposition(type, from, to);
    if (!transposition) continue;
    ++found;
    EXPECT_EQ(transposition->element_bytes, ByteSize(type.dtype));
    ASSERT_EQ(Moved(*transposition), Moved(type, from, to)) << ToString(type) << " " << from.ToString() << " -> " << to.ToString();
  }
  EXPECT_GT(found, Rounds(2000) / 10);
}

TEST(TranspositionTest, ChannelsFirstAndLastAreOne) {
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{1, 64, 7, 7}, Shape{16, 3, 1, 9}}) {
    const TensorType type{shape, DType::kFloat32};
    for (const auto& [from, to] : {std::pair("abcd", "acdb"), std::pair("acdb", "abcd")}) {
      const auto transposition = AsTransposition(type, Layout::Of(from), Layout::Of(to));
      ASSERT_TRUE(transposition) << ToString(type) << " " << from;
      EXPECT_EQ(transposition->batches, shape[0]);
    }
  }
}

TEST(TranspositionTest, OtherConversionsAreNone) {
  const TensorType type{{2, 32, 4, 4}, DType::kFloat32};
  const Layout plain;
  EXPECT_FALSE(AsTransposition(type, plain, plain));
  EXPECT_FALSE(AsTransposition(type, plain, Layout::Of("aBcd16b")));
  EXPECT_FALSE(AsTransposition(type, plain, Layout::Of("acdb:bf16")));
  EXPECT_FALSE(AsTransposition(type, plain, Layout::Of("acbd"))) << "rows stay whole";
  EXPECT_FALSE(AsTransposition({{2, 1, 4, 4}, DType::kFloat32}, plain, Layout::Of("acdb"))) << "nothing moves";
  EXPECT_FALSE(AsTransposition({{2, 0, 4, 4}, DType::kFloat32}, plain, Layout::Of("acdb")));
}

}  // namespace
}  // namespace collage
