#include "collage/op/einsum.h"

#include <algorithm>
#include <map>
#include <type_traits>

#include "collage/op/axis_view.h"
#include "collage/op/families.h"
#include "collage/op/index_walk.h"
#include "collage/op/rules.h"
#include "collage/support/check.h"

namespace collage {
namespace {

/// Dimensions under an ellipsis get the numbers below the letters, the last one -1.
using Labels = std::vector<int>;

struct Equation {
  std::vector<std::string> terms;
  std::string result;
  bool has_result = false;
};

Equation Split(const std::string& text) {
  Equation equation{{""}, "", false};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text.compare(i, 2, "->") == 0) {
      equation.has_result = true;
      ++i;
    } else if (equation.has_result) {
      equation.result += text[i];
    } else if (text[i] == ',') {
      equation.terms.emplace_back();
    } else {
      equation.terms.back() += text[i];
    }
  }
  return equation;
}

Result<Labels> LabelsOf(const std::string& term, size_t ellipsis_rank) {
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term.compare(i, 3, "...") == 0) {
      for (size_t d = ellipsis_rank; d > 0; --d) labels.push_back(-static_cast<int>(d));
      i += 2;
    } else if ((term[i] >= 'a' && term[i] <= 'z') || (term[i] >= 'A' && term[i] <= 'Z')) {
      labels.push_back(term[i]);
    } else {
      return Fail("attribute 'equation' has '" + term + "', expected letters, \"...\", \",\" and \"->\"");
    }
  }
  return labels;
}

size_t LettersIn(const std::string& term) {
  return static_cast<size_t>(std::count_if(term.begin(), term.end(), [](char c) { return c != '.'; }));
}

bool HasEllipsis(const std::string& term) { return term.find("...") != std::string::npos; }

Result<Labels> ResultLabels(const Equation& equation, size_t ellipsis_rank, const std::map<int, int>& counts) {
  if (equation.has_result) return LabelsOf(equation.result, ellipsis_rank);
  Labels labels = COLLAGE_TRY(LabelsOf("...", ellipsis_rank));
  for (const auto& [label, count] : counts) {
    if (label > 0 && count == 1) labels.push_back(label);
  }
  return labels;
}

Result<Labels> TermLabels(const std::string& term, const TensorType& operand, size_t index) {
  const size_t letters = LettersIn(term);
  const size_t rank = operand.shape.size();
  if (HasEllipsis(term) ? letters > rank : letters != rank) {
    return Fail("attribute 'equation' has the term '" + term + "' for data." + std::to_string(index) + " of shape " +
                ToString(operand.shape) + ", expected a letter a dimension");
  }
  return LabelsOf(term, rank - letters);
}

Status Unify(int label, int64_t extent, std::map<int, int64_t>& extents) {
  const auto [at, is_new] = extents.emplace(label, extent);
  if (is_new || at->second == extent || extent == 1) return {};
  if (at->second != 1) {
    return Fail("attribute 'equation' gives one letter the extents " + std::to_string(at->second) + " and " + std::to_string(extent));
  }
  at->second = extent;
  return {};
}

}  // namespace

Result<Einsum> ReadEinsum(const std::string& text, std::span<const TensorType> operands) {
  const Equation equation = Split(text);
  if (equation.terms.size() != operands.size()) {
    return Fail("attribute 'equation' is \"" + text + "\", expected " + std::to_string(operands.size()) + " terms");
  }
  std::vector<Labels> terms;
  std::map<int, int64_t> extents;
  std::map<int, int> counts;
  size_t ellipsis_rank = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    terms.push_back(COLLAGE_TRY(TermLabels(equation.terms[i], operands[i], i)));
    if (HasEllipsis(equation.terms[i])) ellipsis_rank = std::max(ellipsis_rank, operands[i].shape.size() - LettersIn(equation.terms[i]));
    for (size_t d = 0; d < terms[i].size(); ++d) {
      COLLAGE_TRY_STATUS(Unify(terms[i][d], operands[i].shape[d], extents));
      ++counts[terms[i][d]];
    }
  }
  Labels order = COLLAGE_TRY(ResultLabels(equation, ellipsis_rank, counts));
  Einsum einsum{{}, order.size(), {}};
  std::map<int, size_t> loop_of;
  for (const auto& [label, extent] : extents) {
    if (std::find(order.begin(), order.end(), label) == order.end()) order.push_back(label);
  }
  for (int label : order) {
    if (!extents.contains(label) || !loop_of.emplace(label, einsum.loops.size()).second) {
      return Fail("attribute 'equation' is \"" + text + "\", expected letters of the terms in the result, each once");
    }
    einsum.loops.push_back(extents.at(label));
  }
  for (const Labels& labels : terms) {
    einsum.terms.emplace_back();
    for (int label : labels) einsum.terms.back().push_back(loop_of.at(label));
  }
  return einsum;
}

