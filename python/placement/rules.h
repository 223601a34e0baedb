#pragma once

#include <nanobind/nanobind.h>

#include <functional>

#include "collage/candidate/gather.h"
#include "collage/pattern/rule.h"

namespace collage_python {

/// A rule tree; which compiler it is for, a target says when it is used.
struct RuleTree {
  collage::StatedRule make;
};

/// What a check of Python's says of a match; empty for None.
std::function<collage::Verdict(const collage::Match&)> CheckOf(nanobind::object check);

}  // namespace collage_python
