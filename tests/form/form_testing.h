#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "collage/form/form.h"
#include "collage/ir/parse.h"
#include "collage/ir/print.h"
#include "collage/op/interpreter.h"
#include "collage/op/table.h"

namespace collage {

/// Constants that the text leaves open are random.
inline Expr FunctionOf(const std::string& text) {
  ParseOptions options;
  options.missing_constant = [](size_t index, const TensorType& type) -> Result<Tensor> {
    Tensor tensor(type);
    FillRandom(tensor, 100 + index);
    return tensor;
  };
  Result<ParsedExpr> parsed = ParseExpr(text, Operators(), options);
  EXPECT_TRUE(parsed.has_value()) << (parsed ? "" : parsed.error().message) << "\n" << text;
  return parsed->expr;
}

inline std::vector<Tensor> ResultsOf(const Expr& function) {
  std::vector<Tensor> inputs;
  for (const Expr& parameter : function->As<Function>()->parameters) {
    inputs.emplace_back(*parameter->type().AsTensor());
    FillRandom(inputs.back(), inputs.size());
  }
  const Result<std::vector<Tensor>> results = InterpretFunction(function, inputs);
  EXPECT_TRUE(results.has_value()) << (results ? "" : results.error().message);
  return results.value_or(std::vector<Tensor>());
}

inline FormedGraph FormsIn(const Expr& function, const std::vector<FormRule>& rules) {
  Result<FormedGraph> formed = FindForms(std::make_shared<const DataflowGraph>(function), rules);
  EXPECT_TRUE(formed.has_value()) << (formed ? "" : formed.error().message);
  return *std::move(formed);
}

/// As text, with the form at this position applied.
inline Expr WithForm(const FormedGraph& formed, size_t form) { return ApplyForms(formed, {form}).value().function; }

/// Each form computes what the function does. `forms`: how many there are.
inline void ExpectEqualForms(const std::string& text, const FormRule& rule, size_t forms = 1) {
  const Expr function = FunctionOf(text);
  const FormedGraph formed = FormsIn(function, {rule});
  ASSERT_EQ(formed.forms.size(), forms) << text;
  const std::vector<Tensor> expected = ResultsOf(function);
  for (size_t form = 0; form < forms; ++form) {
    const std::vector<Tensor> actual = ResultsOf(WithForm(formed, form));
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      ASSERT_EQ(actual[i].type(), expected[i].type()) << text;
      ASSERT_LE(RelativeDifference(actual[i], expected[i]), 1e-5) << text << "\n" << PrintExpr(WithForm(formed, form)).text;
    }
  }
}

inline void ExpectNoForm(const std::string& text, const FormRule& rule) {
  EXPECT_TRUE(FormsIn(FunctionOf(text), {rule}).forms.empty()) << text;
}

}  // namespace collage
