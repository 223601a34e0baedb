#pragma once

#include <map>
#include <string>

#include "collage/ir/module.h"
#include "collage/ir/parse.h"

namespace collage::tools {

/// The constants of a program in text form, from file to file: a constant keeps the number that it had in the text that was read,
/// so that "meta[relay.Constant][3]" means the same before and after; those that a pass makes get the next free numbers.
class TravellingConstants {
 public:
  /// From an .npz archive whose arrays are named by number; empty path: none.
  static Result<TravellingConstants> Read(const std::string& path);

  /// Reads a program. What no archive gives and whose type stands behind it is made up of seeded random values.
  Result<IRModule> Parse(const std::string& text);
  /// The module in text form, with these numbers.
  std::string Print(const IRModule& module);
  /// All constants by number, as .npz: those that were read and those that a pass made.
  [[nodiscard]] Status Write(const std::string& path) const;
  /// How many constants the archive does not give.
  [[nodiscard]] size_t MadeUpCount() const { return made_up_; }

 private:
  size_t NumberOf(const Tensor& tensor);

  std::map<size_t, Tensor> tensors_;  // by number
  // By address and type: constants share their data with what they were read from.
  std::map<std::pair<const void*, std::string>, size_t> number_of_;
  size_t made_up_ = 0;
  size_t next_ = 0;
};

}  // namespace collage::tools
