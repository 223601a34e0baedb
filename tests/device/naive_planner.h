#pragma once

// Device planning by the letter of its definition, for small programs: classes are sets that are relabelled one tensor at a time, and
// everything is computed again until nothing changes. It shares no code with the planner beyond VirtualDevice.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "collage/device/configuration.h"
#include "collage/ir/module.h"

namespace collage {

struct NaivePlan {
  std::set<std::string> error_kinds;
  std::map<const ExprNode*, std::vector<std::string>> devices;  ///< of every expression but functions and what gives them
  struct Copy {
    const ExprNode* maker;
    size_t field;
    std::string to;
    friend auto operator<=>(const Copy&, const Copy&) = default;
  };
  std::map<Copy, std::set<const ExprNode*>> copies;  ///< and who uses them
};

NaivePlan PlanNaively(const IRModule& module, const DeviceConfiguration& configuration);

}  // namespace collage
