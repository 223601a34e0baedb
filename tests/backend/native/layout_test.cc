#include <gtest/gtest.h>

#include <set>

#include "collage/backend/registry.h"
#include "tests/backend/native/native_harness.h"

namespace collage {
namespace {

using namespace collage::testing;  // NOLINT(google-build-using-namespace)
using Values = std::vector<int64_t>;

std::set<std::string> VariantNames(const std::vector<Expr>& parameters, const Expr& body) {
  const Device device{DeviceKind::kCpu, 0, 1};
  const Expr function = *MakeFunction(parameters, body);
  std::set<std::string> names;
  for (const Variant& variant : (*FindBackend("native", device))->Variants(*function->As<Function>(), device)) names.insert(variant.name);
  return names;
}

// Channels are blocked by the width of this CPU's registers.
std::string BlockedTag() { return __builtin_cpu_supports("avx512f") ? "aBcd16b" : "aBcd8b"; }

TEST(NativeLayout, PointwiseChainsOverImages) {
  const Expr x = Parameter("x", {2, 32, 7, 9});
  const Expr y = Parameter("y", {2, 32, 7, 9});
  const Expr scaled = CallNamed("multiply", {x, RandomConstant({32, 1, 1}, 1)});
  const Expr value = CallNamed("nn.relu", {CallNamed("add", {CallNamed("nn.bias_add", {scaled, RandomConstant({32}, 2)}), y})});
  EXPECT_EQ(VariantNames({x, y}, value), (std::set<std::string>{"default", "default/" + BlockedTag(), "default/acdb"}));
  ExpectMatchesReference({x, y}, value);
  ExpectMatchesReference({x, y}, MakeTuple({value, CallNamed("sigmoid", {value})}));
  ExpectMatchesReference({x}, CallNamed("nn.lrn", {x}));
  ExpectMatchesReference({x}, CallNamed("nn.prelu", {x, RandomConstant({32}, 3)}));
  const Expr gate = Parameter("gate", {1, 32, 1, 1});
  ExpectMatchesReference({x, gate}, CallNamed("multiply", {x, CallNamed("sigmoid", {gate})}));
}

TEST(NativeLayout, ConcatenationOfChannels) {
  const Expr a = Parameter("a", {1, 16, 9, 9});
  const Expr b = Parameter("b", {1, 48, 9, 9});
  const Expr joined = CallNamed("concatenate", {MakeTuple({a, b, a})}, {{"axis", 1}});
  EXPECT_TRUE(VariantNames({a, b}, joined).contains("default/" + BlockedTag()));
  ExpectMatchesReference({a, b}, joined);
  ExpectMatchesReference({a, b}, CallNamed("nn.relu", {CallNamed("nn.bias_add", {joined, RandomConstant({80}, 2)})}));
}

TEST(NativeLayout, OnlyWhereTheLoopsDoNotCare) {
  const Expr x = Parameter("x", {1, 24, 6, 6});
  EXPECT_EQ(VariantNames({x}, CallNamed("nn.relu", {x})).contains("default/" + BlockedTag()), BlockedTag() == "aBcd8b");
  EXPECT_TRUE(VariantNames({x}, CallNamed("nn.relu", {x})).contains("default/acdb"));
  EXPECT_EQ(VariantNames({x}, CallNamed("reshape", {x}, {{"newshape", Values{24, 36}}})).size(), 1u);
  EXPECT_EQ(VariantNames({x}, CallNamed("concatenate", {MakeTuple({x, x})}, {{"axis", 2}})).size(), 1u);
  EXPECT_EQ(VariantNames({x}, CallNamed("add", {x, RandomConstant({6, 6}, 1)})).count("default/acdb"), 1u);
  const Expr rows = Parameter("rows", {6, 6});
  EXPECT_EQ(VariantNames({x, rows}, CallNamed("add", {x, rows})).size(), 1u);
}

}  // namespace
}  // namespace collage
