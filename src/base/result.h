#pragma once

/// \file
/// `Result<T>`: a value or an Error, and the two macros that pass errors on.

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/error.h"

namespace fleuve {

/// A value of type T, or the Error that kept it from being made.
template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT
  template <typename U>
    requires(std::is_convertible_v<U&&, T> && !std::is_same_v<std::decay_t<U>, Error> &&
             !std::is_same_v<std::decay_t<U>, Result<T>> && !std::is_same_v<std::decay_t<U>, T>)
  Result(U&& value) : state_(std::in_place_index<0>, std::forward<U>(value)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

/// Success, or the Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }
  /// Drops a failure on purpose; the reason makes the place searchable.
  void IgnoreBecause(const char* /*reason*/) const {}

 private:
  std::optional<Error> error_;
};

namespace internal {
[[noreturn]] inline void CheckFailed(const char* text, const char* file, int line) {
  std::fprintf(stderr, "check failed: %s at %s:%d\n", text, file, line);
  std::abort();
}
}  // namespace internal

}  // namespace fleuve

#define FLEUVE_CONCAT_INNER(a, b) a##b
#define FLEUVE_CONCAT(a, b) FLEUVE_CONCAT_INNER(a, b)

/// Evaluates an expression of type Result<...>; returns its error from the enclosing function.
#define FLEUVE_TRY(expr)                           \
  do {                                             \
    auto fleuve_try_result = (expr);               \
    if (!fleuve_try_result.ok()) {                 \
      return std::move(fleuve_try_result).error(); \
    }                                              \
  } while (false)

/// `FLEUVE_ASSIGN(auto x, Make())`: x is the value, or the enclosing function returns the error.
#define FLEUVE_ASSIGN(lhs, ...)                                        \
  auto FLEUVE_CONCAT(fleuve_assign_, __LINE__) = (__VA_ARGS__);        \
  if (!FLEUVE_CONCAT(fleuve_assign_, __LINE__).ok()) {                 \
    return std::move(FLEUVE_CONCAT(fleuve_assign_, __LINE__)).error(); \
  }                                                                    \
  lhs = std::move(FLEUVE_CONCAT(fleuve_assign_, __LINE__)).value()

/// Dies when false, in every build: for state that is beyond trust, never for input.
#define FLEUVE_CHECK(condition)                                        \
  do {                                                                 \
    if (!(condition)) {                                                \
      ::fleuve::internal::CheckFailed(#condition, __FILE__, __LINE__); \
    }                                                                  \
  } while (false)
