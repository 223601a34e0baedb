#include "collage/backend/xsmm/tile_loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

namespace collage::xsmm {
namespace {

struct Unary {
  const char* op;
  double (*value)(double);
};

// Relative to the value, so that what a model scales up afterwards is exact as well: from tiny arguments to where all saturate.
TEST(TileLoopsTest, TranscendentalsAreExactToFloat32) {
  std::vector<float> points;
  for (int i = -1200; i <= 1200; ++i) points.push_back(static_cast<float>(i) / 100);
  for (int i = 1; i < 30; ++i) {
    points.push_back(std::ldexp(1.0F, -i));
    points.push_back(-std::ldexp(3.0F, -i));
  }
  points.insert(points.end(), {0.0F, 100.0F, -100.0F, 1e30F, -1e30F});
  const auto count = static_cast<int64_t>(points.size());
  for (const Unary& one : {Unary{"tanh", [](double x) { return std::tanh(x); }}, Unary{"erf", [](double x) { return std::erf(x); }},
                           Unary{"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }}}) {
    std::vector<float> values(points.size());
    const TileView view{points.data(), count};
    FindTileLoop(one.op, 1)({1, count, view, view, values.data(), count});
    for (size_t i = 0; i < points.size(); ++i) {
      const double wanted = one.value(points[i]);
      EXPECT_NEAR(values[i], wanted, 1e-6 * std::abs(wanted) + 1e-37) << one.op << " of " << points[i];
    }
  }
}

TEST(TileLoopsTest, NoNumberStaysNone) {
  const std::vector<float> points(33, std::nanf(""));
  for (const char* op : {"nn.relu", "nn.leaky_relu", "clip", "sigmoid", "tanh", "erf", "abs", "negative", "square", "cube"}) {
    std::vector<float> values(points.size(), 1);
    const TileView view{points.data(), 33};
    FindTileLoop(op, 1)({1, 33, view, view, values.data(), 33, 0.5F, 6.0F});
    for (const float value : values) EXPECT_TRUE(std::isnan(value)) << op;
  }
}

// Every way in which an argument may lie, with rows apart and rows that follow one another, onto itself or not.
TEST(TileLoopsTest, ArgumentsLieInAnyWay) {
  for (const int64_t columns : {1, 7, 16, 48, 64}) {
    for (const int64_t stride : {columns, columns + 5}) {
      constexpr int64_t kRows = 3;
      std::vector<float> tile(static_cast<size_t>(kRows * stride));
      std::vector<float> other(tile.size());
      for (size_t i = 0; i < tile.size(); ++i) tile[i] = static_cast<float>(i), other[i] = 1000.0F * static_cast<float>(i);
      const auto check = [&](const TileView& first, const TileView& second, std::vector<float>& result) {
        const std::vector<float> a(first.data, first.data + tile.size());
        const std::vector<float> b(second.data, second.data + tile.size());
        const auto at = [&](const TileView& view, const std::vector<float>& data, int64_t r, int64_t c) {
          return data[static_cast<size_t>(r * view.row_stride + (view.one_a_row ? 0 : c))];
        };
        FindTileLoop("subtract", 2)({kRows, columns, first, second, result.data(), stride});
        for (int64_t r = 0; r < kRows; ++r) {
          for (int64_t c = 0; c < columns; ++c)
            EXPECT_EQ(result[static_cast<size_t>(r * stride + c)], at(first, a, r, c) - at(second, b, r, c)) << r << " " << c;
        }
      };
      const TileView whole{tile.data(), stride};
      for (const TileView& view :
           {TileView{other.data(), stride}, TileView{other.data(), 0}, TileView{other.data(), 1, true}, TileView{other.data(), 0, true}}) {
        std::vector<float> result(tile.size());
        check(whole, view, result);
        check(view, whole, result);
        check(whole, view, tile);
      }
    }
  }
}

TEST(TileLoopsTest, OthersAreUnknown) {
  EXPECT_EQ(FindTileLoop("nn.softmax", 1), nullptr);
  EXPECT_EQ(FindTileLoop("add", 1), nullptr);
}

}  // namespace
}  // namespace collage::xsmm
