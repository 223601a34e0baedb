#include "collage/op/documentation.h"

#include <sstream>

namespace collage {
namespace {

std::string Signature(const OpDef& op) {
  std::string text = op.name + "(";
  for (size_t i = 0; i < op.argument_names.size(); ++i) text += (i ? ", " : "") + op.argument_names[i];
  return text + ")";
}

/// One paragraph in lines of at most 100 columns; a longer word has a line of its own.
std::string Wrapped(const std::string& paragraph) {
  constexpr size_t kColumns = 100;
  std::istringstream words(paragraph);
  std::string text;
  size_t columns = 0;
  for (std::string word; words >> word; columns += word.size()) {
    const bool fits = columns + 1 + word.size() <= kColumns;
    if (columns > 0) text += fits ? ' ' : '\n';
    columns = columns > 0 && fits ? columns + 1 : 0;
    text += word;
  }
  return text;
}

std::string Section(const OpDef& op) {
  std::string call = "`" + Signature(op) + "`: " + std::string(Name(op.kind));
  if (op.commutative) call += ", commutative";
  if (op.is_view) call += ", a view";
  std::string text = "## " + op.name + "\n\n" + Wrapped(call) + "\n\n" + Wrapped(op.summary) + "\n";
  if (op.attributes.empty()) return text;
  text += "\n| Attribute | Form | Meaning |\n|---|---|---|\n";
  for (const AttributeSpec& spec : op.attributes)
    text += "| `" + spec.name + "` | " + spec.form + (spec.required ? ", required" : "") + " | " + spec.meaning + " |\n";
  return text;
}

}  // namespace

std::string Documentation(const OpTable& table) {
  std::string text =
      "# Operators\n\n" +
      Wrapped(
          "Written by `generate_ops_doc` from the table of `collage/op`; change the records there, not this page. Each operator is "
          "a fusion kind, type and work rules and a reference kernel. Names and attributes are Relay's; data is NCHW. Operators take "
          "float32, float64, float16, bfloat16 and, where that makes sense, integers and bool; the 16-bit formats are computed with in "
          "float32 and rounded once an operator. A view passes the elements on in their row-major order, so a host needs no kernel for "
          "it.") +
      "\n";
  for (const auto& op : table.records()) text += "\n" + Section(*op);
  return text;
}

}  // namespace collage
