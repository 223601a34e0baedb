// A program of somebody else: loads a saved program, runs it on an array, prints what comes out.
//   run_program PROGRAM INPUT.npy
#include <collage/lower/save.h>
#include <collage/tensor/npy.h>

#include <cstdio>
#include <vector>

namespace {

collage::Result<std::vector<collage::Tensor>> Run(const char* program, const char* input) {
  using namespace collage;
  const Device device{DeviceKind::kCpu, 0, /*threads=*/2};
  LoweredModel model = COLLAGE_TRY(LoadProgram(program, device));
  const std::vector<Tensor> inputs = {COLLAGE_TRY(ReadNpy(input))};
  return model.executable.Run(inputs);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const collage::Result<std::vector<collage::Tensor>> outputs = Run(argv[1], argv[2]);
  if (!outputs) {
    std::fprintf(stderr, "%s\n", outputs.error().message.c_str());
    return 1;
  }
  for (const collage::Tensor& output : *outputs) {
    for (const float value : output.Values<float>()) std::printf("%.9g\n", value);
  }
  return 0;
}
