#include "collage/backend/cuda/source.h"

#include <vector>

namespace collage::cuda_source {
namespace {

using element_code::Array;

std::string N(int number) { return std::to_string(number); }

/// Each thread combines what it has with what others of its row have, at half the distance each time; a row of a whole block then what its
/// warps have.
std::string AcrossText(const std::string& combination, const std::string& formula, int lanes) {
  std::string text = "__device__ float across_" + combination + "(float v) {\n";
  text +=
      "  for (int distance = 16; distance > 0; distance /= 2) {\n    const float o = __shfl_xor_sync(0xffffffffu, v, distance);\n    v = " +
      formula + ";\n  }\n";
  if (lanes > kWarpThreads) {
    const std::string warps = N(lanes / kWarpThreads);
    text += "  __shared__ float of_warp[" + warps + "];\n  __syncthreads();\n";
    text += "  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;\n  __syncthreads();\n  v = of_warp[0];\n";
    text += "  for (int warp = 1; warp < " + warps + "; ++warp) {\n    const float o = of_warp[warp];\n    v = " + formula + ";\n  }\n";
  }
  return text + "  return v;\n}\n";
}

std::string Prelude(int lanes) {
  std::string text = "#define INFINITY __int_as_float(0x7f800000)\n#define NAN __int_as_float(0x7fffffff)\n";
  if (lanes == 1) return text;
  text += AcrossText("sum", "v + o", lanes);
  text += AcrossText("max", "v < o || o != o ? o : v", lanes);
  return text + AcrossText("min", "o < v || o != o ? o : v", lanes);
}

std::string ElementText(const Array& array, const std::string& index) { return array.name + "[" + index + "]"; }

}  // namespace

Result<CudaSource> GenerateCuda(const OpSequence& sequence, int lanes) {
  const auto kernel = [](const std::string& name, const std::vector<Array>& inputs, const std::string& body, int lanes_of_row) {
    std::string parameters;
    for (const Array& input : inputs) parameters += "const float* __restrict__ " + input.name + ", ";
    std::string text = "extern \"C\" __global__ void __launch_bounds__(" + N(kBlockThreads) + ") " + name + "(" + parameters +
                       "float* __restrict__ out, int items) {\n";
    text += "  const int i = blockIdx.x * " + N(kBlockThreads / lanes_of_row) + " + threadIdx.x / " + N(lanes_of_row) + ";\n";
    if (lanes_of_row > 1) text += "  const int lane = threadIdx.x % " + N(lanes_of_row) + ";\n";
    // The threads of a row leave together, and rows share no more than a block does.
    return text + "  if (i >= items) return;\n" + body + "}\n";
  };
  element_code::GeneratedSource source = COLLAGE_TRY(element_code::GenerateSource(sequence, {kernel, ElementText, lanes}));
  return CudaSource{Prelude(lanes) + source.text, element_code::RecipeOf(sequence, source)};
}

}  // namespace collage::cuda_source
