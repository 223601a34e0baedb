// Kernels that call a library, beside the library's kernel and generated code one after the other: bench_library_calls [THREADS [ROWS...]].
// Feed-forward layers of BERT base (768 -> 3072 -> 768) and attention scores of 12 heads, for 128, 512, 2048 and 8192 rows unless others
// are given. All forms of one layer race in interleaved rounds (cost/race.h); a ratio is the median over the rounds of a form's time by
// that of "apart", the best variants of the library's product and of the generated kernel behind it; "apart again" is the same program once
// more. Nothing is asserted: what is faster is for each compile to measure.

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "collage/backend/registry.h"
#include "collage/cost/comparison.h"
#include "collage/ir/parse.h"
#include "collage/lower/lower.h"
#include "collage/measure/race.h"
#include "collage/op/table.h"
#include "collage/support/check.h"

namespace collage {
namespace {

/// A layer: a product, and what follows. Bodies are bindings that begin at %1 and use %x (and %r); `rest` begins with %p.
struct Layer {
  std::string name;
  std::string label;
  std::string parameters;  ///< of the whole: "%x: .., %r: .."
  std::string product_parameters, product_arguments, product;
  std::string given;  ///< type of what the product gives
  std::string rest_parameters, rest_arguments, rest;
  std::string result;
  /// The whole layer by the library's own kernels, as a program; empty where there is none.
  std::string fused;
};

std::string Matrix(int64_t rows, int64_t columns) {
  return "Tensor[(" + std::to_string(rows) + ", " + std::to_string(columns) + "), float32]";
}
std::string Vector(int64_t columns) { return "Tensor[(" + std::to_string(columns) + "), float32]"; }
std::string Weight(int number, const std::string& type) { return "meta[relay.Constant][" + std::to_string(number) + "] /*" + type + "*/"; }

std::string DenseBias(int64_t depth, int64_t columns) {
  return "%1 = nn.dense(%x, " + Weight(0, Matrix(columns, depth)) + "); %2 = nn.bias_add(%1, " + Weight(1, Vector(columns)) + ", axis=-1);";
}
constexpr const char* kGelu = "%3 = multiply(%p, 0.70710678f); %4 = erf(%3); %5 = add(%4, 1f); %6 = multiply(%p, %5); multiply(%6, 0.5f)";
constexpr const char* kGeluByTanh =
    "%3 = power(%p, 3f); %4 = multiply(%3, 0.044715f); %5 = add(%p, %4); %6 = multiply(%5, 0.7978846f); %7 = tanh(%6); %8 = add(%7, 1f); "
    "%9 = multiply(%p, %8); multiply(%9, 0.5f)";

std::string Kernel(const std::string& number, const std::string& parameters, const std::string& attributes, const std::string& result,
                   const std::string& body) {
  return "%" + number + " = fn (" + parameters + ", " + attributes + ") -> " + result + " { " + body + " };\n";
}

Layer WideLayer(int64_t rows, const char* activation, const char* name) {
  const std::string in = Matrix(rows, 768);
  const std::string out = Matrix(rows, 3072);
  Layer layer{name, "dnnl.dense_bias", "%x: " + in, "%x: " + in, "%x", DenseBias(768, 3072) + " %2",
              out,  "%p: " + out,      "",          activation,  out,  ""};
  if (activation == kGelu) {
    std::string body = kGelu;
    for (size_t at; (at = body.find("%p")) != std::string::npos;) body.replace(at, 2, "%2");
    layer.fused = Kernel("20", "%x: " + in, "Primitive=1, Compiler=\"dnnl\"", out, DenseBias(768, 3072) + " " + body) + "%20(%x)";
  }
  return layer;
}

Layer NarrowLayer(int64_t rows) {
  const std::string in = Matrix(rows, 3072);
  const std::string out = Matrix(rows, 768);
  const std::string norm = "nn.layer_norm(%3, " + Weight(2, Vector(768)) + ", " + Weight(3, Vector(768)) + ")";
  Layer layer{"3072 -> 768, bias, residual, layer norm",
              "dnnl.dense_bias",
              "%x: " + in + ", %r: " + out,
              "%x: " + in,
              "%x",
              DenseBias(3072, 768) + " %2",
              out,
              "%p: " + out + ", %r: " + out,
              ", %r",
              "%3 = add(%p, %r); " + norm,
              out,
              ""};
  layer.fused = Kernel("20", "%x: " + in + ", %r: " + out, "Primitive=1, Compiler=\"dnnl\"", out, DenseBias(3072, 768) + " add(%2, %r)") +
                "%21 = %20(%x, %r);\n" + Kernel("22", "%3: " + out, "Primitive=1, Compiler=\"dnnl\"", out, norm) + "%22(%21)";
  return layer;
}

Layer Scores(int64_t rows) {
  const std::string heads = "Tensor[(12, " + std::to_string(rows) + ", 64), float32]";
  const std::string out = "Tensor[(12, " + std::to_string(rows) + ", " + std::to_string(rows) + "), float32]";
  const std::string parameters = "%x: " + heads + ", %r: " + heads;
  return {"12 heads of 64, scores, softmax",
          "dnnl.batch_matmul",
          parameters,
          parameters,
          "%x, %r",
          "%1 = nn.batch_matmul(%x, %r); multiply(%1, 0.125f)",
          out,
          "%p: " + out,
          "",
          "nn.softmax(%p)",
          out,
          ""};
}

std::string Program(const Layer& layer, const std::string& body) {
  return "fn (" + layer.parameters + ") -> " + layer.result + " {\n" + body + "\n}";
}

std::string Apart(const Layer& layer, const std::string& product_variant, const std::string& rest_variant) {
  return Program(layer, Kernel("20", layer.product_parameters, "Primitive=1, Compiler=\"dnnl\", Variant=\"" + product_variant + "\"",
                               layer.given, layer.product) +
                            "%21 = %20(" + layer.product_arguments + ");\n" +
                            Kernel("22", layer.rest_parameters, "Primitive=1, Variant=\"" + rest_variant + "\"", layer.result, layer.rest) +
                            "%22(%21" + layer.rest_arguments + ")");
}

std::string Calling(const Layer& layer, const std::string& variant) {
  const std::string composite = Kernel("20", layer.product_parameters, "Composite=\"" + layer.label + "\"", layer.given, layer.product);
  return Program(layer, Kernel("22", layer.parameters, "Primitive=1, Variant=\"" + variant + "\"", layer.result,
                               composite + "%p = %20(" + layer.product_arguments + "); " + layer.rest) +
                            "%22(" + (layer.parameters.find("%r") == std::string::npos ? "%x" : "%x, %r") + ")");
}

template <class T>
T OrExit(Result<T> result, const std::string& what) {
  if (!result) {
    std::fprintf(stderr, "%s: %s\n", what.c_str(), result.error().message.c_str());
    std::exit(2);
  }
  return std::move(*result);
}

class Bench {
 public:
  explicit Bench(int threads) {
    options_.device.threads = threads;
    options_.find_backend = FindBackend;
  }

