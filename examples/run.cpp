// run_in_cpp PROGRAM INPUT: runs a compiled file that has one float32 input, given as a file of bytes, and one float32 output.
#include <collage.hpp>
#include <cstdio>
#include <fstream>
#include <vector>

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  const collage::Program program(argv[1]);
  collage::Session session(program);
  std::vector<float> x(collage_program_input(program.get(), 0, 0).bytes / sizeof(float));
  std::vector<float> y(collage_program_output(program.get(), 0, 0).bytes / sizeof(float));
  std::ifstream(argv[2], std::ios::binary).read(reinterpret_cast<char*>(x.data()), static_cast<std::streamsize>(x.size() * sizeof(float)));
  session.Run({collage::Input(x)}, {collage::Output(y)});
  for (const float value : y) std::printf("%.9g\n", value);
  return 0;
} catch (const collage::Exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
