#pragma once

// Where an expression came from, in the words of whoever wrote the program: nodes of an ONNX model, or places in a text. A rewrite
// gives what it makes the union of what it read, so that an operator can always be named, however far it is from the model.
//
// An origin is no part of a program: structural hash and equality, the printer and with it every cache leave it out.
//
// A union refers to its parts and copies none: a chain of ten thousand folded operators makes ten thousand small nodes, where
// flat lists would hold fifty million names. The names are collected when somebody asks.

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace collage {

/// One node of an ONNX model, or one place in a text.
struct OriginPart {
  enum class Kind { kOnnxNode, kTextPlace };
  Kind kind = Kind::kOnnxNode;
  std::string text;     ///< the node's name, or "line:column"
  size_t position = 0;  ///< in the model or the text: the order in which parts are listed
};

/// An immutable set of parts; cheap to copy.
class Origin {
 public:
  /// Unknown: no parts.
  Origin() = default;
  explicit Origin(OriginPart part);
  /// All parts of all of them, in time linear in how many are given.
  static Origin Union(const std::vector<Origin>& origins);

  [[nodiscard]] bool Empty() const { return !node_; }
  /// Each part once, by position. Pointers live as long as this origin. No recursion.
  [[nodiscard]] std::vector<const OriginPart*> Parts() const;
  /// Names of the ONNX nodes among the parts.
  [[nodiscard]] std::vector<std::string> OnnxNodes() const;
  /// "conv1, bn1", or "3:17", of many parts a few; empty without parts.
  [[nodiscard]] std::string ToString() const;

  /// The same parts because one is a copy of the other; equal sets that were made apart differ.
  friend bool operator==(const Origin&, const Origin&) = default;

 private:
  struct Node;
  explicit Origin(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

  std::shared_ptr<const Node> node_;
};

}  // namespace collage
