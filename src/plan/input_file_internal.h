#pragma once

/// \file
/// input_file_name() over scans of files.

#include "plan/logical_plan.h"

namespace fleuve::plan {

/// Replaces calls of input_file_name() by the path in the hidden `_metadata` of the one scan below, where there is one;
/// elsewhere they stay and give an empty text, as in Spark.
PlanPtr FillInputFileNames(const PlanPtr& plan);

}  // namespace fleuve::plan
