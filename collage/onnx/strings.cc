#include "collage/tensor/strings.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>

#include "collage/onnx/direct.h"
#include "collage/onnx/formula.h"
#include "collage/onnx/node_writer.h"
#include "collage/onnx/rows.h"
#include "collage/op/string_case.h"

namespace collage::onnx_io {
namespace {

Result<std::vector<Expr>> ReadRegexFullMatch(NodeReader& node) {
  const std::string pattern = COLLAGE_TRY(node.String("pattern", ""));
  return std::vector<Expr>{COLLAGE_TRY(node.Call("strings.full_match", {COLLAGE_TRY(node.Input(0))}, {{"pattern", pattern}}))};
}

/// Null: letters stay as they are.
Result<const char*> CaseChange(const NodeReader& node) {
  const std::string action = COLLAGE_TRY(node.String("case_change_action", "NONE"));
  if (action == "NONE") return nullptr;
  if (action == "LOWER") return "lower";
  if (action == "UPPER") return "upper";
  return Fail("attribute 'case_change_action' is '" + action + "'; LOWER, UPPER or NONE is right");
}

/// The strings of input 0, which must not depend on the model's inputs.
Result<Tensor> KnownStrings(NodeReader& node) {
  const Expr input = COLLAGE_TRY(node.Input(0));
  if (const Tensor* value = ConstantValue(input)) return *value;
  node.folder().RequireValue(input);
  return Fail("how many strings the result has depends on input 0, which must not depend on the model's inputs");
}

/// What is no stop word; one empty string where nothing else is left.
Result<Expr> WithoutStopWords(NodeReader& node, const std::vector<std::string>& stop_words) {
  const Tensor value = COLLAGE_TRY(KnownStrings(node));
  const bool is_case_sensitive = COLLAGE_TRY(node.Int("is_case_sensitive", 0)) != 0;
  const auto folded = [&](const std::string& text) { return is_case_sensitive ? text : InCase(text, StringCase::kLower); };
  std::set<std::string> stops;
  for (const std::string& word : stop_words) stops.insert(folded(word));
  std::vector<std::string> left;
  for (std::string& text : StringsOf(value)) {
    if (!stops.contains(folded(text))) left.push_back(std::move(text));
  }
  if (left.empty()) left.emplace_back();
  Shape shape = value.shape();
  shape.back() = static_cast<int64_t>(left.size());
  return MakeConstant(StringTensor(shape, left));
}

Result<std::vector<Expr>> ReadStringNormalizer(NodeReader& node) {
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  const bool fits = type.shape.size() == 1 || (type.shape.size() == 2 && type.shape[0] == 1);
  if (type.dtype != DType::kString || !fits) return Fail("data is " + ToString(type) + ", expected strings of shape (n,) or (1, n)");
  const char* const change = COLLAGE_TRY(CaseChange(node));
  const std::vector<std::string> stop_words = COLLAGE_TRY(node.Strings("stopwords", {}));
  const Expr data = stop_words.empty() ? COLLAGE_TRY(node.Input(0)) : COLLAGE_TRY(WithoutStopWords(node, stop_words));
  if (change == nullptr) return std::vector<Expr>{data};
  return std::vector<Expr>{COLLAGE_TRY(node.Call("strings.change_case", {data}, {{"case", std::string(change)}}))};
}

/// At each delimiter, at most `most` times.
std::vector<std::string> SplitAt(const std::string& text, const std::string& delimiter, int64_t most) {
  std::vector<std::string> pieces;
  size_t from = 0;
  for (size_t at = text.find(delimiter); at != std::string::npos && static_cast<int64_t>(pieces.size()) < most;
       at = text.find(delimiter, from)) {
    pieces.push_back(text.substr(from, at - from));
    from = at + delimiter.size();
  }
  pieces.push_back(text.substr(from));
  return pieces;
}

/// Words between white space; behind the last cut the text is left as it is.
std::vector<std::string> SplitAtSpace(const std::string& text, int64_t most) {
  constexpr const char* kSpace = " \t\n\v\f\r";
  std::vector<std::string> words;
  for (size_t from = text.find_first_not_of(kSpace); from != std::string::npos;) {
    const size_t end = text.find_first_of(kSpace, from);
    if (end == std::string::npos || static_cast<int64_t>(words.size()) == most) {
      words.push_back(text.substr(from));
      break;
    }
    words.push_back(text.substr(from, end - from));
    from = text.find_first_not_of(kSpace, end);
  }
  return words;
}

/// The pieces along a new last axis, filled up with empty strings, and how many there are.
Result<std::vector<Expr>> ReadStringSplit(NodeReader& node) {
  const TensorType type = COLLAGE_TRY(node.InputType(0));
  if (type.dtype != DType::kString) return Fail("data is " + ToString(type) + ", expected strings");
  const Tensor value = COLLAGE_TRY(KnownStrings(node));
  const std::string delimiter = COLLAGE_TRY(node.String("delimiter", ""));
  const int64_t most = COLLAGE_TRY(node.Int64("maxsplit", std::numeric_limits<int64_t>::max()));
  std::vector<std::vector<std::string>> pieces;
  std::vector<int64_t> counts;
  int64_t longest = 0;
  for (const std::string& text : StringsOf(value)) {
    pieces.push_back(delimiter.empty() ? SplitAtSpace(text, most) : SplitAt(text, delimiter, most));
    counts.push_back(static_cast<int64_t>(pieces.back().size()));
    longest = std::max(longest, counts.back());
  }
  Shape shape = value.shape();
  shape.push_back(longest);
  COLLAGE_TRY_STATUS(CheckExtents(shape));
  COLLAGE_TRY_STATUS(node.folder().Reserve(static_cast<double>(TensorType{shape, DType::kString}.ByteCount())));
  std::vector<std::string> all;
  for (std::vector<std::string>& one : pieces) {
    one.resize(static_cast<size_t>(longest));
    std::move(one.begin(), one.end(), std::back_inserter(all));
  }
  return std::vector<Expr>{MakeConstant(StringTensor(shape, all)),
                           MakeConstant(Tensor::FromVector(TensorType{value.shape(), DType::kInt64}, counts))};
}

Status WriteStringConcat(NodeWriter& writer) {
  writer.Emit("StringConcat", writer.Inputs());
  return {};
}

Status WriteRegexFullMatch(NodeWriter& writer) {
  writer.Emit("RegexFullMatch", writer.Inputs(), {{"pattern", COLLAGE_TRY(writer.attributes().String("pattern", ""))}});
  return {};
}

/// StringNormalizer takes a list.
Status WriteChangeCase(NodeWriter& writer) {
  const bool is_lower = COLLAGE_TRY(writer.attributes().String("case", "lower")) == "lower";
  const std::string list = writer.EmitIntermediate("Reshape", {writer.Input(0), writer.Ints({writer.InputType(0).ElementCount()})});
  // The one locale that is on every machine, and knows the letters of every language.
  const std::string changed = writer.EmitIntermediate(
      "StringNormalizer", {list}, {{"case_change_action", std::string(is_lower ? "LOWER" : "UPPER")}, {"locale", std::string("C.UTF-8")}});
  writer.Emit("Reshape", {changed, writer.Ints(writer.OutputType().shape)});
  return {};
}

}  // namespace

OperatorFamily StringFamily() {
  static constexpr ReadRow kRead[] = {{"StringConcat", ReadDirect<"strings.concat">},
                                      {"RegexFullMatch", ReadRegexFullMatch},
                                      {"StringNormalizer", ReadStringNormalizer},
                                      {"StringSplit", ReadStringSplit}};
  static constexpr WriteRow kWrite[] = {
      {"strings.concat", WriteStringConcat}, {"strings.full_match", WriteRegexFullMatch}, {"strings.change_case", WriteChangeCase}};
  return {kRead, kWrite};
}

}  // namespace collage::onnx_io
