#include "base/error.h"

#include <algorithm>
#include <array>

namespace fleuve {
namespace {

struct ConditionRow {
  std::string_view name;
  std::string_view sql_state;
  ErrorFamily family;
};

constexpr auto kConditions = std::to_array<ConditionRow>({
#include "base/error_conditions.inc"
});

const ConditionRow* FindRow(std::string_view name) {
  const auto row =
      std::find_if(kConditions.begin(), kConditions.end(), [&](const ConditionRow& r) { return r.name == name; });
  return row == kConditions.end() ? nullptr : &*row;
}

/// A row of its own for a condition with its subclass goes before the row of the condition.
const ConditionRow* FindCondition(std::string_view condition) {
  const ConditionRow* own = FindRow(condition);
  return own != nullptr ? own : FindRow(condition.substr(0, condition.find('.')));
}

}  // namespace

Error::Error(ErrorKind kind, std::string condition, std::string message) : data_(std::make_shared<Data>()) {
  data_->kind = kind;
  data_->condition = std::move(condition);
  data_->message = std::move(message);
}

Error Error::Internal(std::string message) { return Error(ErrorKind::kInternal, "INTERNAL_ERROR", std::move(message)); }

Error Error::Unsupported(std::string_view what) {
  return Error(ErrorKind::kUnsupported, "UNSUPPORTED_FEATURE.FLEUVE",
               "This version of Fleuve does not support " + std::string(what) + ".")
      .With("feature", std::string(what));
}

Error Error::Cancelled(std::string message) {
  return Error(ErrorKind::kCancelled, "OPERATION_CANCELED", std::move(message));
}

Error Error::With(std::string name, std::string value) && {
  data_->parameters.emplace_back(std::move(name), std::move(value));
  return std::move(*this);
}

Error Error::Context(std::string frame) && {
  data_->frames.insert(data_->frames.begin(), std::move(frame));
  return std::move(*this);
}

Error Error::At(QueryContext context) && {
  data_->contexts.push_back(std::move(context));
  return std::move(*this);
}

Error Error::CausedBy(Error cause) && {
  data_->cause = std::make_shared<const Error>(std::move(cause));
  return std::move(*this);
}

Error Error::SqlState(std::string state) && {
  data_->sql_state = std::move(state);
  return std::move(*this);
}

Error Error::Family(ErrorFamily family) && {
  data_->family = family;
  return std::move(*this);
}

std::string Error::sql_state() const {
  if (!data_->sql_state.empty()) {
    return data_->sql_state;
  }
  const ConditionRow* row = FindCondition(data_->condition);
  return row == nullptr ? std::string() : std::string(row->sql_state);
}

ErrorFamily Error::family() const {
  if (data_->family) {
    return *data_->family;
  }
  const ConditionRow* row = FindCondition(data_->condition);
  return row == nullptr ? ErrorFamily::kSpark : row->family;
}

std::string Error::ToString() const {
  // Spark shows its old conditions, and what user code raised, without their names.
  const bool bare = data_->condition.empty() || data_->condition.starts_with("_LEGACY_ERROR_TEMP_") ||
                    data_->condition == "PYTHON_EXCEPTION";
  std::string text = bare ? data_->message : "[" + data_->condition + "] " + data_->message;
  // Delta's errors do not show theirs.
  const std::string state = data_->condition.starts_with("DELTA_") ? std::string() : sql_state();
  return state.empty() ? text : text + " SQLSTATE: " + state;
}

}  // namespace fleuve
