#pragma once

#include <functional>
#include <map>
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
  explicit KernelBody(Element element) : element_(std::move(element)) {}

  std::string At(size_t value, const std::string& index) { return element_(*this, value, index); }
  void Line(const std::string& text) { text_ += std::string(2 * depth_, ' ') + text + "\n"; }
  /// "for (int k = 0; k < 5; ++k) {"; what is named inside is forgotten at its end.
  void Begin(const std::string& head);
  void End();
  /// A name for an index.
  std::string Int(const std::string& text);
  [[nodiscard]] const std::string* Find(size_t value, const std::string& index) const;
  /// A name for an element.
  std::string Bind(size_t value, const std::string& index, const std::string& text);
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  struct Named {
    std::map<std::pair<size_t, std::string>, std::string> elements;
    std::map<std::string, std::string> indices;
  };
  Element element_;
  std::string text_;
  size_t depth_ = 1;
  size_t count_ = 0;
  Named named_;
  std::vector<Named> outside_;
};

/// Writes the loops of an operator for work-item `i`, and gives the number of work-items.
using Loops = Result<size_t> (*)(KernelBody& body, const OpSequence& sequence, const OpSequence::Step& step);
/// By operator name; null for an operator that works on one element at a time, or for which there is no code.
Loops FindLoops(const std::string& name);

}  // namespace collage::element_code
