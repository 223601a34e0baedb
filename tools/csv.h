#pragma once

#include <string>
#include <vector>

namespace collage::tools {

/// A row of a table as RFC 4180 has it, but with a line feed alone at its end. What holds a comma, a quote or an end of line is quoted.
std::string CsvRow(const std::vector<std::string>& cells);

}  // namespace collage::tools
