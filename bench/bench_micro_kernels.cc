// Products and convolutions by libxsmm beside oneDNN and OpenBLAS: bench_micro_kernels [THREADS [SECONDS [NAME]]].
// NAME: only the cases whose names begin so.
// Layers of transformers, of ResNet-50 and of VGG, each alone and with the tail that models give it. All variants of all three race for
// SECONDS a shape (2 unless given) in interleaved rounds (cost/race.h), warm, on plain tensors as each variant wants them. Microseconds are
// the median of the best variant of each; a ratio is the median over the rounds of its time by libxsmm's best, under 1 where it is faster.
// "A/A" is that of libxsmm's best kernel once more. Nothing is asserted: what is faster is for each compile to measure.
// Cases named "chain" are blocks of MobileNet and EfficientNet: the chain in one kernel of libxsmm's, in its best schedule, beside the best
// kernel of any library for each convolution, run one after another ("apart"; each reads what the one before has written where they want
// the same layout, and no conversion is counted).
// Cases named "attention" are such a chain as well.
// Cases named "groups" count no products with zeros; "merged" computes the same with several groups as one, zeros between.
// Cases named "decode" are the products of GPT-2 with few rows and int8-weights permitted: the first is libxsmm's kernel of integers then,
// and "xsmm" its kernel of float32. They are warm as well: what a cache holds does not show what fewer bytes from memory gain.

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collage/backend/registry.h"
#include "collage/backend/tuning.h"
#include "collage/cost/comparison.h"
#include "collage/ir/parse.h"
#include "collage/ir/permitted_precision.h"
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
  std::vector<std::string> parts = {};  ///< of a chain: programs that compute the same one after another
  std::string permit = {};              ///< kernels that use it come first
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

/// A convolution of a square image of `size` x `size` pixels, padded by half of the window on each side.
Case ConvolutionCase(int64_t size, int64_t inputs, int64_t outputs, int64_t window, bool has_tail, int64_t stride = 1) {
  const int64_t size_of_result = (size + window / 2 * 2 - window) / stride + 1;
  const std::string result = TypeOf({1, outputs, size_of_result, size_of_result});
  std::string body = "nn.conv2d(%x, " + Constant(0, {outputs, inputs, window, window}) + ", padding=[" + std::to_string(window / 2) + ", " +
                     std::to_string(window / 2) + "], strides=[" + std::to_string(stride) + ", " + std::to_string(stride) + "])";
  if (has_tail) body = "%1 = " + body + "; %2 = nn.bias_add(%1, " + Constant(1, {outputs}) + "); %3 = add(%2, %r); nn.relu(%3)";
  const std::string parameters = "%x: " + TypeOf({1, inputs, size, size}) + (has_tail ? ", %r: " + result : "");
  return {"conv" + std::to_string(window) + (stride > 1 ? "/" + std::to_string(stride) : "") + " " + std::to_string(size * size) + "x" +
              std::to_string(inputs) + "x" + std::to_string(outputs) + (has_tail ? " bias+add+relu" : ""),
          "fn (" + parameters + ") -> " + result + " { " + body + " }",
          2.0 * static_cast<double>(size_of_result * size_of_result * inputs * outputs * window * window)};
}

/// A convolution by 3x3 of a square image in groups of `width` channels; computed in groups of `merged`, where all but `width` weights of
/// each channel are zero. Operations are those that are no products with zeros.
Case GroupsCase(int64_t size, int64_t channels, int64_t width, int64_t merged, int64_t stride) {
  const int64_t size_of_result = (size - 1) / stride + 1;
  const std::string result = TypeOf({1, channels, size_of_result, size_of_result});
  const std::string body = "nn.conv2d(%x, " + Constant(0, {channels, merged, 3, 3}) +
                           ", padding=[1, 1], groups=" + std::to_string(channels / merged) + ", strides=[" + std::to_string(stride) + ", " +
                           std::to_string(stride) + "])";
  return {"groups" + (stride > 1 ? "/" + std::to_string(stride) : std::string()) + " " + std::to_string(size * size) + "x" +
              std::to_string(channels) + " by " + std::to_string(width) + (merged > width ? " merged" : ""),
          "fn (%x: " + TypeOf({1, channels, size, size}) + ") -> " + result + " { %1 = " + body + "; %2 = nn.bias_add(%1, " +
              Constant(1, {channels}) + "); nn.relu(%2) }",
          2.0 * static_cast<double>(size_of_result * size_of_result * channels * width * 9)};
}

