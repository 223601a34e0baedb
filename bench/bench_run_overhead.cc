// bench_run_overhead PROGRAM: what collage_session_run adds to a run of the executor, on the same program and buffers. Prints, in
// microseconds, the lowest median of a run by the executor and by the C interface, of rounds that take turns.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "collage/c/collage.h"
#include "collage/lower/save.h"
#include "collage/support/clock.h"

namespace collage {
namespace {

constexpr int kRounds = 40;
constexpr int kRunsOfARound = 500;

template <class Run>
double MedianMicroseconds(const Run& run) {
  std::vector<double> samples;
  for (int i = 0; i < kRunsOfARound; ++i) {
    const Clock::time_point start = Clock::now();
    run();
    samples.push_back(Clock::SecondsSince(start) * 1e6);
  }
  std::nth_element(samples.begin(), samples.begin() + kRunsOfARound / 2, samples.end());
  return samples[kRunsOfARound / 2];
}

int Complain(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return 1;
}

int Main(const char* path) {
  collage_program* program = nullptr;
  collage_session* session = nullptr;
  collage_error* error = collage_program_load(path, nullptr, &program);
  if (!error) error = collage_session_create(program, &session);
  if (error) return Complain(collage_error_message(error));
  Result<LoweredModel> model = LoadProgram(path, Device{DeviceKind::kCpu, 0, collage_program_threads(program)});
  if (!model) return Complain(model.error().message);
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  std::vector<collage_input> in;
  std::vector<collage_output> out;
  for (const NamedType& input : model->executable.inputs()) {
    FillRandom(inputs.emplace_back(input.type), inputs.size());
    in.push_back({inputs.back().Bytes(), inputs.back().ByteCount()});
  }
  for (const NamedType& output : model->executable.outputs()) {
    outputs.emplace_back(output.type);
    out.push_back({outputs.back().MutableBytes(), outputs.back().ByteCount()});
  }
  Status status;
  double executor = 1e9;
  double interface = 1e9;
  for (int round = 0; round < kRounds && status && !error; ++round) {
    executor = std::min(executor, MedianMicroseconds([&] { status = model->executable.Run(inputs, outputs); }));
    interface = std::min(interface,
                         MedianMicroseconds([&] { error = collage_session_run(session, in.data(), in.size(), out.data(), out.size()); }));
  }
  if (!status) return Complain(status.error().message);
  if (error) return Complain(collage_error_message(error));
  std::printf("{\"executor_us\": %.3f, \"c_us\": %.3f}\n", executor, interface);
  collage_session_free(session);
  collage_program_free(program);
  return 0;
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) { return argc == 2 ? collage::Main(argv[1]) : collage::Complain("bench_run_overhead PROGRAM"); }
