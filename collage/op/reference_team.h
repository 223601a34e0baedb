#pragma once

#include <cstdint>
#include <functional>

namespace collage {

/// Runs `body(begin, end)` over pieces of [0, count), in whatever threads, and returns when all are done.
using ReferenceTeam = std::function<void(int64_t count, const std::function<void(int64_t begin, int64_t end)>& body)>;

/// As long as this lives, reference kernels that the thread calls may share their work on the team, which must outlive it: products and
/// convolutions do, in pieces that are computed as they are by one thread, bit by bit. Else they run on the thread alone.
class UseReferenceTeam {
 public:
  explicit UseReferenceTeam(const ReferenceTeam& team);
  UseReferenceTeam(const UseReferenceTeam&) = delete;
  UseReferenceTeam& operator=(const UseReferenceTeam&) = delete;
  ~UseReferenceTeam();

 private:
  const ReferenceTeam* before_;
};

/// On the team of this thread, if it has one.
void ShareAmongTeam(int64_t count, const std::function<void(int64_t begin, int64_t end)>& body);

}  // namespace collage
