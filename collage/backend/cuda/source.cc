#include "collage/backend/cuda/source.h"

#include <vector>

#include "collage/backend/element_code/types.h"

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

/// NVRTC has no header with a type of 16 bits; the processor has the conversions.
constexpr const char* kDefinitions = R"(#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define as_float __uint_as_float
#define as_uint __float_as_uint
__device__ float from_float16(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
__device__ unsigned short to_float16(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
)";

std::string Prelude(int lanes) {
  std::string text = kDefinitions + element_code::ConversionFunctions("__device__");
  if (lanes == 1) return text;
  text += AcrossText("sum", "v + o", lanes);
  text += AcrossText("max", "v < o || o != o ? o : v", lanes);
  return text + AcrossText("min", "o < v || o != o ? o : v", lanes);
}

std::string ElementText(const Array& array, const std::string& index) { return array.name + "[" + index + "]"; }

}  // namespace

Result<CudaSource> GenerateCuda(const OpSequence& sequence, int lanes) {
  const auto kernel = [](const std::string& name, const std::vector<Array>& inputs, const Array& out, const std::string& body,
                         int lanes_of_row) {
    std::string parameters;
    for (const Array& input : inputs)
      parameters += "const " + element_code::StoredType(input.dtype) + "* __restrict__ " + input.name + ", ";
    std::string text = "extern \"C\" __global__ void __launch_bounds__(" + N(kBlockThreads) + ") " + name + "(" + parameters +
                       element_code::StoredType(out.dtype) + "* __restrict__ " + out.name + ", int items) {\n";
    text += "  const int i = blockIdx.x * " + N(kBlockThreads / lanes_of_row) + " + threadIdx.x / " + N(lanes_of_row) + ";\n";
    if (lanes_of_row > 1) text += "  const int lane = threadIdx.x % " + N(lanes_of_row) + ";\n";
    // The threads of a row leave together, and rows share no more than a block does.
    return text + "  if (i >= items) return;\n" + body + "}\n";
  };
  element_code::GeneratedSource source = COLLAGE_TRY(element_code::GenerateSource(sequence, {kernel, ElementText, lanes}));
  return CudaSource{Prelude(lanes) + source.text, element_code::RecipeOf(sequence, source)};
}

}  // namespace collage::cuda_source
