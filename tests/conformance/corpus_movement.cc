#include "tests/conformance/corpus.h"

namespace collage::conformance {
namespace {

using B = ProgramBuilder;

ProgramCase Move(const std::string& name, const std::string& op, const Shape& data, const Attributes& attributes) {
  return {name, [=] {
            B b;
            return b.Finish(B::Call(op, {b.Input(data)}, attributes));
          }};
}

ProgramCase Join(const std::string& name, const std::string& op, const std::vector<Shape>& shapes, const Attributes& attributes) {
  return {name, [=] {
            B b;
            std::vector<Expr> fields;
            for (const Shape& shape : shapes) fields.push_back(b.Input(shape));
            return b.Finish(B::Call(op, {MakeTuple(fields)}, attributes));
          }};
}

AttributeValue Pairs(const std::vector<Ints>& pairs) { return AttributeValue::List(pairs.begin(), pairs.end()); }

void AddPads(std::vector<ProgramCase>& cases) {
  for (const char* mode : {"constant", "edge", "reflect"}) {
    cases.push_back({std::string("pad_") + mode, [=] {
                       B b;
                       const Attributes attributes{{"pad_width", Pairs({{0, 0}, {0, 0}, {1, 2}, {2, 1}})}, {"pad_mode", mode}};
                       return b.Finish(B::Call("nn.pad", {b.Input({1, 3, 5, 4}), B::Scalar(0.5)}, attributes));
                     }});
  }
  cases.push_back({"pad_conv", [] {
                     B b;
                     const Attributes attributes{{"pad_width", Pairs({{0, 0}, {0, 0}, {1, 1}, {1, 1}})}};
                     const Expr padded = B::Call("nn.pad", {b.Input({1, 8, 6, 6}), B::Scalar(0)}, attributes);
                     return b.Finish(b.Conv2d(padded, 8, 3, {{"padding", Ints{0, 0, 0, 0}}}));
                   }});
}

void AddBlocks(std::vector<ProgramCase>& cases) {
  const Attributes overlapping{{"output_size", Ints{9, 8}}, {"kernel_size", Ints{4, 4}}, {"strides", Ints{2, 2}}, {"padding", 1}};
  cases.push_back(Move("col2im", "nn.col2im", {1, 48, 16}, overlapping));
  cases.push_back(Move("col2im_batch", "nn.col2im", {3, 32, 16}, overlapping));
  cases.push_back(Move("col2im_apart", "nn.col2im", {1, 12, 12}, {{"output_size", Ints{9, 12}}, {"kernel_size", 2}, {"strides", 3}}));
  cases.push_back(Move("col2im_line", "nn.col2im", {2, 15, 40}, {{"output_size", 84}, {"kernel_size", 5}, {"strides", 2}}));
  cases.push_back(Move("col2im_dilated", "nn.col2im", {2, 18, 15},
                       {{"output_size", Ints{13, 8}},
                        {"kernel_size", 3},
                        {"strides", Ints{6, 3}},
                        {"dilation", Ints{4, 2}},
                        {"padding", Ints{5, 4, 3, 6}}}));
  cases.push_back(
      Move("col2im_volume", "nn.col2im", {1, 16, 18}, {{"output_size", Ints{4, 4, 4}}, {"kernel_size", 2}, {"strides", Ints{1, 2, 1}}}));
  cases.push_back(
      Move("col2im_dilated_volume", "nn.col2im", {1, 16, 8}, {{"output_size", Ints{4, 4, 4}}, {"kernel_size", 2}, {"dilation", 2}}));
  cases.push_back({"transposed_convolution_as_product", [=] {
                     B b;
                     const Expr product = B::Call("nn.matmul", {b.Weight({48, 6}, 6), b.Input({6, 16})});
                     const Expr blocks = B::Call("reshape", {product}, {{"newshape", Ints{1, 48, 16}}});
                     return b.Finish(B::Relu(b.Bias(B::Call("nn.col2im", {blocks}, overlapping))));
                   }});
}

void AddGathers(std::vector<ProgramCase>& cases) {
  const auto take = [&](const char* name, const Shape& data, const Shape& indices, int64_t axis, DType dtype) {
    cases.push_back({name, [=] {
                       B b;
                       const Expr x = b.Input(data);
                       const auto high = static_cast<double>(data[axis]);
                       return b.Finish(B::Call("take", {x, b.Input(indices, 0, high, dtype)}, {{"axis", axis}}));
                     }});
  };
  take("take_rows", {11, 8}, {2, 5}, 0, DType::kInt64);
  take("take_rows_int32", {11, 8}, {4}, 0, DType::kInt32);
  take("take_columns", {3, 9}, {4}, 1, DType::kInt64);
  take("take_one", {3, 9, 2}, {}, 1, DType::kInt64);
  cases.push_back({"take_embedding", [] {
                     B b;
                     const Expr table = b.Constant({20, 16}, -1, 1);
                     const Expr rows = B::Call("take", {table, b.Input({1, 6}, 0, 20, DType::kInt64)}, {{"axis", 0}});
                     return b.Finish(b.LayerNorm(B::Add(rows, b.Constant({6, 16}, -1, 1))));
                   }});
  cases.push_back({"gather_nd", [] {
                     B b;
                     const Expr x = b.Input({4, 5, 6});
                     return b.Finish(B::Call("gather_nd", {x, b.Input({2, 7}, 0, 4, DType::kInt64)}));
                   }});
}

void AddSplits(std::vector<ProgramCase>& cases) {
  cases.push_back({"split_equal", [] {
                     B b;
                     const Expr parts = B::Call("split", {b.Input({2, 12, 3})}, {{"indices_or_sections", 3}, {"axis", 1}});
                     return b.Finish(MakeTuple({B::Get(parts, 0), B::Get(parts, 1), B::Get(parts, 2)}));
                   }});
  cases.push_back({"split_at", [] {
                     B b;
                     const Expr parts = B::Call("split", {b.Input({2, 10})}, {{"indices_or_sections", Ints{3, 4}}, {"axis", -1}});
                     return b.Finish(B::Add(B::Get(parts, 0), B::Multiply(B::Get(parts, 1), B::Scalar(2))));
                   }});
  cases.push_back({"split_swapped_concat", [] {
                     B b;
                     const Expr parts = B::Call("split", {b.Input({1, 8, 4, 4})}, {{"indices_or_sections", 2}, {"axis", 1}});
                     return b.Finish(B::Call("concatenate", {MakeTuple({B::Get(parts, 1), B::Get(parts, 0)})}, {{"axis", 1}}));
                   }});
  cases.push_back({"channel_shuffle", [] {
                     B b;
                     const Expr grouped = B::Call("reshape", {b.Input({1, 12, 4, 4})}, {{"newshape", Ints{1, 3, 4, 4, 4}}});
                     const Expr swapped = B::Call("transpose", {grouped}, {{"axes", Ints{0, 2, 1, 3, 4}}});
                     return b.Finish(B::Call("reshape", {swapped}, {{"newshape", Ints{1, 12, 4, 4}}}));
                   }});
}

void AddFills(std::vector<ProgramCase>& cases) {
  for (const char* op : {"zeros", "ones"}) {
    cases.push_back({op, [=] {
                       B b;
                       return b.Finish(B::Add(b.Input({3, 4}), B::Call(op, {}, {{"shape", Ints{3, 4}}, {"dtype", "float32"}})));
                     }});
  }
  cases.push_back({"full", [] {
                     B b;
                     return b.Finish(B::Call("full", {b.Input({})}, {{"shape", Ints{3, 4}}, {"dtype", "float32"}}));
                   }});
  cases.push_back({"shape_of", [] {
                     B b;
                     return b.Finish(B::Call("shape_of", {b.Input({3, 4})}, {{"dtype", "int64"}}));
                   }});
}

/// 16-bit floating point tensors are moved, joined and cast; nothing computes with them.
void AddHalves(std::vector<ProgramCase>& cases) {
  for (const char* dtype : {"float16", "bfloat16"}) {
    cases.push_back({std::string("move_") + dtype, [dtype] {
                       B b;
                       const Expr half = B::Call("cast", {b.Input({2, 3, 4, 5})}, {{"dtype", dtype}});
                       const Expr turned = B::Call("transpose", {half}, {{"axes", Ints{0, 2, 3, 1}}});
                       const Expr joined = B::Call("concatenate", {MakeTuple({turned, turned})}, {{"axis", 3}});
                       const Expr part = B::Call("strided_slice", {joined}, {{"begin", Ints{1}}, {"end", Ints{5}}, {"axes", Ints{3}}});
                       return b.Finish(B::Call("cast", {B::Call("reshape", {part}, {{"newshape", Ints{-1}}})}, {{"dtype", "float32"}}));
                     }});
  }
}

}  // namespace

std::vector<ProgramCase> MovementCases() {
  std::vector<ProgramCase> cases = {
      Move("reshape", "reshape", {2, 12}, {{"newshape", Ints{2, 3, 4}}}),
      Move("reshape_copy_and_infer", "reshape", {2, 3, 4}, {{"newshape", Ints{0, -1}}}),
      Move("batch_flatten", "nn.batch_flatten", {2, 3, 4, 5}, {}),
      Move("transpose_matrix", "transpose", {5, 7}, {}),
      Move("transpose_heads", "transpose", {1, 6, 4, 8}, {{"axes", Ints{0, 2, 1, 3}}}),
      Move("transpose_to_channels_last", "transpose", {1, 6, 4, 5}, {{"axes", Ints{0, 2, 3, 1}}}),
      Move("squeeze", "squeeze", {1, 6, 1, 1}, {{"axis", Ints{2, 3}}}),
      Move("squeeze_all", "squeeze", {1, 6, 1, 4}, {}),
      Move("expand_dims", "expand_dims", {3, 4}, {{"axis", 1}, {"num_newaxis", 2}}),
      Move("slice", "strided_slice", {6, 8}, {{"begin", Ints{1, 2}}, {"end", Ints{5, 8}}, {"strides", Ints{1, 3}}}),
      Move("slice_axis", "strided_slice", {1, 8, 4}, {{"begin", Ints{2}}, {"end", Ints{6}}, {"strides", Ints{1}}, {"axes", Ints{1}}}),
      Move("broadcast_to", "broadcast_to", {3, 1}, {{"shape", Ints{2, 3, 4}}}),
      Move("tile", "tile", {2, 3}, {{"reps", Ints{2, 2}}}),
      Move("depth_to_space", "nn.depth_to_space", {1, 8, 3, 4}, {{"block_size", 2}}),
      Move("depth_to_space_crd", "nn.depth_to_space", {1, 8, 3, 4}, {{"block_size", 2}, {"mode", "CRD"}}),
      Move("space_to_depth", "nn.space_to_depth", {1, 3, 4, 6}, {{"block_size", 2}}),
      Move("upsampling_nearest", "nn.upsampling", {1, 3, 4, 5}, {{"scale_h", 2.0}, {"scale_w", 2.0}, {"method", "nearest_neighbor"}}),
      Move("upsampling_bilinear", "nn.upsampling", {1, 3, 4, 5}, {{"scale_h", 2.0}, {"scale_w", 2.0}, {"method", "bilinear"}}),
      Join("concatenate_channels", "concatenate", {{1, 3, 4, 4}, {1, 5, 4, 4}}, {{"axis", 1}}),
      Join("concatenate_four", "concatenate", {{1, 8, 3, 3}, {1, 16, 3, 3}, {1, 4, 3, 3}, {1, 12, 3, 3}}, {{"axis", 1}}),
      Join("concatenate_last", "concatenate", {{2, 3}, {2, 1}, {2, 4}}, {{"axis", -1}}),
      Join("stack", "stack", {{3, 4}, {3, 4}}, {{"axis", 1}}),
  };
  AddHalves(cases);
  AddPads(cases);
  AddBlocks(cases);
  AddGathers(cases);
  AddSplits(cases);
  AddFills(cases);
  return cases;
}

}  // namespace collage::conformance
