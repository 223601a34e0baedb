#pragma once

#include <string>
#include <vector>

namespace collage {

/// A list of names in about a line: "conv1, bn1, relu1", and of many "conv1, bn1, ..., relu9".
std::string ShortList(const std::vector<std::string>& names);
/// The same with the count where there are several: "conv1, bn1, ..., relu9 (27 nodes)".
std::string CountedList(const std::vector<std::string>& names, const std::string& plural);

}  // namespace collage
