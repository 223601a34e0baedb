#include "collage/tensor/strings.h"

#include <re2/re2.h>

#include <clocale>
#include <cwctype>

#include "collage/op/binary_kernel.h"
#include "collage/op/families.h"
#include "collage/op/rules.h"
#include "collage/op/string_case.h"

namespace collage {
namespace {

Status ExpectStrings(const TensorType& type, std::string_view name) {
  if (type.dtype == DType::kString) return {};
  return Fail(std::string(name) + " has dtype " + std::string(Name(type.dtype)) + ", expected string");
}

Result<TensorType> StringsArgument(TypeArguments arguments, size_t index, std::string_view name) {
  TensorType type = COLLAGE_TRY(TensorArgument(arguments, index, name));
  COLLAGE_TRY_STATUS(ExpectStrings(type, name));
  return type;
}

void Store(const std::vector<std::string>& texts, Tensor& result) {
  auto* numbers = result.MutableData<uint64_t>();
  std::transform(texts.begin(), texts.end(), numbers, NumberOfString);
}

Result<Type> ConcatType(TypeArguments arguments, const Attributes&) {
  const TensorType a = COLLAGE_TRY(StringsArgument(arguments, 0, "lhs"));
  const TensorType b = COLLAGE_TRY(StringsArgument(arguments, 1, "rhs"));
  return Type(TensorType{COLLAGE_TRY(BroadcastShapes(a.shape, b.shape)), DType::kString});
}

void ConcatKernel(std::span<const Tensor> inputs, const Attributes&, std::span<Tensor> outputs) {
  const Shape& shape = outputs[0].shape();
  const std::vector<std::string> a = StringsOf(inputs[0]);
  const std::vector<std::string> b = StringsOf(inputs[1]);
  auto* numbers = outputs[0].MutableData<uint64_t>();
  ForEachRow(shape, BroadcastStrides(inputs[0].shape(), shape), BroadcastStrides(inputs[1].shape(), shape),
             [&](int64_t target, int64_t x, int64_t y, int64_t count, int64_t dx, int64_t dy) {
               for (int64_t i = 0; i < count; ++i)
                 numbers[target + i] = NumberOfString(a[static_cast<size_t>(x + i * dx)] + b[static_cast<size_t>(y + i * dy)]);
             });
}

RE2::Options Quiet() {
  RE2::Options options;
  options.set_log_errors(false);
  return options;
}

Result<Type> FullMatchType(TypeArguments arguments, const Attributes& attributes) {
  TensorType type = COLLAGE_TRY(StringsArgument(arguments, 0, "data"));
  const RE2 expression(StringAttribute(attributes, "pattern", ""), Quiet());
  if (!expression.ok()) return Fail("attribute 'pattern' is no regular expression: " + expression.error());
  type.dtype = DType::kBool;
  return Type(std::move(type));
}

void FullMatchKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  const RE2 expression(StringAttribute(attributes, "pattern", ""), Quiet());
  const std::vector<std::string> texts = StringsOf(inputs[0]);
  std::transform(texts.begin(), texts.end(), outputs[0].MutableData<bool>(),
                 [&](const std::string& text) { return RE2::FullMatch(text, expression); });
}

Result<StringCase> CaseAttribute(const Attributes& attributes) {
  const std::string text = StringAttribute(attributes, "case", "");
  if (text == "lower") return StringCase::kLower;
  if (text == "upper") return StringCase::kUpper;
  return Fail("attribute 'case' is \"" + text + "\", expected \"lower\" or \"upper\"");
}

Result<Type> ChangeCaseType(TypeArguments arguments, const Attributes& attributes) {
  COLLAGE_TRY(CaseAttribute(attributes));
  return Type(COLLAGE_TRY(StringsArgument(arguments, 0, "data")));
}

void ChangeCaseKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  std::vector<std::string> texts = StringsOf(inputs[0]);
  for (std::string& text : texts) text = InCase(text, CaseAttribute(attributes).value());
  Store(texts, outputs[0]);
}

}  // namespace

std::string InCase(const std::string& text, StringCase wanted) {
  // Of every language, whatever the process has set.
  static const locale_t kUnicode = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  std::optional<std::u32string> characters = CharactersOf(text);
  if (!characters || kUnicode == nullptr) return text;
  for (char32_t& character : *characters) {
    const auto wide = static_cast<wint_t>(character);
    character = static_cast<char32_t>(wanted == StringCase::kLower ? ::towlower_l(wide, kUnicode) : ::towupper_l(wide, kUnicode));
  }
  return ToUtf8(*characters);
}

void AddStringOperators(OpTable& table) {
  Register(table,
           {.name = "strings.concat",
            .summary = "Each string of lhs with that of rhs behind it; the two broadcast.",
            .argument_names = {"lhs", "rhs"},
            .kind = OpKind::kBroadcast,
            .infer_type = ConcatType,
            .work = WorkPerOutput(1),
            .reference = ConcatKernel},
           NarrowTypes::kAsStored);
  Register(table,
           {.name = "strings.full_match",
            .summary = "True where a regular expression in the syntax of RE2 matches the whole string.",
            .argument_names = {"data"},
            .attributes = {{"pattern", "string", "the regular expression", true}},
            .kind = OpKind::kElementwise,
            .infer_type = FullMatchType,
            .work = WorkPerOutput(1),
            .reference = FullMatchKernel},
           NarrowTypes::kAsStored);
  Register(table,
           {.name = "strings.change_case",
            .summary = "All letters as small or as capital ones.",
            .argument_names = {"data"},
            .attributes = {{"case", "string", "\"lower\" or \"upper\"", true}},
            .kind = OpKind::kElementwise,
            .infer_type = ChangeCaseType,
            .work = WorkPerOutput(1),
            .reference = ChangeCaseKernel},
           NarrowTypes::kAsStored);
}

}  // namespace collage
