#pragma once

/// \file
/// Arrow arrays that own what they point to: how a room makes a batch out of buffers of its own.

#include <cstdint>
#include <memory>
#include <vector>

#include "columnar/record_batch.h"

namespace fleuve::columnar {

/// An array with an offset of 0.
/// \param buffers   as Arrow lays them out for the type, validity first (nullptr where nothing is NULL).
/// \param children  taken over; released with the array.
/// \param owner     keeps the buffers until the array is released; may be null where there are none.
ArrowArray MakeArray(std::int64_t length, std::int64_t null_count, std::vector<const void*> buffers,
                     std::vector<ArrowArray> children, std::shared_ptr<const void> owner);

/// A copy of `array` that keeps `owner` alive instead of owning its buffers.
ArrowArray ShareArray(const ArrowArray& array, const std::shared_ptr<ArrayHolder>& owner);

/// A batch of whole columns, which are taken over.
RecordBatch MakeBatch(std::shared_ptr<const types::Schema> schema, std::int64_t row_count,
                      std::vector<ArrowArray> columns);

}  // namespace fleuve::columnar
