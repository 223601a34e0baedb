#pragma once

#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>

namespace collage::testing {

/// Of machine code that this process has made itself: what is executable and of no file.
inline size_t BytesOfCode() {
  std::ifstream maps("/proc/self/maps");
  size_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string range, permissions, offset, device, inode, path;
    words >> range >> permissions >> offset >> device >> inode >> path;
    if (permissions != "r-xp" || inode != "0" || !path.empty()) continue;
    const size_t dash = range.find('-');
    bytes += std::stoull(range.substr(dash + 1), nullptr, 16) - std::stoull(range.substr(0, dash), nullptr, 16);
  }
  return bytes;
}

}  // namespace collage::testing
