#include "collage/ir/lexer.h"

#include <algorithm>

namespace collage {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsWord(char c) { return IsLetter(c) || IsDigit(c); }
bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

bool IsLocalName(std::string_view name) { return !name.empty() && std::all_of(name.begin(), name.end(), IsWord); }

bool IsGlobalName(std::string_view name) {
  bool part_starts = true;
  for (char c : name) {
    if (part_starts ? !IsLetter(c) : !IsWord(c) && c != '.') return false;
    part_starts = c == '.';
  }
  return !part_starts;
}

void Lexer::Advance(size_t count) {
  for (; count > 0 && at_ < text_.size(); --count, ++at_) {
    if (text_[at_] == '\n') {
      ++line_;
      column_ = 1;
    } else {
      ++column_;
    }
  }
}

bool Lexer::SkipSpace(std::string_view& comment) {
  for (;;) {
    if (IsSpace(Peek())) {
      Advance(1);
    } else if (Peek() == '#' || (Peek() == '/' && Peek(1) == '/')) {
      while (at_ < text_.size() && Peek() != '\n') Advance(1);
    } else if (Peek() == '/' && Peek(1) == '*') {
      const size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) return false;
      if (comment.empty()) comment = text_.substr(at_ + 2, end - at_ - 2);
      Advance(end + 2 - at_);
    } else {
      return true;
    }
  }
}

Token Lexer::Finish(Token token, Token::Kind kind, size_t length, size_t drop_front, size_t drop_back) {
  token.kind = kind;
  token.text = text_.substr(at_ + drop_front, length - drop_front - drop_back);
  after_dot_ = kind == Token::Kind::kPunctuation && token.text == ".";
  Advance(length);
  return token;
}

Token Lexer::LexName(Token token, Token::Kind kind) {
  const size_t mark = kind == Token::Kind::kIdentifier ? 0 : 1;
  size_t length = mark;
  while (IsWord(Peek(length)) || (kind != Token::Kind::kLocal && length > mark && Peek(length) == '.' && IsLetter(Peek(length + 1)))) {
    ++length;
  }
  if (length == mark) {
    token.kind = Token::Kind::kError;
    token.text = kind == Token::Kind::kLocal ? "expected a name behind '%'" : "expected a name behind '@'";
    return token;
  }
  return Finish(token, kind, length, mark);
}

Token Lexer::LexNumber(Token token) {
  size_t length = Peek() == '-' ? 1 : 0;
  while (IsDigit(Peek(length))) ++length;
  if (after_dot_) return Finish(token, Token::Kind::kNumber, length);
  if (Peek(length) == '.' && IsDigit(Peek(length + 1))) {
    ++length;
    while (IsDigit(Peek(length))) ++length;
  } else if (Peek(length) == '.' && !IsLetter(Peek(length + 1)) && Peek(length + 1) != '.') {
    ++length;
  }
  if (Peek(length) == 'e' || Peek(length) == 'E') {
    const size_t sign = Peek(length + 1) == '-' || Peek(length + 1) == '+' ? 1 : 0;
    if (IsDigit(Peek(length + 1 + sign))) length += 1 + sign;
  }
  while (IsWord(Peek(length))) ++length;
  return Finish(token, Token::Kind::kNumber, length);
}

Token Lexer::LexString(Token token) {
  size_t length = 1;
  while (at_ + length < text_.size() && Peek(length) != '"') length += Peek(length) == '\\' ? 2 : 1;
  if (at_ + length >= text_.size()) {
    token.kind = Token::Kind::kError;
    token.text = "the string has no closing '\"'";
    return token;
  }
  return Finish(token, Token::Kind::kString, length + 1, 1, 1);
}

Token Lexer::Next() {
  Token token;
  const bool closed = SkipSpace(token.comment);
  token.line = line_;
  token.column = column_;
  if (!closed) {
    token.kind = Token::Kind::kError;
    token.text = "the comment has no closing '*/'";
    return token;
  }
  if (at_ >= text_.size()) return token;
  const char c = Peek();
  if (c == '%') return LexName(token, Token::Kind::kLocal);
  if (c == '@') return LexName(token, Token::Kind::kGlobal);
  if (IsLetter(c)) return LexName(token, Token::Kind::kIdentifier);
  if (c == '"') return LexString(token);
  if (c == '-' && Peek(1) == '>') return Finish(token, Token::Kind::kPunctuation, 2);
  if (IsDigit(c) || (c == '-' && (IsDigit(Peek(1)) || text_.substr(at_ + 1, 3) == "inf"))) return LexNumber(token);
  if (std::string_view("(){}[],;:=.?").find(c) != std::string_view::npos) return Finish(token, Token::Kind::kPunctuation, 1);
  token.kind = Token::Kind::kError;
  token.text = "a character that has no meaning here";
  return token;
}

}  // namespace collage
