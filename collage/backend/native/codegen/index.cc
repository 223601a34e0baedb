#include "collage/backend/native/codegen/index.h"

#include <sstream>

namespace collage::native {

using Halide::Expr;

namespace {

Expr DigitExpr(const Digit& digit) {
  if (!digit.loop) return digit.opaque;
  Loop& loop = *digit.loop;
  const int64_t end = digit.divisor * digit.extent;
  if (digit.divisor > 1) loop.cuts.insert(digit.divisor);
  if (end < loop.extent) loop.cuts.insert(end);
  Expr value = loop.variable;
  if (digit.divisor > 1) value = value / static_cast<int>(digit.divisor);
  if (end < loop.extent) value = value % static_cast<int>(digit.extent);
  return value;
}

// The digits of a dimension as terms of stride `stride`, most significant first.
void AppendTerms(const DimensionIndex& index, int64_t stride, std::vector<Term>& terms) {
  int64_t weight = stride * index.Span();
  for (const Digit& digit : index.digits) {
    weight /= digit.extent;
    terms.push_back({digit, weight});
  }
}

// All digits of a dimension, or one opaque digit where the digits do not run over the whole dimension.
void AppendDigits(const DimensionIndex& index, int64_t extent, std::vector<Digit>& digits) {
  if (index.offset == 0 && index.Span() == extent) {
    digits.insert(digits.end(), index.digits.begin(), index.digits.end());
  } else if (extent > 1) {
    digits.push_back({nullptr, 1, extent, ToExpr(index)});
  }
}

// Splits a digit into a more significant one and one of extent `low`.
std::pair<Digit, Digit> Split(const Digit& digit, int64_t low) {
  if (digit.loop) {
    return {{digit.loop, digit.divisor * low, digit.extent / low, {}}, {digit.loop, digit.divisor, low, {}}};
  }
  const int factor = static_cast<int>(low);
  return {{nullptr, 1, digit.extent / low, digit.opaque / factor}, {nullptr, 1, low, digit.opaque % factor}};
}

// Takes digits of product `extent` off the end of `digits`; false when they cannot be cut there.
bool TakeDigits(std::vector<Digit>& digits, int64_t extent, DimensionIndex& taken) {
  int64_t product = 1;
  while (product < extent) {
    if (digits.empty()) return false;
    Digit digit = digits.back();
    digits.pop_back();
    const int64_t missing = extent / product;
    if (extent % product != 0) return false;
    if (digit.extent > missing) {
      if (digit.extent % missing != 0) return false;
      auto [high, low] = Split(digit, missing);
      digits.push_back(high);
      digit = low;
    }
    product *= digit.extent;
    taken.digits.insert(taken.digits.begin(), digit);
  }
  return product == extent;
}

}  // namespace

int64_t DimensionIndex::Span() const {
  int64_t span = 1;
  for (const Digit& digit : digits) span *= digit.extent;
  return span;
}

Expr Linear(const std::vector<Term>& terms, int64_t constant) {
  std::vector<Term> merged;
  for (const Term& term : terms) {
    if (term.stride == 0 || term.digit.extent == 1) continue;
    if (!merged.empty() && term.digit.loop) {
      Term& last = merged.back();
      if (last.digit.loop == term.digit.loop && last.digit.divisor == term.digit.divisor * term.digit.extent &&
          last.stride == term.stride * term.digit.extent) {
        last = {{term.digit.loop, term.digit.divisor, term.digit.extent * last.digit.extent, {}}, term.stride};
        continue;
      }
    }
    merged.push_back(term);
  }
  Expr sum;
  for (const Term& term : merged) {
    Expr value = DigitExpr(term.digit);
    if (term.stride != 1) value = value * static_cast<int>(term.stride);
    sum = sum.defined() ? sum + value : value;
  }
  if (!sum.defined()) return static_cast<int>(constant);
  return constant == 0 ? sum : sum + static_cast<int>(constant);
}

Expr ToExpr(const DimensionIndex& index) {
  std::vector<Term> terms;
  AppendTerms(index, 1, terms);
  return Linear(terms, index.offset);
}

DimensionIndex Opaque(Expr expr, int64_t extent) {
  if (extent == 1) return {};
  return {{{nullptr, 1, extent, std::move(expr)}}, 0};
}

Expr Address(const Index& index, const Shape& shape) {
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  std::vector<Term> terms;
  int64_t constant = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    AppendTerms(index[i], strides[i], terms);
    constant += index[i].offset * strides[i];
  }
  return Linear(terms, constant);
}

Index Regroup(const Index& index, const Shape& from, const Shape& to) {
  std::vector<Digit> digits;
  for (size_t i = 0; i < from.size(); ++i) AppendDigits(index[i], from[i], digits);
  Index result(to.size());
  bool aligned = true;
  for (size_t i = to.size(); i-- > 0 && aligned;) aligned = TakeDigits(digits, to[i], result[i]);
  if (aligned) return result;
  const Expr flat = Address(index, from);
  const std::vector<int64_t> strides = RowMajorStrides(to);
  for (size_t i = 0; i < to.size(); ++i) {
    Expr position = strides[i] == 1 ? flat : flat / static_cast<int>(strides[i]);
    result[i] = Opaque(position % static_cast<int>(to[i]), to[i]);
  }
  return result;
}

Index Broadcast(const Index& index, const Shape& argument) {
  Index result(argument.size());
  const size_t skipped = index.size() - argument.size();
  for (size_t i = 0; i < argument.size(); ++i) {
    if (argument[i] != 1) result[i] = index[skipped + i];
  }
  return result;
}

std::string Key(const Index& index) {
  std::ostringstream key;
  for (const DimensionIndex& dimension : index) {
    for (const Digit& digit : dimension.digits) {
      if (digit.loop) {
        key << digit.loop << '/' << digit.divisor << '%' << digit.extent << ' ';
      } else {
        key << '(' << digit.opaque << ")%" << digit.extent << ' ';
      }
    }
    key << '+' << dimension.offset << ';';
  }
  return key.str();
}

}  // namespace collage::native
