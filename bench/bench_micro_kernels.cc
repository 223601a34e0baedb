// Products and convolutions by libxsmm beside oneDNN and OpenBLAS: bench_micro_kernels [THREADS [SECONDS [NAME]]].
// NAME: only the cases whose names begin so.
// Layers of transformers, of ResNet-50 and of VGG, each alone and with the tail that models give it. All variants of all three race for
// SECONDS a shape (2 unless given) in interleaved rounds (cost/race.h), warm, on plain tensors as each variant wants them. Microseconds are
// the median of the best variant of each; a ratio is the median over the rounds of its time by libxsmm's best, under 1 where it is faster.
// "A/A" is that of libxsmm's best kernel once more. Nothing is asserted: what is faster is for each compile to measure.

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collage/backend/registry.h"
#include "collage/cost/comparison.h"
#include "collage/ir/parse.h"
#include "collage/measure/race.h"
#include "collage/op/table.h"
#include "collage/runtime/layout_conversion.h"
#include "collage/support/memory.h"

namespace collage {
namespace {

struct Case {
  std::string name;
  std::string program;
  double operations;
};

std::string TypeOf(const std::vector<int64_t>& extents) {
  std::string text;
  for (const int64_t extent : extents) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "Tensor[(" + text + "), float32]";
}
std::string Constant(int number, const std::vector<int64_t>& extents) {
  return "meta[relay.Constant][" + std::to_string(number) + "] /*" + TypeOf(extents) + "*/";
}

constexpr const char* kGelu = "%3 = multiply(%2, 0.70710678f); %4 = erf(%3); %5 = add(%4, 1f); %6 = multiply(%2, %5); multiply(%6, 0.5f)";

/// A dense layer; `tail` continues %2, the biased product. Without one it is the bare product.
Case DenseCase(int64_t rows, int64_t columns, int64_t depth, const std::string& tail_name, const std::string& tail) {
  const std::string result = TypeOf({rows, columns});
  std::string body = "nn.dense(%x, " + Constant(0, {columns, depth}) + ")";
  if (!tail.empty()) body = "%1 = " + body + "; %2 = nn.bias_add(%1, " + Constant(1, {columns}) + ", axis=-1); " + tail;
  const std::string parameters = "%x: " + TypeOf({rows, depth}) + (tail.find("%r") == std::string::npos ? "" : ", %r: " + result);
  return {std::to_string(rows) + "x" + std::to_string(depth) + "x" + std::to_string(columns) + tail_name,
          "fn (" + parameters + ") -> " + result + " { " + body + " }", 2.0 * static_cast<double>(rows * columns * depth)};
}

/// A convolution of a square image of `size` x `size` pixels by a window of odd extent, which keeps that size.
Case ConvolutionCase(int64_t size, int64_t inputs, int64_t outputs, int64_t window, bool has_tail) {
  const std::string result = TypeOf({1, outputs, size, size});
  std::string body = "nn.conv2d(%x, " + Constant(0, {outputs, inputs, window, window}) + ", padding=[" + std::to_string(window / 2) + ", " +
                     std::to_string(window / 2) + "])";
  if (has_tail) body = "%1 = " + body + "; %2 = nn.bias_add(%1, " + Constant(1, {outputs}) + "); %3 = add(%2, %r); nn.relu(%3)";
  const std::string parameters = "%x: " + TypeOf({1, inputs, size, size}) + (has_tail ? ", %r: " + result : "");
  return {"conv" + std::to_string(window) + " " + std::to_string(size * size) + "x" + std::to_string(inputs) + "x" +
              std::to_string(outputs) + (has_tail ? " bias+add+relu" : ""),
          "fn (" + parameters + ") -> " + result + " { " + body + " }",
          2.0 * static_cast<double>(size * size * inputs * outputs * window * window)};
}

/// The heads of attention: queries by keys.
Case ScoresCase(int64_t heads, int64_t rows, int64_t depth) {
  const std::string in = TypeOf({heads, rows, depth});
  const std::string result = TypeOf({heads, rows, rows});
  return {"scores " + std::to_string(heads) + "x" + std::to_string(rows) + "x" + std::to_string(depth),
          "fn (%x: " + in + ", %y: " + in + ") -> " + result + " { %1 = nn.batch_matmul(%x, %y); multiply(%1, 0.125f) }",
          2.0 * static_cast<double>(heads * rows * rows * depth)};
}

template <class T>
T OrExit(Result<T> result, const std::string& what) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s: %s\n", what.c_str(), result.error().message.c_str());
  std::exit(2);
}

/// A kernel with tensors of random numbers in the layouts that it wants.
class Running {
 public:
  Running(std::unique_ptr<Kernel> kernel, int threads)
      : kernel_(std::move(kernel)), workspace_(AllocateBuffer(kernel_->workspace_bytes())) {
    for (const Port& port : kernel_->inputs()) {
      Tensor plain(port.type);
      FillRandom(plain, 1 + inputs_.size());
      buffers_.push_back(AllocateBuffer(PhysicalByteCount(port.type, port.layout)));
      LayoutConversion(port.type, Layout(), port.layout, threads).Run(plain.Bytes(), buffers_.back().get());
      inputs_.push_back(buffers_.back().get());
    }
    const Port& output = kernel_->outputs()[0];
    buffers_.push_back(AllocateBuffer(PhysicalByteCount(output.type, output.layout)));
    outputs_ = {buffers_.back().get()};
    if (const auto accumulated = kernel_->accumulated_input()) inputs_[*accumulated] = outputs_[0];
  }
  Status operator()() { return kernel_->Run(inputs_, outputs_, workspace_.get()); }

