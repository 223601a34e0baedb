#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

namespace collage {

/// Hands out unique names: the first request for "x" gives "x", the next "x_1", then "x_2".
class NameSupply {
 public:
  /// Marks a name as taken.
  void Reserve(const std::string& name) { taken_.insert(name); }

  std::string Fresh(const std::string& hint) {
    std::string name = hint;
    for (size_t& number = next_[hint]; !taken_.insert(name).second;) name = hint + "_" + std::to_string(++number);
    return name;
  }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, size_t> next_;
};

}  // namespace collage
