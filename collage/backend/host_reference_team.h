#pragma once

#include "collage/op/reference_team.h"

namespace collage {

/// As long as this lives, reference kernels that the thread calls share their work among so many threads of the process-wide team
/// (UseReferenceTeam): results are the same, bit by bit.
class HostReferenceTeam {
 public:
  explicit HostReferenceTeam(int threads);

 private:
  ReferenceTeam team_;
  UseReferenceTeam use_;
};

}  // namespace collage
