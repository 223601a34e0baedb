#include "collage/backend/xsmm/tile_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace collage::xsmm {
namespace {

struct Unary {
  const char* op;
  double (*value)(double);
};

std::vector<float> Points() {
  std::vector<float> points = {0.0F, 100.0F, -100.0F};
  for (int i = -1200; i <= 1200; ++i) points.push_back(static_cast<float>(i) / 100);
  for (int i = 1; i < 30; ++i) {
    points.push_back(std::ldexp(1.0F, -i));
    points.push_back(-std::ldexp(3.0F, -i));
  }
  return points;
}

std::vector<float> ValuesOf(const char* op, const std::vector<float>& points, int64_t lanes) {
  std::vector<float> values(points.size());
  const auto count = static_cast<int64_t>(points.size());
  FindTileLoop(op, 1, lanes)({1, count, {points.data(), count}, {}, {}, values.data(), count});
  return values;
}

/// Of vectors of so many elements.
class TileLoopsTest : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    const bool has_them = GetParam() == 16 ? __builtin_cpu_supports("avx512bw") : __builtin_cpu_supports("avx2");
    if (!has_them) GTEST_SKIP() << "this processor has no vectors of " << GetParam() << " elements";
  }
};

// Relative to the value, so that what a model scales up afterwards is exact as well: from tiny arguments to where all saturate.
TEST_P(TileLoopsTest, TranscendentalsAreExactToFloat32) {
  const std::vector<float> points = Points();
  for (const Unary& one : {Unary{"tanh", [](double x) { return std::tanh(x); }}, Unary{"erf", [](double x) { return std::erf(x); }},
                           Unary{"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }}}) {
    const std::vector<float> values = ValuesOf(one.op, points, GetParam());
    for (size_t i = 0; i < points.size(); ++i) {
      const double wanted = one.value(points[i]);
      EXPECT_NEAR(values[i], wanted, 1e-6 * std::abs(wanted) + 1e-34) << one.op << " of " << points[i];
    }
  }
}

// Where their factor vanishes, activations are exact beside their largest values only, as any sum of two numbers is.
TEST_P(TileLoopsTest, ActivationsAreExactToFloat32) {
  const std::vector<float> points = Points();
  for (const Unary& one :
       {Unary{"gelu_by_erf", [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }},
        Unary{"gelu_by_tanh", [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
        Unary{"swish", [](double x) { return x / (1 + std::exp(-x)); }},
        Unary{"hard_swish", [](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }}}) {
    const std::vector<float> values = ValuesOf(one.op, points, GetParam());
    for (size_t i = 0; i < points.size(); ++i) {
      const double wanted = one.value(points[i]);
      EXPECT_NEAR(values[i], wanted, 1e-6 * std::min(1.0, std::abs(static_cast<double>(points[i]))) + 1e-6 * std::abs(wanted))
          << one.op << " of " << points[i];
    }
  }
}

TEST_P(TileLoopsTest, NoNumberStaysNone) {
  const std::vector<float> points(33, std::nanf(""));
  for (const char* op : {"nn.relu", "nn.leaky_relu", "clip", "sigmoid", "tanh", "erf", "abs", "negative", "square", "cube", "gelu_by_erf",
                         "gelu_by_tanh", "swish"}) {
    std::vector<float> values(points.size(), 1);
    const TileView view{points.data(), 33};
    FindTileLoop(op, 1, GetParam())({1, 33, view, {}, {}, values.data(), 33, 0.5F, 6.0F});
    for (const float value : values) EXPECT_TRUE(std::isnan(value)) << op;
  }
}

// Every way in which an argument may lie, with rows apart and rows that follow one another, onto itself or not.
TEST_P(TileLoopsTest, ArgumentsLieInAnyWay) {
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
        FindTileLoop("subtract", 2, GetParam())({kRows, columns, first, second, {}, result.data(), stride});
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

TEST_P(TileLoopsTest, SumsOfThreeLieInAnyWay) {
  constexpr int64_t kRows = 2;
  constexpr int64_t kColumns = 19;
  std::vector<float> data(3 * kRows * kColumns);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 7) - 3;
  const auto at = [](const TileView& view, int64_t r, int64_t c) { return view.data[r * view.row_stride + (view.one_a_row ? 0 : c)]; };
  const TileView first{data.data(), kColumns};
  const auto views = [&](const float* begin) {
    return std::vector<TileView>{{begin, kColumns}, {begin, 0}, {begin, 1, true}, {begin, 0, true}};
  };
  for (const TileView& second : views(data.data() + kRows * kColumns)) {
    for (const TileView& third : views(data.data() + 2 * kRows * kColumns)) {
      // One that the compiler turns into vectors, and one that is written in them.
      for (const Unary& one :
           {Unary{"nn.relu", [](double x) { return std::max(x, 0.0); }}, Unary{"swish", [](double x) { return x / (1 + std::exp(-x)); }}}) {
        std::vector<float> result(kRows * kColumns);
        FindTileLoop(one.op, 3, GetParam())({kRows, kColumns, first, second, third, result.data(), kColumns});
        for (int64_t r = 0; r < kRows; ++r) {
          for (int64_t c = 0; c < kColumns; ++c) {
            const double wanted = one.value(at(first, r, c) + at(second, r, c) + at(third, r, c));
            EXPECT_NEAR(result[static_cast<size_t>(r * kColumns + c)], wanted, 1e-6 * std::abs(wanted)) << one.op;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, TileLoopsTest, testing::Values(8, 16),
                         [](const testing::TestParamInfo<int64_t>& width) { return std::to_string(width.param) + "Lanes"; });

TEST(TileLoopTest, OthersAreUnknown) {
  EXPECT_EQ(FindTileLoop("nn.softmax", 1), nullptr);
  EXPECT_EQ(FindTileLoop("add", 1), nullptr);
}

}  // namespace
}  // namespace collage::xsmm
