#pragma once

#include <gtest/gtest.h>

#include <string>

#include "collage/ir/parse.h"
#include "tests/ir/small_table.h"

namespace collage {

/// Parses a text that is right, with constants made up.
inline ParsedModule Parsed(const std::string& text, uint64_t seed = 1) {
  ParseOptions options;
  options.missing_constant = RandomConstants(seed);
  Result<ParsedModule> parsed = ParseModule(text, SmallTable(), options);
  EXPECT_TRUE(parsed.has_value()) << (parsed ? "" : parsed.error().message) << "\n" << text.substr(0, 2000);
  return parsed ? *std::move(parsed) : ParsedModule();
}

inline Expr ParsedMain(const std::string& text, uint64_t seed = 1) { return Parsed(text, seed).module.MainExpr(); }

/// fn (%x) { a chain of `length` additions, numbered or as lets }.
inline std::string ChainText(size_t length, bool lets) {
  std::string text = "fn (%x: Tensor[(4,), float32]) -> Tensor[(4,), float32] {\n";
  std::string last = "%x";
  for (size_t i = 0; i < length; ++i) {
    const std::string name = (lets ? "%y" : "%") + std::to_string(i);
    text += (lets ? "  let " : "  ") + name + " = add(" + last + ", " + (i % 2 ? "1f" : "%x") + ");\n";
    last = name;
  }
  return text + "  exp(" + last + ")\n}\n";
}

}  // namespace collage
