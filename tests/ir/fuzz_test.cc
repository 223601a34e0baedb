#include <gtest/gtest.h>

#include <random>

#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/ir/structural.h"
#include "collage/ir/verify.h"
#include "tests/ir/parsed.h"
#include "tests/ir/programs.h"
#include "tests/support/rounds.h"

namespace collage {
namespace {

const char* const kControlFlow = R"(def @main(%c: bool, %x: Tensor[(4, 2), float32]) -> (Tensor[(4, 2), float32], bool) {
  let %f = fn (%n: Tensor[(4, 2), float32]) -> Tensor[(4, 2), float32] {
    if (%c) { %n } else { %f(subtract(%n, 1f)) }
  };
  %0 = split(%x);
  %1 = concatenate((%0.0, %0.1));
  let %z: Tensor[(4, 2), float32] = (let %q = exp(%1); add(%q, %q));
  (@helper(%f(%z)), True)
}
def @helper(%x: Tensor[(4, 2), float32], Primitive=1) -> Tensor[(4, 2), float32] {
  annotate(%x, list=[[1, 2f], "a", None], text="b", flag=True, float=1e-05f) /* the end */
}
)";

// Deletes, doubles, swaps and overwrites characters, and splices pieces of the text into other places.
std::string Mutated(std::string text, std::mt19937& random) {
  const auto below = [&](size_t bound) { return bound ? random() % bound : 0; };
  for (size_t edits = 1 + below(3); edits > 0 && !text.empty(); --edits) {
    const size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text.erase(at, 1 + below(8));
        break;
      case 1:
        text.insert(at, text.substr(below(text.size()), 1 + below(30)));
        break;
      case 2:
        text[at] = "(){}[],;:=.%@\"/*# \n0123456789-efx"[below(33)];
        break;
      case 3:
        std::swap(text[at], text[below(text.size())]);
        break;
      default:
        text.resize(at);
        break;
    }
  }
  return text;
}

// Whatever the text: an error with a place, or a module that verification can judge and that survives printing.
void Check(const std::string& text) {
  ParseOptions options;
  options.missing_constant = ZeroConstants();
  const Result<ParsedModule> parsed = ParseModule(text, SmallTable(), options);
  if (!parsed) {
    EXPECT_TRUE(std::isdigit(static_cast<unsigned char>(parsed.error().message[0]))) << parsed.error().message;
    return;
  }
  const Status verified = Verify(parsed->module);
  if (!verified) {
    EXPECT_FALSE(verified.error().message.empty());
    return;
  }
  const PrintedText printed = PrintModule(parsed->module);
  ParseOptions table;
  table.constants = printed.constants;
  const Result<ParsedModule> again = ParseModule(printed.text, SmallTable(), table);
  ASSERT_TRUE(again.has_value()) << again.error().message << "\n" << printed.text;
  EXPECT_TRUE(StructuralEqual(parsed->module, again->module)) << printed.text;
  EXPECT_EQ(Print(again->module), printed.text);
}

TEST(Fuzz, MutatedTextsNeverCrash) {
  std::mt19937 random(20260101);
  for (const char* seed : {kMnist, kPartitionedMnist, kControlFlow}) {
    Check(seed);
    for (size_t i = 0; i < Rounds(3000); ++i) Check(Mutated(seed, random));
  }
}

}  // namespace
}  // namespace collage