 private:
  std::unique_ptr<Kernel> kernel_;
  std::shared_ptr<std::byte> workspace_;
  std::vector<std::shared_ptr<std::byte>> buffers_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

class Bench {
 public:
  Bench(int threads, double seconds) : seconds_(seconds) { device_.threads = threads; }

  void Run(const Case& one) const {
    const Expr parsed = Parse(one);
    std::vector<std::string> names;
    std::vector<std::unique_ptr<Running>> kernels;
    for (const char* library : {"xsmm", "dnnl", "openblas"}) {
      const Result<const Backend*> backend = FindBackend(library, device_);
      if (!backend) continue;
      for (const Variant& variant : (*backend)->Variants(*parsed->As<Function>(), device_)) {
        names.push_back(std::string(library) + " " + variant.name);
        kernels.push_back(std::make_unique<Running>(OrExit((*backend)->Compile(*parsed->As<Function>(), device_, variant), names.back()),
                                                    device_.threads));
      }
    }
    const std::vector<RaceResult> heats = RaceOf(names, kernels, seconds_ / 2);
    // The finals: the best of each library, and libxsmm's again.
    std::map<std::string, size_t> best;
    for (size_t i = 0; i < heats.size(); ++i) {
      const std::string library = names[i].substr(0, names[i].find(' '));
      if (heats[i].rounds.empty()) OrExit(Result<int>(Fail(heats[i].failure)), names[i]);
      const auto [at, is_first] = best.try_emplace(library, i);
      if (!is_first && Median(heats[i].rounds) < Median(heats[at->second].rounds)) at->second = i;
    }
    Print(one, names, kernels, best);
  }

 private:
  static Expr Parse(const Case& one) {
    ParseOptions options;
    options.missing_constant = RandomConstants(7);
    return OrExit(ParseModule(one.program, Operators(), options), one.program).module.MainExpr();
  }

  std::vector<RaceResult> RaceOf(const std::vector<std::string>& names, const std::vector<std::unique_ptr<Running>>& kernels,
                                 double seconds) const {
    std::vector<Contestant> contestants;
    for (size_t i = 0; i < names.size(); ++i) contestants.push_back({names[i], [&kernel = *kernels[i]] { return kernel(); }});
    return Race(contestants, Options(seconds), Progress());
  }

  [[nodiscard]] RaceOptions Options(double seconds) const {
    RaceOptions race;
    race.threads = device_.threads;
    race.budget_seconds = seconds;
    race.seconds_per_turn = 0.005;
    return race;
  }

  void Print(const Case& one, const std::vector<std::string>& names, const std::vector<std::unique_ptr<Running>>& kernels,
             const std::map<std::string, size_t>& best) const {
    std::vector<Contestant> contestants;
    const auto add = [&](const std::string& name, size_t kernel) {
      contestants.push_back({name, [&running = *kernels[kernel]] { return running(); }});
    };
    add("xsmm", best.at("xsmm"));
    add("A/A", best.at("xsmm"));
    for (const char* library : {"dnnl", "openblas"}) {
      if (best.contains(library)) add(library, best.at(library));
    }
    RaceOptions options = Options(seconds_ / 2);
    options.declared.smallest_difference = 0;  // no one leaves early: all ratios are wanted
    const std::vector<RaceResult> results = Race(contestants, options, Progress());
    const double seconds = Median(results[0].rounds);
    std::printf("%-34s %9.1f us %7.1f GFLOP/s", one.name.c_str(), 1e6 * seconds, 1e-9 * one.operations / seconds);
    for (size_t i = 1; i < results.size(); ++i)
      std::printf("  %s %.3f", contestants[i].name.c_str(), PairedRatio(results[i].rounds, results[0].rounds));
    std::printf("\n");
    for (const auto& [library, kernel] : best) std::printf("    %s\n", names[kernel].c_str());
    std::fflush(stdout);
  }

  Device device_;
  double seconds_;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  const std::vector<std::vector<int64_t>> shapes = {{64, 1024, 256}, {64, 256, 1024},  {64, 256, 256}, {128, 3072, 768},
                                                    {197, 768, 768}, {197, 768, 3072}, {1, 3072, 768}};
  for (const auto& shape : shapes) cases.push_back(DenseCase(shape[0], shape[1], shape[2], "", ""));
  cases.push_back(DenseCase(64, 1024, 256, " bias+gelu", kGelu));
  cases.push_back(DenseCase(64, 256, 1024, " bias+add", "add(%2, %r)"));
  cases.push_back(DenseCase(128, 3072, 768, " bias+gelu", kGelu));
  cases.push_back(ScoresCase(4, 64, 64));
  cases.push_back(ScoresCase(12, 197, 64));
  for (const bool has_tail : {false, true}) {
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{56, 64, 256}, {28, 512, 128}, {14, 256, 1024}, {7, 2048, 512}})
      cases.push_back(ConvolutionCase(shape[0], shape[1], shape[2], 1, has_tail));
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{224, 64, 64},
                                                                               {112, 128, 128},
                                                                               {56, 256, 256},
                                                                               {28, 512, 512},
                                                                               {14, 512, 512},
                                                                               {56, 64, 64},
                                                                               {28, 128, 128},
                                                                               {14, 256, 256},
                                                                               {7, 512, 512}})
      cases.push_back(ConvolutionCase(shape[0], shape[1], shape[2], 3, has_tail));
  }
  return cases;
}

}  // namespace
}  // namespace collage

int main(int count, char** words) {
  using namespace collage;  // NOLINT(google-build-using-namespace)
  const Bench bench(count > 1 ? std::atoi(words[1]) : AvailableThreads(), count > 2 ? std::atof(words[2]) : 2);
  for (const Case& one : Cases()) {
    if (count <= 3 || one.name.starts_with(words[3])) bench.Run(one);
  }
  return 0;
}