/// The heads of attention: queries by keys.
Case ScoresCase(int64_t heads, int64_t rows, int64_t depth) {
  const std::string in = TypeOf({heads, rows, depth});
  const std::string result = TypeOf({heads, rows, rows});
  return {"scores " + std::to_string(heads) + "x" + std::to_string(rows) + "x" + std::to_string(depth),
          "fn (%x: " + in + ", %y: " + in + ") -> " + result + " { %1 = nn.batch_matmul(%x, %y); multiply(%1, 0.125f) }",
          2.0 * static_cast<double>(heads * rows * rows * depth)};
}

/// Attention of so many queries to as many keys, and its steps apart.
Case AttentionCase(int64_t heads, int64_t rows, int64_t depth) {
  const std::string in = TypeOf({heads, rows, depth});
  const std::string scores = TypeOf({heads, rows, rows});
  const std::string scaled = "%1 = nn.matmul(%x, %k, transpose_b=True); ";
  return {"attention " + std::to_string(heads) + "x" + std::to_string(rows) + "x" + std::to_string(depth),
          "fn (%x: " + in + ", %k: " + in + ", %v: " + in + ") -> " + in + " { " + scaled +
              "%2 = multiply(%1, 0.125f); %3 = nn.softmax(%2); nn.matmul(%3, %v) }",
          4.0 * static_cast<double>(heads * rows * rows * depth),
          {"fn (%x: " + in + ", %k: " + in + ") -> " + scores + " { " + scaled + "multiply(%1, 0.125f) }",
           "fn (%x: " + scores + ") -> " + scores + " { nn.softmax(%x) }",
           "fn (%x: " + scores + ", %v: " + in + ") -> " + in + " { nn.matmul(%x, %v) }"}};
}

/// A convolution of a chain by 1x1, or depthwise where `window` is larger.
struct Layer {
  int64_t window, stride, channels;
  std::string activation;  ///< "", "clip" or "silu"
};

/// Statements for one layer on `data`, which has `inputs` channels, from %`value` and constant `constant` on; both move on.
std::string LayerText(const Layer& layer, int64_t inputs, std::string data, int& value, int& constant) {
  const auto next = [&](const std::string& call) {
    const std::string name = "%" + std::to_string(++value);
    data = name;
    return name + " = " + call + "; ";
  };
  const bool is_depthwise = layer.window > 1;
  const std::string pad = std::to_string(layer.window / 2);
  const std::string stride = std::to_string(layer.stride);
  std::string text =
      next("nn.conv2d(" + data + ", " + Constant(constant, {layer.channels, is_depthwise ? 1 : inputs, layer.window, layer.window}) +
           ", padding=[" + pad + ", " + pad + "], strides=[" + stride + ", " + stride +
           "], groups=" + std::to_string(is_depthwise ? inputs : 1) + ")");
  text += next("nn.bias_add(" + data + ", " + Constant(constant + 1, {layer.channels}) + ")");
  constant += 2;
  if (layer.activation == "clip") text += next("clip(" + data + ", a_min=0f, a_max=6f)");
  if (layer.activation == "silu") {
    const std::string biased = data;
    text += next("sigmoid(" + biased + ")");
    text += next("multiply(" + biased + ", " + data + ")");
  }
  return text;
}