  void Run(const Layer& layer, int64_t rows) {
    const std::string apart = BestApart(layer);
    std::vector<std::pair<std::string, std::string>> forms = {{"apart", apart}, {"apart again", apart}};
    if (!layer.fused.empty()) forms.emplace_back("library alone", Program(layer, layer.fused));
    for (const std::string& variant : VariantsOf(Calling(layer, ""), "native")) forms.emplace_back(variant, Calling(layer, variant));
    const std::vector<RaceResult> results = RaceOf(forms, 10);
    std::printf("%s, %lld rows: %.3f ms apart\n", layer.name.c_str(), static_cast<long long>(rows), 1e3 * Median(results[0].rounds));
    for (size_t i = 1; i < results.size(); ++i)
      std::printf("  %-60s %.3f\n", forms[i].first.c_str(), PairedRatio(results[i].rounds, results[0].rounds));
    std::fflush(stdout);
  }

 private:
  static double Median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }

  IRModule Parsed(const std::string& text) const {
    ParseOptions options;
    options.missing_constant = RandomConstants(7);
    return OrExit(ParseModule(text, Operators(), options), text).module;
  }

  /// Of the first partition of that compiler.
  std::vector<std::string> VariantsOf(const std::string& text, const std::string& compiler) const {
    const PartitionProgram program = OrExit(ToPartitionProgram(Parsed(text)), text);
    std::vector<std::string> names;
    for (const PartitionCall& call : program.calls) {
      if (call.record.backend != compiler) continue;
      const Backend* backend = OrExit(options_.find_backend(compiler, options_.device), compiler);
      for (const Variant& variant : backend->Variants(*call.function->As<Function>(), options_.device)) names.push_back(variant.name);
      break;
    }
    return names;
  }

  std::string BestApart(const Layer& layer) const {
    std::vector<std::pair<std::string, std::string>> forms;
    const std::string any = Apart(layer, "", "");
    for (const std::string& product : VariantsOf(any, "dnnl")) {
      for (const std::string& rest : VariantsOf(any, "native")) forms.emplace_back(product + ", " + rest, Apart(layer, product, rest));
    }
    const std::vector<RaceResult> results = RaceOf(forms, 3);
    size_t best = 0;
    for (size_t i = 1; i < results.size(); ++i) {
      if (Median(results[i].rounds) < Median(results[best].rounds)) best = i;
    }
    return forms[best].second;
  }

  std::vector<RaceResult> RaceOf(const std::vector<std::pair<std::string, std::string>>& forms, double seconds) const {
    std::vector<LoweredModel> models;
    for (const auto& [name, text] : forms) models.push_back(OrExit(Lower(Parsed(text), options_), name));
    std::vector<Tensor> inputs;
    for (const NamedType& input : models[0].executable.inputs()) {
      inputs.emplace_back(input.type);
      FillRandom(inputs.back(), 1 + inputs.size());
    }
    std::vector<Tensor> outputs;
    for (const NamedType& output : models[0].executable.outputs()) outputs.emplace_back(output.type);
    std::vector<Contestant> contestants;
    for (size_t i = 0; i < forms.size(); ++i) {
      contestants.push_back({forms[i].first, [&, i] { return models[i].executable.Run(inputs, outputs); }});
    }
    RaceOptions race;
    race.budget_seconds = seconds;
    return Race(contestants, race, Progress());
  }

  LowerOptions options_;
};

}  // namespace
}  // namespace collage

int main(int count, char** words) {
  using namespace collage;  // NOLINT(google-build-using-namespace)
  Bench bench(count > 1 ? std::atoi(words[1]) : AvailableThreads());
  std::vector<int64_t> rows;
  for (int i = 2; i < count; ++i) rows.push_back(std::atoll(words[i]));
  if (rows.empty()) rows = {128, 512, 2048, 8192};
  for (const int64_t one : rows) {
    bench.Run(WideLayer(one, kGelu, "768 -> 3072, bias, GELU"), one);
    bench.Run(WideLayer(one, kGeluByTanh, "768 -> 3072, bias, GELU by tanh"), one);
    bench.Run(NarrowLayer(one), one);
    if (one <= 2048) bench.Run(Scores(one), one);
  }
  return 0;
}
