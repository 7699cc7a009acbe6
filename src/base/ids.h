#pragma once

/// \file
/// Identifiers that must not be mixed up, and random UUIDs.

#include <compare>
#include <cstdint>
#include <string>

namespace fleuve {

/// A number with a meaning: two ids of different tags do not convert into each other.
template <typename Tag>
struct StrongInt {
  std::int64_t value = 0;
  constexpr StrongInt() = default;
  constexpr explicit StrongInt(std::int64_t v) : value(v) {}
  auto operator<=>(const StrongInt&) const = default;
  StrongInt Next() const { return StrongInt(value + 1); }
};

/// Number of a micro-batch of one query, from 0.
using BatchId = StrongInt<struct BatchIdTag>;
/// Version of a Delta table, from 0.
using TableVersion = StrongInt<struct TableVersionTag>;

/// A random (version 4) UUID in lower case with hyphens. Threads: any.
std::string NewUuid();

}  // namespace fleuve