namespace {

Result<Type> EinsumType(TypeArguments arguments, const Attributes& attributes) {
  const std::vector<TensorType> operands = COLLAGE_TRY(TupleArgument(arguments, 0, "data"));
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string name = "data." + std::to_string(i);
    COLLAGE_TRY_STATUS(ExpectNumber(operands[i], name));
    COLLAGE_TRY_STATUS(ExpectSameDType(operands[i], name, operands[0], "data.0"));
  }
  const Einsum einsum = COLLAGE_TRY(ReadEinsum(StringAttribute(attributes, "equation", ""), operands));
  return Type(
      TensorType{Shape(einsum.loops.begin(), einsum.loops.begin() + static_cast<std::ptrdiff_t>(einsum.result_rank)), operands[0].dtype});
}

/// Strides of an operand along each loop; dimensions of one loop add up (a diagonal), those of extent 1 repeat.
std::vector<int64_t> LoopStrides(const Einsum& einsum, size_t term, const Shape& shape) {
  const std::vector<int64_t> own = RowMajorStrides(shape);
  std::vector<int64_t> strides(einsum.loops.size(), 0);
  for (size_t d = 0; d < shape.size(); ++d) strides[einsum.terms[term][d]] += shape[d] == 1 ? 0 : own[d];
  return strides;
}

void EinsumKernel(std::span<const Tensor> inputs, const Attributes& attributes, std::span<Tensor> outputs) {
  std::vector<TensorType> types;
  for (const Tensor& input : inputs) types.push_back(input.type());
  const Result<Einsum> einsum = ReadEinsum(StringAttribute(attributes, "equation", ""), types);
  COLLAGE_CHECK(einsum.has_value());
  std::vector<std::vector<int64_t>> strides;
  for (size_t i = 0; i < inputs.size(); ++i) strides.push_back(LoopStrides(*einsum, i, inputs[i].shape()));
  std::vector<int64_t> result_strides = RowMajorStrides(outputs[0].shape());
  result_strides.resize(einsum->loops.size(), 0);
  VisitNumberType(inputs[0].dtype(), [&](auto element) {
    using T = decltype(element);
    using Accumulator = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
    std::vector<Accumulator> sums(static_cast<size_t>(outputs[0].ElementCount()), 0);
    for (IndexWalk walk(einsum->loops); walk.Valid(); walk.Next()) {
      Accumulator product = 1;
      for (size_t i = 0; i < inputs.size(); ++i)
        product *= static_cast<Accumulator>(inputs[i].Data<T>()[PlaceOf(walk.index(), strides[i])]);
      sums[static_cast<size_t>(PlaceOf(walk.index(), result_strides))] += product;
    }
    std::transform(sums.begin(), sums.end(), outputs[0].MutableData<T>(), [](Accumulator sum) { return static_cast<T>(sum); });
  });
}

Work EinsumWork(TypeArguments arguments, const Type& result, const Attributes& attributes) {
  const std::vector<TensorType> operands = FlattenTensors(arguments[0]);
  const Result<Einsum> einsum = ReadEinsum(StringAttribute(attributes, "equation", ""), operands);
  double turns = 1;
  for (int64_t extent : einsum->loops) turns *= static_cast<double>(extent);
  return {turns * static_cast<double>(operands.size()), ByteCount(arguments[0]) + ByteCount(result)};
}

}  // namespace

void AddEinsumOperators(OpTable& table) {
  Register(table, {.name = "einsum",
                   .summary = "Sum of products over named dimensions (Einstein's convention) of the tensors of a tuple.",
                   .argument_names = {"data"},
                   .attributes = {{"equation", "string", "a term of letters for each tensor, \"->\" and that of the result", true}},
                   .kind = OpKind::kOutElementwiseFusable,
                   .infer_type = EinsumType,
                   .work = EinsumWork,
                   .reference = EinsumKernel});
}

}  // namespace collage