/// A chain on a square image; with `adds` its data are added to its result.
Case ChainCase(int64_t size, int64_t inputs, const std::vector<Layer>& layers, bool adds) {
  const std::string input = TypeOf({1, inputs, size, size});
  Case chain{"chain " + std::to_string(size) + "x" + std::to_string(size) + "x" + std::to_string(inputs), "", 0, {}};
  std::string body;
  int value = 0;
  int constant = 0;
  std::string result = input;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = layers[i];
    const bool is_last = i + 1 == layers.size();
    const std::string data = i == 0 ? "%x" : "%" + std::to_string(value);
    body += LayerText(layer, inputs, data, value, constant);
    int part_value = 0;
    int part_constant = 0;
    std::string part = LayerText(layer, inputs, "%x", part_value, part_constant);
    part += is_last && adds ? "add(%" + std::to_string(part_value) + ", %r)" : "%" + std::to_string(part_value);
    size = (size - 1) / layer.stride + 1;
    const std::string read = result;
    result = TypeOf({1, layer.channels, size, size});
    chain.parts.push_back("fn (%x: " + read + (is_last && adds ? ", %r: " + result : "") + ") -> " + result + " { " + part + " }");
    chain.operations += 2.0 * static_cast<double>(size * size * layer.channels * (layer.window > 1 ? layer.window * layer.window : inputs));
    chain.name += " " + std::to_string(layer.window) + (layer.stride > 1 ? "/" + std::to_string(layer.stride) : "") + ":" +
                  std::to_string(layer.channels);
    inputs = layer.channels;
  }
  const std::string last = "%" + std::to_string(value);
  if (adds) chain.name += " +x";
  chain.program = "fn (%x: " + input + ") -> " + result + " { " + body + (adds ? "add(" + last + ", %x)" : last) + " }";
  return chain;
}

Case InvertedResidualCase(int64_t size, int64_t inputs, int64_t inner, int64_t stride, int64_t outputs) {
  return ChainCase(size, inputs, {{1, 1, inner, "clip"}, {3, stride, inner, "clip"}, {1, 1, outputs, ""}},
                   inputs == outputs && stride == 1);
}

template <class T>
T OrExit(Result<T> result, const std::string& what) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s: %s\n", what.c_str(), result.error().message.c_str());
  std::exit(2);
}

