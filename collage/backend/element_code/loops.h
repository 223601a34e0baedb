#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "collage/ir/op_sequence.h"
#include "collage/support/result.h"

namespace collage::element_code {

/// "1.5f", "(-INFINITY)".
std::string FloatText(double value);

/// The text of one kernel as it is written: statements, and which elements have a name in the block that is open.
class KernelBody {
 public:
  /// Writes what is needed to read an element of a value at a flat index, and gives its text.
  using Element = std::function<std::string(KernelBody&, size_t value, const std::string& index)>;
  /// What is written has this type. A row may be shared by so many items that follow each other, its lanes.
  KernelBody(Element element, DType written, int lanes) : element_(std::move(element)), written_(written), lanes_(lanes) {}

  std::string At(size_t value, const std::string& index) { return element_(*this, value, index); }
  void Line(const std::string& text) { text_ += std::string(2 * depth_, ' ') + text + "\n"; }
  /// "for (int k = 0; k < 5; ++k) {"; what is named inside is forgotten at its end.
  void Begin(const std::string& head);
  void End();
  /// As Begin, over the elements `k` of a row, each of which one of the row's lanes sees.
  void BeginRow(int64_t extent);
  /// Makes of a name's values in all lanes their sum, or the largest or smallest (NaN where one is), in all lanes.
  void Across(const std::string& combination, const std::string& name);
  /// Writes an element of the result.
  void Store(const std::string& index, const std::string& text) { Line(Stored(index, text)); }
  /// The same, by one lane of a row.
  void StoreOnce(const std::string& index, const std::string& text);
  /// How many lanes a row has in what was written: 1 where there are no rows.
  [[nodiscard]] int lanes() const { return has_rows_ ? lanes_ : 1; }
  /// A name for an element of that type which is set later.
  std::string Number(DType dtype);
  /// A name for an index.
  std::string Int(const std::string& text);
  [[nodiscard]] const std::string* Find(size_t value, const std::string& index) const;
  /// A name for an element of that type.
  std::string Bind(size_t value, const std::string& index, DType dtype, const std::string& text);
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  struct Named {
    std::map<std::pair<size_t, std::string>, std::string> elements;
    std::map<std::string, std::string> indices;
  };
  [[nodiscard]] std::string Stored(const std::string& index, const std::string& text) const;

  Element element_;
  DType written_;
  int lanes_;
  bool has_rows_ = false;
  std::string text_;
  size_t depth_ = 1;
  size_t count_ = 0;
  Named named_;
  std::vector<Named> outside_;
};

/// Where the elements are that an operator takes together: rows of `length` elements, `stride` apart; `stride` rows lie side by side, and
/// there are `outer` blocks of those.
struct Rows {
  int64_t outer;
  int64_t length;
  int64_t stride;

  [[nodiscard]] size_t Count() const { return static_cast<size_t>(outer * stride); }
};
/// sum, mean, max and min.
bool IsReduction(const std::string& name);
/// Of a call of one of these. Nothing where the axes are not neighbours.
std::optional<Rows> RowsOfReduction(const Call& call);

/// Writes the loops of an operator for item `i`, which is a row where it has rows, and gives the number of items.
using Loops = Result<size_t> (*)(KernelBody& body, const OpSequence& sequence, const OpSequence::Step& step);
/// By operator name; null for an operator that works on one element at a time, or for which there is no code.
Loops FindLoops(const std::string& name);
/// Whether they take a row at a time: then each element of the input is read a few times, by the same item.
bool LoopsOverRows(const std::string& name);

}  // namespace collage::element_code
