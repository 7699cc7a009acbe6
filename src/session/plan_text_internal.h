#pragma once

/// \file
/// Typed plans as text: for explain() and for comparing plans. Private to this room.

#include <string>

#include "plan/logical_plan.h"

namespace fleuve::session {

/// One line a node, children indented as Spark's trees are: `Project [a#1]`, `+- Filter (a#1 > 1)`.
/// \param normalized  attributes are numbered by their first use, so that equal plans have equal texts.
std::string PlanText(const plan::PlanPtr& plan, bool normalized);
/// What explain() prints. \param mode  simple, extended, codegen, cost, formatted.
std::string ExplainText(const plan::PlanPtr& analyzed, const plan::PlanPtr& prepared, const std::string& mode);

}  // namespace fleuve::session
