#include <gtest/gtest.h>

#include <random>

#include "collage/ir/structural.h"
#include "collage/transform/pass.h"
#include "tests/support/rounds.h"
#include "tests/transform/pass_testing.h"

namespace collage {
namespace {

// Writes a program over (1, 4, 6, 6) data in which passes find work: convolutions that are normalised, padded, scaled and
// shared, repeated expressions, chains of views, neutral arithmetic, lets and branches.
class Writer {
 public:
  explicit Writer(uint32_t seed) : random_(seed) {}

  std::string Write(size_t operators) {
    std::string text = "fn (%x: Tensor[(1, 4, 6, 6), float32], %c: bool) {\n";
    while (values_.size() < operators + 1) text += Statement();
    return text + "(" + values_.back() + ", " + Any() + ")\n}\n";
  }

 private:
  size_t Below(size_t bound) { return random_() % bound; }
  // Mostly the newest value, so that chains are long.
  std::string Any() { return values_[Below(3) ? values_.size() - 1 : Below(values_.size())]; }
  // One of few constants, so that equal expressions occur.
  std::string ConstantOf(const std::string& shape, size_t kind) {
    const size_t index = 10 * kind + Below(3);
    return "meta[relay.Constant][" + std::to_string(index) + "] /*Tensor[" + shape + ", float32]*/";
  }
  std::string Convolution(const std::string& data, const std::string& attributes) {
    return "tanh(nn.conv2d(" + data + ", " + ConstantOf("(4, 4, 3, 3)", 0) + attributes + "))";
  }
  std::string Bare(const std::string& data) { return "nn.conv2d(" + data + ", " + ConstantOf("(4, 4, 1, 1)", 1) + ")"; }
  std::string Normalised(const std::string& data) {
    std::string text = "nn.batch_norm(" + data;
    for (size_t kind = 2; kind < 6; ++kind) text += ", " + ConstantOf("(4,)", kind);
    return text + ").0";
  }

  std::string Expression() {
    const std::string a = Any();
    switch (Below(16)) {
      case 0:
        return Convolution(a, ", padding=[1, 1, 1, 1]");
      case 1:
        return Convolution("nn.pad(" + a + ", 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])", "");
      case 2:
        return "tanh(" + Normalised(Bare(a)) + ")";
      case 3:
        return "tanh(" + Normalised("nn.bias_add(" + Bare(a) + ", " + ConstantOf("(4,)", 6) + ")") + ")";
      case 4:
        return Normalised(a);
      case 5:
        return "multiply(" + Bare(a) + ", " + ConstantOf("(4, 1, 1)", 7) + ")";
      case 6:
        return "add(" + a + ", " + ConstantOf("(1, 4, 1, 1)", 8) + ")";
      case 7:
        return Bare(a);
      case 8:
        return "tanh(power(" + a + ", 2f))";
      case 9:
        return "divide(" + a + ", 4f)";
      case 10:
        return "reshape(reshape(" + a + ", newshape=[4, 36]), newshape=[1, 4, 6, 6])";
      case 11:
        return "transpose(transpose(" + a + ", axes=[0, 2, 3, 1]), axes=[0, 3, 1, 2])";
      case 12:
        return "nn.max_pool2d(nn.pad(nn.relu(" + a + "), 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), pool_size=[3, 3])";
      case 13:
        return "multiply(add(" + a + ", 0f), add(0.5f, 0.5f))";
      case 14:
        return "if (%c) { tanh(" + a + ") } else { add(tanh(" + a + "), tanh(" + Any() + ")) }";
      default:
        return "tanh(subtract(" + a + ", " + Any() + "))";
    }
  }

  std::string Statement() {
    const bool let = Below(5) == 0;
    const std::string name = (let ? "%y" : "%") + std::to_string(values_.size() - 1);
    std::string text = (let ? "let " : "") + name + " = " + Expression() + ";\n";
    values_.push_back(Below(8) ? name : values_[Below(values_.size())]);  // or the statement stays unused
    return text;
  }

  std::mt19937 random_;
  std::vector<std::string> values_ = {"%x"};
};

TEST(RandomPrograms, PassesKeepWhatTheyCompute) {
  const std::vector<Pass> passes = SafeGlobalPasses();
  for (uint32_t seed = 0; seed < Rounds(400); ++seed) {
    const std::string text = Writer(seed).Write(20);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    const IRModule before = ParsedForPass(text).module;
    for (const Pass& pass : passes) {
      SCOPED_TRACE(pass.name);
      AfterPass(pass.run, before, 1e-4);
    }
    const auto all = [&](const IRModule& module) { return RunPasses(module, passes); };
    const IRModule after = AfterPass(all, before, 1e-4);
    // What the passes make survives text, and running them again terminates and keeps the numbers.
    const PrintedText printed = PrintModule(after);
    ParseOptions options;
    options.constants = printed.constants;
    const Result<ParsedModule> again = ParseModule(printed.text, Operators(), options);
    ASSERT_TRUE(again.has_value()) << again.error().message << printed.text;
    EXPECT_TRUE(StructuralEqual(again->module, after)) << printed.text;
    AfterPass(all, after, 1e-4);
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace collage