/// A kernel with tensors of random numbers in the layouts that it wants, or with the result of another as its first tensor.
class Running {
 public:
  Running(std::unique_ptr<Kernel> kernel, int threads, const Running* before = nullptr)
      : kernel_(std::move(kernel)), workspace_(AllocateBuffer(kernel_->workspace_bytes())) {
    for (const Port& port : kernel_->inputs()) {
      if (before && inputs_.empty() && before->kernel_->outputs()[0].layout == port.layout) {
        buffers_.push_back(before->buffers_.back());
        inputs_.push_back(buffers_.back().get());
        continue;
      }
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
    if (!one.parts.empty()) return RunChain(one);
    Expr parsed = Parse(one.program);
    if (!one.permit.empty()) parsed = WithPrecision(parsed, OrExit(Precision::Parse(one.permit), one.name));
    std::vector<std::string> names;
    std::vector<std::unique_ptr<Running>> kernels;
    for (const char* library : {"xsmm", "dnnl", "openblas"}) {
      const Result<const Backend*> backend = FindBackend(library, device_);
      if (!backend) continue;
      for (const Variant& variant : (*backend)->Variants(*parsed->As<Function>(), device_)) {
        names.push_back((variant.uses_precision ? one.permit : library) + " " + variant.name);
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
    for (size_t i = 0; i < heats.size(); ++i) {
      if (names[i].starts_with("xsmm")) std::printf("    %s %.1f us in the heats\n", names[i].c_str(), Median(heats[i].rounds) * 1e6);
    }
    std::fflush(stdout);
  }

 private:
  static Expr Parse(const std::string& program) {
    ParseOptions options;
    options.missing_constant = RandomConstants(7);
    return OrExit(ParseModule(program, Operators(), options), program).module.MainExpr();
  }

  struct Choice {
    const Backend* backend;
    Variant variant;
  };
  [[nodiscard]] std::unique_ptr<Kernel> Compile(const Expr& function, const Choice& choice) const {
    return OrExit(choice.backend->Compile(*function->As<Function>(), device_, choice.variant), choice.variant.name);
  }

  /// The fastest of all variants in all schedules that these libraries have for the function.
  [[nodiscard]] Choice Fastest(const Expr& function, const std::vector<std::string>& libraries) const {
    std::vector<Choice> choices;
    std::vector<std::string> names;
    std::vector<std::unique_ptr<Running>> kernels;
    for (const std::string& library : libraries) {
      const Result<const Backend*> backend = FindBackend(library, device_);
      if (!backend) continue;
      for (const Variant& variant : (*backend)->Variants(*function->As<Function>(), device_)) {
        std::vector<TuningParameter> parameters;
        if (library == "xsmm") parameters = (*backend)->Tuning(*function->As<Function>(), device_, variant);
        const size_t values = parameters.empty() ? 1 : parameters[0].values.size();
        for (size_t value = 0; value < values; ++value) {
          const Variant tuned = parameters.empty() ? variant : TunedVariant(variant, parameters, {value});
          choices.push_back({*backend, tuned});
          names.push_back(library + " " + tuned.name);
          kernels.push_back(std::make_unique<Running>(Compile(function, choices.back()), device_.threads));
        }
      }
    }
    if (choices.empty()) OrExit(Result<int>(Fail("no library has a kernel")), "bench_micro_kernels");
    const std::vector<RaceResult> heats = RaceOf(names, kernels, seconds_ / 2);
    size_t best = 0;
    for (size_t i = 0; i < heats.size(); ++i) {
      if (heats[i].rounds.empty()) OrExit(Result<int>(Fail(heats[i].failure)), names[i]);
      if (Median(heats[i].rounds) < Median(heats[best].rounds)) best = i;
    }
    return choices[best];
  }

  void RunChain(const Case& one) const {
    const Expr whole = Parse(one.program);
    const Choice fused = Fastest(whole, {"xsmm"});
    Running chain(Compile(whole, fused), device_.threads);
    std::vector<std::unique_ptr<Running>> parts;
    std::string names = "xsmm " + fused.variant.name + "; apart";
    for (const std::string& program : one.parts) {
      const Expr part = Parse(program);
      const Choice choice = Fastest(part, {"xsmm", "dnnl", "xnnpack", "native"});
      const Running* before = parts.empty() ? nullptr : parts.back().get();
      parts.push_back(std::make_unique<Running>(Compile(part, choice), device_.threads, before));
      names += " " + std::string(choice.backend->Name()) + " " + choice.variant.name;
    }
    const auto run_apart = [&]() -> Status {
      for (const auto& part : parts) COLLAGE_TRY_STATUS((*part)());
      return {};
    };
    RaceOptions options = Options(seconds_);
    options.declared.smallest_difference = 0;  // no one leaves early: all ratios are wanted
    const std::vector<Contestant> contestants = {{"xsmm", [&] { return chain(); }}, {"A/A", [&] { return chain(); }}, {"apart", run_apart}};
    PrintResults(one, contestants, Race(contestants, options, Progress()));
    std::printf("    %s\n", names.c_str());
    std::fflush(stdout);
  }

  static void PrintResults(const Case& one, const std::vector<Contestant>& contestants, const std::vector<RaceResult>& results) {
    const double seconds = Median(results[0].rounds);
    std::printf("%-34s %9.1f us %7.1f GFLOP/s", one.name.c_str(), 1e6 * seconds, 1e-9 * one.operations / seconds);
    for (size_t i = 1; i < results.size(); ++i)
      std::printf("  %s %.3f", contestants[i].name.c_str(), PairedRatio(results[i].rounds, results[0].rounds));
    std::printf("\n");
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
    const std::string first = one.permit.empty() ? "xsmm" : one.permit;
    if (!best.contains(first)) OrExit(Result<int>(Fail("no library has a kernel of " + first)), one.name);
    add(first, best.at(first));
    add("A/A", best.at(first));
    for (const char* library : {"xsmm", "dnnl", "openblas"}) {
      if (library != first && best.contains(library)) add(library, best.at(library));
    }
    RaceOptions options = Options(seconds_ / 2);
    options.declared.smallest_difference = 0;  // no one leaves early: all ratios are wanted
    PrintResults(one, contestants, Race(contestants, options, Progress()));
    for (const auto& [library, kernel] : best) std::printf("    %s\n", names[kernel].c_str());
  }

  Device device_;
  double seconds_;
};

void AddChains(std::vector<Case>& cases) {
  // The blocks of MobileNet v2.
  cases.push_back(ChainCase(112, 32, {{3, 1, 32, "clip"}, {1, 1, 16, ""}}, false));
  for (const std::vector<int64_t>& block : std::vector<std::vector<int64_t>>{{112, 16, 96, 2, 24},
                                                                             {56, 24, 144, 1, 24},
                                                                             {56, 24, 144, 2, 32},
                                                                             {28, 32, 192, 1, 32},
                                                                             {28, 32, 192, 2, 64},
                                                                             {14, 64, 384, 1, 64},
                                                                             {14, 64, 384, 1, 96},
                                                                             {14, 96, 576, 1, 96},
                                                                             {14, 96, 576, 2, 160},
                                                                             {7, 160, 960, 1, 160},
                                                                             {7, 160, 960, 1, 320}})
    cases.push_back(InvertedResidualCase(block[0], block[1], block[2], block[3], block[4]));
  // The first two convolutions of blocks of EfficientNet-B0.
  for (const std::vector<int64_t>& block : std::vector<std::vector<int64_t>>{{112, 16, 96, 3, 2},
                                                                             {56, 24, 144, 3, 1},
                                                                             {56, 24, 144, 5, 2},
                                                                             {28, 40, 240, 5, 1},
                                                                             {14, 80, 480, 3, 1},
                                                                             {14, 112, 672, 5, 1},
                                                                             {7, 192, 1152, 5, 1}})
    cases.push_back(ChainCase(block[0], block[1], {{1, 1, block[2], "silu"}, {block[3], block[4], block[2], "silu"}}, false));
  // Pairs of MobileNet v1.
  for (const std::vector<int64_t>& pair : std::vector<std::vector<int64_t>>{
           {112, 32, 1, 64}, {56, 128, 1, 128}, {28, 256, 1, 256}, {14, 512, 1, 512}, {14, 512, 2, 1024}, {7, 1024, 1, 1024}})
    cases.push_back(ChainCase(pair[0], pair[1], {{3, pair[2], pair[1], "clip"}, {1, 1, pair[3], "clip"}}, false));
}

void AddDecodeSteps(std::vector<Case>& cases) {
  for (const int64_t rows : {1, 4, 16}) {
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{768, 2304}, {768, 768}, {768, 3072}, {3072, 768}, {768, 50257}}) {
      Case one = DenseCase(rows, shape[1], shape[0], "", "");
      one.name = "decode " + one.name;
      one.permit = "int8-weights";
      cases.push_back(std::move(one));
    }
  }
}

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
    // As which DCGAN's transposed convolutions run.
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{4, 1024, 2048}, {8, 512, 1024}, {16, 256, 512}, {32, 128, 256}})
      cases.push_back(ConvolutionCase(shape[0], shape[1], shape[2], 2, has_tail));
    // Of Inception and AlexNet.
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{28, 16, 32}, {28, 32, 96}, {14, 32, 128}, {27, 64, 192}})
      cases.push_back(ConvolutionCase(shape[0], shape[1], shape[2], 5, has_tail));
    // Of ResNets.
    cases.push_back(ConvolutionCase(224, 3, 64, 7, has_tail, 2));
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{56, 128, 128}, {28, 256, 256}, {14, 512, 512}})
      cases.push_back(ConvolutionCase(shape[0], shape[1], shape[2], 3, has_tail, 2));
  }
  // Of ResNeXt and RegNet: size, channels, width, in how wide groups, stride.
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{56, 128, 4, 4, 1},
                                                                             {56, 128, 4, 16, 1},
                                                                             {56, 256, 8, 8, 2},
                                                                             {56, 256, 8, 16, 2},
                                                                             {28, 256, 8, 8, 1},
                                                                             {28, 256, 8, 16, 1},
                                                                             {28, 144, 24, 24, 1},
                                                                             {28, 96, 6, 6, 1}})
    cases.push_back(GroupsCase(shape[0], shape[1], shape[2], shape[3], shape[4]));
  // Of BERT, ViT, a latent of a diffusion model, Whisper.
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{4, 64, 64}, {12, 197, 64}, {8, 1024, 40}, {6, 1500, 64}})
    cases.push_back(AttentionCase(shape[0], shape[1], shape[2]));
  AddChains(cases);
  AddDecodeSteps(cases);
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
