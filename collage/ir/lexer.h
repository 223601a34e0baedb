#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace collage {

/// One token of the text form. `text` views the source: a local "%x" is "x", a global "@main" is "main", a string is what
/// stands between its quotes (escapes unresolved), an error is its message.
struct Token {
  enum class Kind : uint8_t { kEnd, kError, kIdentifier, kLocal, kGlobal, kNumber, kString, kPunctuation };
  Kind kind = Kind::kEnd;
  std::string_view text;
  size_t line = 1;
  size_t column = 1;
  /// The first block comment between the previous token and this one, without its marks: types of constants travel there.
  std::string_view comment;
};

/// Cuts the text form of the IR into tokens, one at a time, so that a text of 100 000 lines costs no memory beside itself.
/// Copies are cheap: a copy looks ahead. Spaces, block comments, and "//" and "#" to the end of the line separate tokens.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Token Next();

 private:
  [[nodiscard]] char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void Advance(size_t count);
  /// Skips what separates tokens; false on a block comment without end.
  bool SkipSpace(std::string_view& comment);
  Token Finish(Token token, Token::Kind kind, size_t length, size_t drop_front = 0, size_t drop_back = 0);
  Token LexName(Token token, Token::Kind kind);
  Token LexNumber(Token token);
  Token LexString(Token token);

  std::string_view text_;
  size_t at_ = 0;
  size_t line_ = 1;
  size_t column_ = 1;
  bool after_dot_ = false;  // "%t.0.1" is two projections, not the number 0.1
};

/// True for a name that may stand behind "%" in the text form: letters, digits and "_".
bool IsLocalName(std::string_view name);
/// True for a name that may stand behind "@" or be an operator: dots may separate its parts, and no part starts with a digit.
bool IsGlobalName(std::string_view name);

}  // namespace collage
