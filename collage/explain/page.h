#pragma once

#include <string>
#include <vector>

#include "collage/support/result.h"

namespace collage {

/// A step of one run, for the time line.
struct RunStep {
  std::string kind;    ///< as StepProfile's
  std::string name;    ///< symbol of a kernel's partition; of others what they do
  std::string device;  ///< on which it ran: the row
  double begin_us = 0;
  double took_us = 0;
};

/// What a report page shows of one shape profile.
struct PageProfile {
  std::string metadata;             ///< as MetadataOfProfiles gives it
  std::vector<RunStep> steps = {};  ///< of one run, in the order of their begins; empty: it was not run
  std::string why_not_run = {};     ///< where `steps` is empty
  double run_us = 0;                ///< of that run, without the clock readings of single steps
};

/// A whole HTML page that needs nothing beside itself: graph, time line, plans, roofline and refusals of a compiled file (`file` is its
/// name). Searches the recorded prices again for what each node would cost elsewhere; measures nothing. Errors on malformed metadata.
Result<std::string> ReportPage(const std::string& file, const std::vector<PageProfile>& profiles);

}  // namespace collage
