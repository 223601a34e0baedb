#pragma once

namespace collage {

/// The MNIST network with which Collage's design was first presented, in canonical form.
inline constexpr const char* kMnist = R"(fn (%x: Tensor[(1, 1, 28, 28), float32]) -> Tensor[(1, 10), float32] {
  %0 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [2, 2], [2, 2]]);
  %1 = nn.conv2d(%0, meta[relay.Constant][0] /*Tensor[(8, 1, 5, 5), float32]*/, padding=[0, 0, 0, 0], channels=8, kernel_size=[5, 5]);
  %2 = add(%1, meta[relay.Constant][1] /*Tensor[(8, 1, 1), float32]*/);
  %3 = nn.relu(%2);
  %4 = nn.max_pool2d(%3, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]);
  %5 = nn.pad(%4, 0f, pad_width=[[0, 0], [0, 0], [2, 2], [2, 2]]);
  %6 = nn.conv2d(%5, meta[relay.Constant][2] /*Tensor[(16, 8, 5, 5), float32]*/, padding=[0, 0, 0, 0], channels=16, kernel_size=[5, 5]);
  %7 = add(%6, meta[relay.Constant][3] /*Tensor[(16, 1, 1), float32]*/);
  %8 = nn.relu(%7);
  %9 = nn.max_pool2d(%8, pool_size=[3, 3], strides=[3, 3], padding=[0, 0, 0, 0]);
  %10 = reshape(%9, newshape=[1, 256]);
  %11 = nn.dense(%10, meta[relay.Constant][4] /*Tensor[(10, 256), float32]*/, units=None, out_dtype="float32");
  add(%11, meta[relay.Constant][5] /*Tensor[(1, 10), float32]*/)
}
)";

/// The same network partitioned by hand for several toolchains, wrapped at 80 columns as documents wrap it.
inline constexpr const char* kPartitionedMnist = R"(v0.0.4
fn (%x: Tensor[(1, 1, 28, 28), float32]) -> Tensor[(1, 10), float32] {
  # native
  %3 = fn (%FunctionVar_08: Tensor[(1, 1, 28, 28), float32],
           Primitive=1) -> Tensor[(1, 1, 32, 32), float32] {
    nn.pad(%FunctionVar_08, 0f, pad_width=[[0, 0], [0, 0], [2, 2], [2, 2]])
  };
  %4 = %3(%x);
  # native, an operator of a library inside
  %6 = fn (%FunctionVar_07: Tensor[(1, 1, 32, 32), float32],
           Primitive=1) -> Tensor[(1, 8, 28, 28), float32] {
    %5 = fn (%FunctionVar_5: Tensor[(1, 1, 32, 32), float32],
             Composite="cudnn.conv2d") -> Tensor[(1, 8, 28, 28), float32] {
      nn.conv2d(%FunctionVar_5, meta[relay.Constant][0] /*Tensor[(8, 1, 5, 5),
float32]*/,
                padding=[0, 0, 0, 0], channels=8, kernel_size=[5, 5])
    };
    %5(%FunctionVar_07)
  };
  %7 = %6(%4);
  %8 = fn (%FunctionVar_06: Tensor[(1, 8, 28, 28), float32],
           %FunctionVar_12: Tensor[(8, 1, 1), float32],
           Primitive=1) -> Tensor[(1, 8, 28, 28), float32] {
    %3 = add(%FunctionVar_06, %FunctionVar_12);
    nn.relu(%3)
  };
  %9 = %8(%7, meta[relay.Constant][1] /*Tensor[(8, 1, 1), float32]*/);
  %10 = nn.max_pool2d(%9, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0,
0]);
  // a graph compiler
  %14 = fn (%FunctionVar_03: Tensor[(1, 8, 14, 14), float32],
            %FunctionVar_11: Tensor[(16, 1, 1), float32],
            Primitive=1,
            Compiler="tensorrt",
            global_symbol="collage_nn_conv2d_add_nn_relu_1") -> Tensor[(1, 16,
14, 14), float32] {
    %0 = nn.pad(%FunctionVar_03, 0f, pad_width=[[0, 0], [0, 0], [2, 2], [2, 2]]);
    %1 = nn.conv2d(%0, meta[relay.Constant][2] /*Tensor[(16, 8,
5, 5), float32]*/,
                   padding=[0, 0, 0, 0], channels=16, kernel_size=[5, 5]);
    %2 = add(%1, %FunctionVar_11);
    nn.relu(%2)
  };
  %15 = %14(%10, meta[relay.Constant][3] /*Tensor[(16, 1, 1), float32]*/);
  %17 = nn.max_pool2d(%15, pool_size=[3, 3], strides=[3, 3], padding=[0, 0, 0, 0]);
  %19 = reshape(%17, newshape=[1, 256]);
  %20 = fn (%FunctionVar_0: Tensor[(1, 256), float32],
            %FunctionVar_1: Tensor[(10, 256), float32],
            %FunctionVar_2: Tensor[(1, 10), float32],
            Primitive=1,
            Compiler="cutlass",
            global_symbol="collage_cutlass_dense_bias_nn_dense_add") ->
Tensor[(1, 10), float32] {
    %1 = fn (%FunctionVar_01: Tensor[(1, 256), float32],
             %FunctionVar_11: Tensor[(10, 256), float32],
             %FunctionVar_21: Tensor[(1, 10), float32],
             Composite="cutlass.dense_bias") -> Tensor[(1, 10), float32] {
      %0 = nn.dense(%FunctionVar_01, %FunctionVar_11, units=None,
out_dtype="float32");
      add(%0, %FunctionVar_21)
    };
    %1(%FunctionVar_0, %FunctionVar_1, %FunctionVar_2)
  };
  %20(%19, meta[relay.Constant][4] /*Tensor[(10, 256), float32]*/,
meta[relay.Constant][5] /*Tensor[(1, 10), float32]*/)
}
)";

}  // namespace collage
