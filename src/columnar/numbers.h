#pragma once

/// \file
/// One column of numbers as a batch, without values in between.

#include <cstdint>
#include <string>
#include <vector>

#include "columnar/record_batch.h"

namespace fleuve::columnar {

/// A batch of one BIGINT column without NULLs.
RecordBatch BatchOfNumbers(std::string name, std::vector<std::int64_t> numbers);

}  // namespace fleuve::columnar
