#pragma once

#include <random>
#include <string>
#include <vector>

namespace collage {

/// Writes programs over tensors of three elements with branches in branches, tuples of tuples, lets, and functions that call themselves as
/// often as a counter says: at the end (a loop) or in the middle.
class RandomControl {
 public:
  explicit RandomControl(uint32_t seed) : random_(seed) {}

  std::string Make() {
    const std::string body = Block({"%x", "%y"}, {}, 0);
    return "def @main(%x: Tensor[(3), float32], %y: Tensor[(3), float32], %c: bool, %d: bool) {\n" + body + "}\n" +
           Recursive("loop", "@loop(subtract(%n, 1), tanh(add(%x, %y)), %x)") +
           Recursive("middle", "tanh(add(@middle(subtract(%n, 1), %y, %x), exp(negative(abs(%x)))))");
  }

 private:
  using Names = std::vector<std::string>;

  size_t Below(size_t bound) { return random_() % bound; }
  const std::string& Any(const Names& names) { return names[Below(names.size())]; }

  static std::string Recursive(const std::string& name, const std::string& step) {
    return "def @" + name +
           "(%n: int32, %x: Tensor[(3), float32], %y: Tensor[(3), float32]) -> Tensor[(3), float32] {\n  if (less(%n, 1)) { add(%x, %y) } "
           "else { " +
           step + " }\n}\n";
  }

  /// Statements and what they end in: one tensor, however deep it stands.
  std::string Block(Names tensors, Names tuples, int depth) {
    std::string text;
    const size_t count = 2 + Below(6);
    for (size_t i = 0; i < count; ++i) {
      const std::string name = "%" + std::string(Below(4) == 0 ? "let" : "v") + std::to_string(next_++);
      const bool is_let = name[1] == 'l';
      const bool makes_tuple = Below(4) == 0;
      const std::string value = makes_tuple ? Pair(tensors, tuples, depth) : Tensor(tensors, tuples, depth);
      text += is_let ? "let " + name + " = " + value + ";\n" : name + " = " + value + ";\n";
      (makes_tuple ? tuples : tensors).push_back(name);
    }
    return text + (Below(4) == 0 ? Any(tensors) : "add(" + Any(tensors) + ", " + tensors.back() + ")") + "\n";
  }

  std::string Tensor(const Names& tensors, const Names& tuples, int depth) {
    switch (Below(8)) {
      case 0:
        if (depth < 3) return Branch(Block(tensors, tuples, depth + 1), Block(tensors, tuples, depth + 1));
        return "exp(negative(abs(" + Any(tensors) + ")))";
      case 1:
        return (Below(2) == 0 ? "@loop(" : "@middle(") + std::to_string(Below(6)) + ", " + Any(tensors) + ", " + Any(tensors) + ")";
      case 2:
      case 3:
        if (!tuples.empty()) return Any(tuples) + (Below(2) == 0 ? ".0" : ".1.1");
        return "tanh(" + Any(tensors) + ")";
      case 4:
        return "multiply(" + Any(tensors) + ", " + Any(tensors) + ")";
      default:
        return "tanh(add(" + Any(tensors) + ", " + Any(tensors) + "))";
    }
  }

  std::string Pair(const Names& tensors, const Names& tuples, int depth) {
    const auto literal = [&] { return "(" + Any(tensors) + ", (" + Any(tensors) + ", " + Any(tensors) + "))"; };
    if (depth < 3 && Below(2) == 0) return Branch(tuples.empty() ? literal() : Any(tuples), literal());
    return literal();
  }

  std::string Branch(const std::string& then_branch, const std::string& else_branch) {
    return "if (" + std::string(Below(2) == 0 ? "%c" : "%d") + ") {\n" + then_branch + "} else {\n" + else_branch + "}";
  }

  std::mt19937 random_;
  size_t next_ = 0;
};

}  // namespace collage
