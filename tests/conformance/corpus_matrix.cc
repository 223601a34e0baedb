#include "tests/conformance/corpus.h"

namespace collage::conformance {
namespace {

using B = ProgramBuilder;

void AddDense(std::vector<ProgramCase>& cases) {
  const auto add = [&](const std::string& name, const Shape& data, int64_t units, std::function<Expr(B&, const Expr&)> extend) {
    cases.push_back({name, [=] {
                       B b;
                       const Expr x = b.Input(data);
                       return b.Finish(extend(b, b.Dense(x, units)));
                     }});
  };
  const auto bare = [](B&, const Expr& x) { return x; };
  const auto bias = [](B& b, const Expr& x) { return b.Bias(x, -1); };
  add("dense", {4, 32}, 16, bare);
  add("dense_one_row", {1, 100}, 10, bare);
  add("dense_odd", {3, 17}, 5, bare);
  add("dense_rank3", {1, 8, 32}, 24, bare);
  add("dense_bias", {4, 32}, 16, bias);
  add("dense_one_row_bias", {1, 64}, 33, bias);
  add("dense_rank3_bias", {2, 5, 16}, 8, bias);
  add("dense_bias_relu", {2, 32}, 16, [](B& b, const Expr& x) { return B::Relu(b.Bias(x, -1)); });
  add("dense_bias_gelu", {6, 32}, 48, [](B& b, const Expr& x) { return B::Gelu(b.Bias(x, -1)); });
  add("dense_bias_tanh", {6, 32}, 48, [](B& b, const Expr& x) { return B::Call("tanh", {b.Bias(x, -1)}); });
  add("dense_bias_residual", {6, 32}, 32, [](B& b, const Expr& x) { return B::Add(b.Bias(x, -1), b.Input({6, 32})); });
  add("dense_add_row", {6, 32}, 32, [](B& b, const Expr& x) { return B::Add(x, b.Constant({32}, -1, 1)); });
  add("dense_add_row_rank2", {6, 32}, 32, [](B& b, const Expr& x) { return B::Add(b.Constant({1, 32}, -1, 1), x); });
  add("dense_many_rows", {57, 62}, 92, bias);
  add("dense_add_column", {6, 32}, 32, [](B& b, const Expr& x) { return B::Add(x, b.Constant({6, 1}, -1, 1)); });
  add("dense_bias_softmax", {3, 32}, 10, [](B& b, const Expr& x) { return B::Call("nn.softmax", {b.Bias(x, -1)}); });
  add("dense_chain", {2, 24}, 32,
      [](B& b, const Expr& x) { return b.Bias(b.Dense(B::Relu(b.Bias(b.Dense(B::Relu(b.Bias(x, -1)), 16), -1)), 8), -1); });
}

void AddProduct(std::vector<ProgramCase>& cases, const std::string& name, const std::string& op, const Shape& left, const Shape& right,
                const Attributes& attributes = {}, bool constant_right = false) {
  cases.push_back({name, [=] {
                     B b;
                     const Expr x = b.Input(left);
                     const Expr y = constant_right ? b.Weight(right, left.back()) : b.Input(right);
                     return b.Finish(B::Call(op, {x, y}, attributes));
                   }});
}

void AddTailed(std::vector<ProgramCase>& cases) {
  const auto add = [&](const char* name, const Shape& out, std::function<Expr(B&, const Expr&)> extend) {
    cases.push_back({name, [=] {
                       B b;
                       const Expr x = b.Input({2, 6, 16});
                       return b.Finish(extend(b, B::Call("nn.matmul", {x, b.Weight({16, out.back()}, 16)})));
                     }});
  };
  const Shape out{2, 6, 24};
  add("matmul_bias_add", out, [](B& b, const Expr& x) { return b.Bias(x, -1); });
  add("matmul_add_bias_left", out, [](B& b, const Expr& x) { return B::Add(b.Constant({24}, -1, 1), x); });
  add("matmul_add_residual", out, [=](B& b, const Expr& x) { return B::Add(x, b.Input(out)); });
  add("matmul_add_bias_residual", out, [=](B& b, const Expr& x) { return B::Add(B::Add(x, b.Constant({24}, -1, 1)), b.Input(out)); });
  add("matmul_add_bias_gelu", out, [](B& b, const Expr& x) { return B::Gelu(B::Add(x, b.Constant({24}, -1, 1))); });
  add("matmul_add_bias_relu", out, [](B& b, const Expr& x) { return B::Relu(B::Add(x, b.Constant({24}, -1, 1))); });
  add("matmul_scale", out, [](B&, const Expr& x) { return B::Multiply(x, B::Scalar(0.125)); });
  add("matmul_scale_mask_softmax", out, [](B& b, const Expr& x) {
    return B::Call("nn.softmax", {B::Add(B::Call("divide", {x, B::Scalar(4)}), b.Input({2, 1, 24}))});
  });
}

struct FewBits {
  const char* name;
  Shape data;
  int64_t columns, bits, block;
  bool has_zeros;
};

/// Weights of few bits in blocks along the depth, with a tail and without.
void AddFewBits(std::vector<ProgramCase>& cases) {
  const std::vector<FewBits> products = {{"row", {1, 256}, 48, 4, 32, false},
                                         {"zeros", {1, 160}, 40, 4, 32, true},
                                         {"last_block", {3, 88}, 17, 4, 16, true},
                                         {"bytes", {2, 5, 64}, 24, 8, 16, true},
                                         {"rows", {30, 96}, 70, 4, 32, false}};
  for (const FewBits& of : products) {
    for (const bool has_tail : {false, true}) {
      cases.push_back(
          {std::string("matmul_nbits_") + of.name + (has_tail ? "_bias_relu" : ""), [=] {
             B b;
             const int64_t blocks = (of.data.back() + of.block - 1) / of.block;
             const Expr data = b.Input(of.data);
             const Expr weights = b.Constant({of.columns, blocks, of.block * of.bits / 8}, 0, 256, DType::kUInt8);
             const Expr scales = b.Constant({of.columns, blocks}, 0.01, 0.05);
             const Shape points = {of.columns, (blocks * of.bits + 7) / 8};
             const double middle = of.bits == 4 ? 0x88 : 0x80;
             const Expr zeros = b.Constant(points, of.has_zeros ? 0 : middle, of.has_zeros ? 256 : middle + 1, DType::kUInt8);
             const Expr product = B::Call("nn.matmul_nbits", {data, weights, scales, zeros}, {{"bits", of.bits}, {"block_size", of.block}});
             return b.Finish(has_tail ? B::Relu(b.Bias(product, -1)) : product);
           }});
    }
  }
}

}  // namespace

std::vector<ProgramCase> MatrixCases() {
  std::vector<ProgramCase> cases;
  AddDense(cases);
  AddTailed(cases);
  AddFewBits(cases);
  AddProduct(cases, "dense_weight_is_parameter", "nn.dense", {4, 16}, {8, 16});
  AddProduct(cases, "matmul", "nn.matmul", {8, 16}, {16, 12});
  AddProduct(cases, "matmul_constant", "nn.matmul", {8, 16}, {16, 12}, {}, true);
  AddProduct(cases, "matmul_transpose_a", "nn.matmul", {16, 8}, {16, 12}, {{"transpose_a", true}});
  AddProduct(cases, "matmul_transpose_b", "nn.matmul", {8, 16}, {12, 16}, {{"transpose_b", true}});
  AddProduct(cases, "matmul_transpose_both", "nn.matmul", {16, 8}, {12, 16}, {{"transpose_a", true}, {"transpose_b", true}});
  AddProduct(cases, "matmul_rank3_by_matrix", "nn.matmul", {2, 6, 16}, {16, 12}, {}, true);
  AddProduct(cases, "matmul_rank4", "nn.matmul", {2, 3, 6, 16}, {2, 3, 16, 5});
  AddProduct(cases, "matmul_rank4_transpose_b", "nn.matmul", {1, 4, 6, 8}, {1, 4, 7, 8}, {{"transpose_b", true}});
  AddProduct(cases, "matmul_broadcast_batch", "nn.matmul", {2, 1, 6, 16}, {3, 16, 5});
  AddProduct(cases, "matmul_one_row", "nn.matmul", {1, 64}, {64, 40}, {}, true);
  AddProduct(cases, "matmul_one_column", "nn.matmul", {40, 64}, {64, 1}, {}, true);
  AddProduct(cases, "matmul_matrix_by_rank3", "nn.matmul", {6, 16}, {2, 16, 5});
  AddProduct(cases, "batch_matmul", "nn.batch_matmul", {3, 6, 16}, {3, 5, 16});
  AddProduct(cases, "batch_matmul_plain", "nn.batch_matmul", {3, 6, 16}, {3, 16, 5}, {{"transpose_b", false}});
  AddProduct(cases, "batch_matmul_transpose_a", "nn.batch_matmul", {3, 16, 6}, {3, 5, 16}, {{"transpose_a", true}});
  AddProduct(cases, "batch_matmul_broadcast", "nn.batch_matmul", {3, 6, 16}, {1, 5, 16});
  return cases;
}

}  // namespace collage::conformance
