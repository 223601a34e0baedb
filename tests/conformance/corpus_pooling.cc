#include "tests/conformance/corpus.h"

namespace collage::conformance {
namespace {

using B = ProgramBuilder;

ProgramCase Pool(const std::string& name, const std::string& op, const Shape& data, const Attributes& attributes = {}) {
  return {name, [=] {
            B b;
            return b.Finish(B::Call(op, {b.Input(data)}, attributes));
          }};
}

}  // namespace

std::vector<ProgramCase> PoolingCases() {
  const Ints ones(4, 1);
  const Attributes overlapping{{"pool_size", Ints{3, 3}}, {"strides", Ints{2, 2}}};
  const Attributes padded{{"pool_size", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"padding", ones}};
  const Attributes ceiling{{"pool_size", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", true}};
  const Attributes padded_ceiling{{"pool_size", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"padding", ones}, {"ceil_mode", true}};
  const Attributes asymmetric{{"pool_size", Ints{3, 2}}, {"strides", Ints{2, 1}}, {"padding", Ints{0, 0, 1, 1}}};
  const Attributes same{{"pool_size", Ints{3, 3}}, {"padding", ones}};
  const Attributes counting{{"pool_size", Ints{3, 3}}, {"padding", ones}, {"count_include_pad", true}};
  std::vector<ProgramCase> cases;
  for (const std::string kind : {"max", "avg"}) {
    const std::string op = "nn." + kind + "_pool2d";
    cases.push_back(Pool(kind + "_pool_2x2", op, {1, 16, 8, 8}, {{"pool_size", Ints{2, 2}}, {"strides", Ints{2, 2}}}));
    cases.push_back(Pool(kind + "_pool_3x3_stride2", op, {1, 16, 9, 9}, overlapping));
    cases.push_back(Pool(kind + "_pool_3x3_stride2_padded", op, {1, 16, 8, 8}, padded));
    cases.push_back(Pool(kind + "_pool_3x3_same", op, {2, 5, 7, 6}, same));
    cases.push_back(Pool(kind + "_pool_ceil_exact", op, {1, 8, 9, 9}, ceiling));
    cases.push_back(Pool(kind + "_pool_ceil", op, {1, 8, 8, 8}, ceiling));
    cases.push_back(Pool(kind + "_pool_ceil_padded", op, {1, 8, 8, 10}, padded_ceiling));
    cases.push_back(Pool(kind + "_pool_asymmetric", op, {1, 8, 8, 8}, asymmetric));
    cases.push_back(Pool("global_" + kind + "_pool", "nn.global_" + kind + "_pool2d", {1, 24, 7, 7}));
    cases.push_back(Pool("global_" + kind + "_pool_batch2_odd", "nn.global_" + kind + "_pool2d", {2, 5, 3, 4}));
  }
  cases.push_back(Pool("avg_pool_counting_padding", "nn.avg_pool2d", {1, 8, 8, 8}, counting));
  cases.push_back(Pool("max_pool_dilated", "nn.max_pool2d", {1, 8, 9, 9}, {{"pool_size", Ints{2, 2}}, {"dilation", Ints{2, 2}}}));
  cases.push_back({"global_avg_pool_flatten_dense", [] {
                     B b;
                     const Expr pooled = B::Call("nn.global_avg_pool2d", {b.Input({1, 24, 5, 5})});
                     return b.Finish(b.Bias(b.Dense(B::Call("nn.batch_flatten", {pooled}), 10), -1));
                   }});
  return cases;
}

}  // namespace collage::conformance
