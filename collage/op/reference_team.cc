#include "collage/op/reference_team.h"

#include <utility>

namespace collage {
namespace {

thread_local const ReferenceTeam* team_of_thread = nullptr;

}  // namespace

UseReferenceTeam::UseReferenceTeam(const ReferenceTeam& team) : before_(std::exchange(team_of_thread, &team)) {}

UseReferenceTeam::~UseReferenceTeam() { team_of_thread = before_; }

void ShareAmongTeam(int64_t count, const std::function<void(int64_t begin, int64_t end)>& body) {
  if (team_of_thread)
    (*team_of_thread)(count, body);
  else
    body(0, count);
}

}  // namespace collage
