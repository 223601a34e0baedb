// collage.h for C++17: what has to be freed frees itself, and errors are exceptions. Nothing here is compiled into a library.
//
//     collage::Program program("model.collage");
//     collage::Session session(program);
//     session.Run({collage::Input(x)}, {collage::Output(y)});
#ifndef COLLAGE_HPP
#define COLLAGE_HPP

#include <collage.h>

#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace collage {
// What a program compiles of these classes would be called as the library's own of the same name, and the dynamic linker would take either
// for the other.
inline namespace wrapper {

class Exception : public std::runtime_error {
 public:
  Exception(collage_error_kind kind, const char* message) : std::runtime_error(message), kind_(kind) {}
  [[nodiscard]] collage_error_kind kind() const { return kind_; }

 private:
  collage_error_kind kind_;
};

inline void ThrowIfAny(collage_error* error) {
  if (!error) return;
  const Exception exception(collage_error_kind_of(error), collage_error_message(error));
  collage_error_free(error);
  throw exception;
}

/// A loaded program. May be used by several threads at once, and must outlive its sessions.
class Program {
 public:
  explicit Program(const std::string& path, const char* options = nullptr) : program_(nullptr, collage_program_free) {
    collage_program* program = nullptr;
    ThrowIfAny(collage_program_load(path.c_str(), options, &program));
    program_.reset(program);
  }
  Program(const void* bytes, size_t size, const char* options = nullptr) : program_(nullptr, collage_program_free) {
    collage_program* program = nullptr;
    ThrowIfAny(collage_program_load_memory(bytes, size, options, &program));
    program_.reset(program);
  }

  [[nodiscard]] collage_program* get() const { return program_.get(); }

 private:
  std::unique_ptr<collage_program, void (*)(collage_program*)> program_;
};

/// The element of a tensor of strings that stands for a text, and the text of such an element; it lives until the process ends.
inline uint64_t StringNumber(std::string_view text) {
  uint64_t number = 0;
  ThrowIfAny(collage_string_number(text.data(), text.size(), &number));
  return number;
}
inline std::string_view StringText(uint64_t number) {
  size_t bytes = 0;
  const char* text = collage_string_text(number, &bytes);
  return {text, bytes};
}

/// The memory of a container of numbers, such as std::vector or std::array.
template <class Numbers>
collage_input Input(const Numbers& numbers) {
  return {numbers.data(), numbers.size() * sizeof(*numbers.data())};
}
template <class Numbers>
collage_output Output(Numbers& numbers) {
  return {numbers.data(), numbers.size() * sizeof(*numbers.data())};
}

/// For one thread at a time.
class Session {
 public:
  explicit Session(const Program& program) : session_(nullptr, collage_session_free) {
    collage_session* session = nullptr;
    ThrowIfAny(collage_session_create(program.get(), &session));
    session_.reset(session);
  }

  void Run(std::initializer_list<collage_input> inputs, std::initializer_list<collage_output> outputs) {
    ThrowIfAny(collage_session_run(session_.get(), inputs.begin(), inputs.size(), outputs.begin(), outputs.size()));
  }

  /// For programs whose outputs have extents that depend on data; Result then says what came out.
  void Evaluate(std::initializer_list<collage_input> inputs) {
    ThrowIfAny(collage_session_evaluate(session_.get(), inputs.begin(), inputs.size()));
  }
  [[nodiscard]] collage_result Result(size_t index) const { return collage_session_result(session_.get(), index); }

  [[nodiscard]] collage_session* get() const { return session_.get(); }

 private:
  std::unique_ptr<collage_session, void (*)(collage_session*)> session_;
};

}  // namespace wrapper
}  // namespace collage

#endif
