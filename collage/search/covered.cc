#include "collage/search/covered.h"

namespace collage {

Covered After(const Covered& covered, const IndexSet& inside) {
  IndexSet all = covered.tail | inside;
  Covered result{covered.next, {}};
  while (all.Contains(result.next)) ++result.next;
  if (all.Last() < result.next) return result;
  for (size_t node = all.NextFrom(result.next); node != IndexSet::npos; node = all.NextFrom(node + 1)) result.tail.Add(node);
  return result;
}

}  // namespace collage
