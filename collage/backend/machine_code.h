#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "collage/support/result.h"

namespace collage::artifact {

/// Machine code from a relocatable x86-64 ELF object, placed into memory of this process and linked there. A linker and a
/// shared object would do as well, but would have to be installed where Collage runs and cost a process for each kernel.
class MachineCode {
 public:
  /// Address of a symbol that the object does not define, or null.
  using Resolver = std::function<void*(const std::string& name)>;

  /// Errors on anything but a well-formed relocatable object of this machine, and on symbols that `resolve` does not know.
  static Result<std::unique_ptr<MachineCode>> Link(std::string_view object, const Resolver& resolve);
  ~MachineCode();
  MachineCode(const MachineCode&) = delete;
  MachineCode& operator=(const MachineCode&) = delete;

  /// Address of a function that the object defines, or null.
  [[nodiscard]] void* Find(const std::string& name) const;

 private:
  friend class Linker;
  MachineCode() = default;

  std::byte* memory_ = nullptr;
  size_t bytes_ = 0;
  std::unique_ptr<struct SymbolAddresses> symbols_;
};

}  // namespace collage::artifact
