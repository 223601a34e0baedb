#include "collage/support/short_list.h"

namespace collage {
namespace {

// The first two say where a region begins, the last where it ends; exporters write names of up to 40 characters.
constexpr size_t kMostNamed = 4;
constexpr size_t kNamedFirst = 2;

}  // namespace

std::string ShortList(const std::vector<std::string>& names) {
  const bool all = names.size() <= kMostNamed;
  std::string text;
  for (size_t i = 0; i < (all ? names.size() : kNamedFirst); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (!all) text += ", ..., " + names.back();
  return text;
}

std::string CountedList(const std::vector<std::string>& names, const std::string& plural) {
  const std::string text = ShortList(names);
  return names.size() < 2 ? text : text + " (" + std::to_string(names.size()) + " " + plural + ")";
}

}  // namespace collage
