#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "collage/backend/machine_code.h"
#include "collage/support/result.h"

namespace collage::artifact {

/// Machine code that is linked into this process, beside the relocatable object that it came from, which is what is saved.
class LinkedCode {
 public:
  LinkedCode(std::string object, std::unique_ptr<MachineCode> code) : object_(std::move(object)), code_(std::move(code)) {}
  [[nodiscard]] const std::string& object() const { return object_; }
  /// Address of a function that the object defines, or null.
  [[nodiscard]] void* Find(const std::string& name) const { return code_->Find(name); }

 private:
  std::string object_;
  std::unique_ptr<MachineCode> code_;
};

/// The code of a backend's kernels, for as long as one of them has it: kernels of layers of one shape share it, and to generate it takes
/// longer than all else that makes them. Such code has no state: all that a kernel reads or writes comes by its arguments. For many
/// threads.
class SharedCodes {
 public:
  explicit SharedCodes(MachineCode::Resolver resolve) : resolve_(std::move(resolve)) {}

  /// The code of what has this key, such as its source; or null.
  [[nodiscard]] std::shared_ptr<const LinkedCode> Find(const std::string& key) const;
  /// `object` is for what has this key. Errors as Link.
  Result<std::shared_ptr<const LinkedCode>> Add(const std::string& key, std::string object);
  /// An object from a file, say, of which nobody knows the key. Errors as MachineCode::Link.
  Result<std::shared_ptr<const LinkedCode>> Link(std::string object);

 private:
  using Code = std::weak_ptr<const LinkedCode>;

  MachineCode::Resolver resolve_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Code> by_key_;
  std::unordered_map<uint64_t, Code> by_object_;  // by its hash
};

}  // namespace collage::artifact
