#pragma once

// Text in, text out, and the same numbers from both.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/ir/verify.h"
#include "collage/ir/visit.h"
#include "collage/op/interpreter.h"
#include "collage/op/table.h"

namespace collage {

/// Constants that the text leaves open are uniform in [0.5, 1.5), so that they can be variances and divisors.
inline ParsedModule ParsedForPass(const std::string& text) {
  ParseOptions options;
  options.missing_constant = [](size_t index, const TensorType& type) -> Result<Tensor> {
    Tensor tensor(type);
    FillRandom(tensor, 100 + index, 0.5, 1.5);
    return tensor;
  };
  Result<ParsedModule> parsed = ParseModule(text, Operators(), options);
  EXPECT_TRUE(parsed.has_value()) << (parsed ? "" : parsed.error().message) << "\n" << text.substr(0, 2000);
  return parsed ? *std::move(parsed) : ParsedModule();
}

inline std::vector<Tensor> ResultsOf(const IRModule& module, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const Expr& parameter : module.Main().parameters) {
    for (const TensorType& type : FlattenTensors(parameter->type())) {
      inputs.emplace_back(type);
      FillRandom(inputs.back(), 10 * seed + inputs.size(), -2.0, 2.0);
    }
  }
  const Result<std::vector<Tensor>> results = InterpretMain(module, inputs);
  EXPECT_TRUE(results.has_value()) << results.error().message;
  return results.value_or(std::vector<Tensor>());
}

/// On three sets of inputs, so that conditions go both ways.
inline void ExpectSameResults(const IRModule& before, const IRModule& after, double tolerance) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const std::vector<Tensor> expected = ResultsOf(before, seed);
    const std::vector<Tensor> actual = ResultsOf(after, seed);
    ASSERT_EQ(expected.size(), actual.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(expected[i].type(), actual[i].type());
      EXPECT_LE(RelativeDifference(actual[i], expected[i]), tolerance);
    }
  }
}

inline std::set<std::string> PlacesOf(const IRModule& module) {
  std::set<std::string> places;
  for (const auto& [name, function] : module.functions()) {
    PostOrder(function, [&](const Expr& expr) {
      for (const OriginPart* part : expr->origin().Parts()) places.insert(part->text);
    });
  }
  return places;
}

/// Every call comes from something that was there before.
inline void ExpectOriginsKept(const IRModule& before, const IRModule& after) {
  const std::set<std::string> places = PlacesOf(before);
  for (const auto& [name, function] : after.functions()) {
    PostOrder(function, [&](const Expr& expr) {
      if (expr->As<Call>()) {
        EXPECT_FALSE(expr->origin().Empty()) << Print(expr);
      }
      for (const OriginPart* part : expr->origin().Parts()) EXPECT_TRUE(places.contains(part->text)) << part->text;
    });
  }
}

/// What a pass makes of a module, verified and run beside it, with the origin of every call checked.
template <class PassFunction>
IRModule AfterPass(const PassFunction& pass, const IRModule& before, double tolerance = 0) {
  Result<IRModule> after = pass(before);
  EXPECT_TRUE(after.has_value()) << after.error().message;
  if (!after) return before;
  const Status verified = Verify(*after);
  EXPECT_TRUE(verified.has_value()) << verified.error().message << "\n" << Print(*after);
  ExpectSameResults(before, *after, tolerance);
  ExpectOriginsKept(before, *after);
  return *std::move(after);
}

/// The body of @main after a pass, as text without the indentation.
template <class PassFunction>
std::string BodyAfter(const PassFunction& pass, const std::string& text, double tolerance = 0) {
  return Print(AfterPass(pass, ParsedForPass(text).module, tolerance).Main().body);
}

/// A function of (1, 4, 6, 6) data.
inline std::string OfImage(const std::string& body) { return "fn (%x: Tensor[(1, 4, 6, 6), float32]) { " + body + " }"; }

inline std::string ConstantText(size_t index, const std::string& shape) {
  return "meta[relay.Constant][" + std::to_string(index) + "] /*Tensor[" + shape + ", float32]*/";
}

}  // namespace collage
