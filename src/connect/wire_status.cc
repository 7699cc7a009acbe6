#include <algorithm>

#include "base/ids.h"
#include "base/json.h"
#include "connect/wire_status_internal.h"
#include "spark/connect/base.pb.h"

namespace fleuve::connect {

namespace {

constexpr std::size_t kMaxMessageBytes = 2048;
constexpr std::size_t kMaxParameterBytes = 1024;
constexpr std::size_t kMaxKeptErrors = 20;
constexpr int kMaxCauses = 5;

const std::vector<std::string>& FamilyClasses(ErrorFamily family) {
  using Names = std::vector<std::string>;
  static const auto* const kClasses = new std::map<ErrorFamily, Names>{
      {ErrorFamily::kAnalysis, {"org.apache.spark.sql.AnalysisException"}},
      {ErrorFamily::kParse,
       {"org.apache.spark.sql.catalyst.parser.ParseException", "org.apache.spark.sql.AnalysisException"}},
      {ErrorFamily::kArithmetic,
       {"org.apache.spark.SparkArithmeticException", "java.lang.ArithmeticException", "java.lang.RuntimeException"}},
      {ErrorFamily::kArrayIndexOutOfBounds,
       {"org.apache.spark.SparkArrayIndexOutOfBoundsException", "java.lang.ArrayIndexOutOfBoundsException",
        "java.lang.IndexOutOfBoundsException", "java.lang.RuntimeException"}},
      {ErrorFamily::kNumberFormat,
       {"org.apache.spark.SparkNumberFormatException", "java.lang.NumberFormatException",
        "java.lang.IllegalArgumentException", "java.lang.RuntimeException"}},
      {ErrorFamily::kDateTime,
       {"org.apache.spark.SparkDateTimeException", "java.time.DateTimeException", "java.lang.RuntimeException"}},
      {ErrorFamily::kIllegalArgument,
       {"org.apache.spark.SparkIllegalArgumentException", "java.lang.IllegalArgumentException",
        "java.lang.RuntimeException"}},
      {ErrorFamily::kUnsupportedOperation,
       {"org.apache.spark.SparkUnsupportedOperationException", "java.lang.UnsupportedOperationException",
        "java.lang.RuntimeException"}},
      {ErrorFamily::kRuntime, {"org.apache.spark.SparkRuntimeException", "java.lang.RuntimeException"}},
      {ErrorFamily::kStreamingQuery, {"org.apache.spark.sql.streaming.StreamingQueryException"}},
      {ErrorFamily::kNoSuchElement,
       {"org.apache.spark.SparkNoSuchElementException", "java.util.NoSuchElementException",
        "java.lang.RuntimeException"}},
      {ErrorFamily::kTableAlreadyExists,
       {"org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException",
        "org.apache.spark.sql.AnalysisException"}},
      {ErrorFamily::kDelta, {"java.util.ConcurrentModificationException", "java.lang.RuntimeException"}},
      {ErrorFamily::kSpark, {"org.apache.spark.SparkException"}},
  };
  return kClasses->at(family);
}

/// Delta's own exception class of a conflict; empty for other conditions.
std::string DeltaConflictClass(std::string_view condition) {
  static constexpr std::pair<std::string_view, std::string_view> kClasses[] = {
      {"DELTA_CONCURRENT_APPEND", "ConcurrentAppendException"},
      {"DELTA_CONCURRENT__DELETE_READ", "ConcurrentDeleteReadException"},
      {"DELTA_CONCURRENT_DELETE_READ", "ConcurrentDeleteReadException"},
      {"DELTA_CONCURRENT__DELETE_DELETE", "ConcurrentDeleteDeleteException"},
      {"DELTA_CONCURRENT_DELETE_DELETE", "ConcurrentDeleteDeleteException"},
      {"DELTA_CONCURRENT_TRANSACTION", "ConcurrentTransactionException"},
      {"DELTA_CONCURRENT_WRITE", "ConcurrentWriteException"},
      {"DELTA_METADATA_CHANGED", "MetadataChangedException"},
      {"DELTA_PROTOCOL_CHANGED", "ProtocolChangedException"},
  };
  const std::string_view main = condition.substr(0, condition.find('.'));
  for (const auto& [name, exception] : kClasses) {
    if (name == main) {
      return "io.delta.exceptions." + std::string(exception);
    }
  }
  return "";
}

bool IsSqlException(std::string_view condition) {
  return condition.starts_with("INVALID_HANDLE.") || condition.starts_with("INVALID_CURSOR.") ||
         condition == "OPERATION_CANCELED" || condition == "UNSUPPORTED_FEATURE.INTERRUPT_TYPE";
}

/// What user code raised: its text is Python's traceback, and it has no name on the wire.
bool IsPythonException(const Error& error) { return error.condition() == "PYTHON_EXCEPTION"; }

/// At most `limit` bytes, cut between characters, the last three dots.
std::string Cut(const std::string& text, std::size_t limit) {
  if (text.size() <= limit) {
    return text;
  }
  std::size_t end = limit - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  return text.substr(0, end) + "...";
}

void AppendVarint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void AppendBytes(std::string& out, int field, std::string_view bytes) {
  AppendVarint(out, static_cast<std::uint64_t>(field) << 3 | 2);
  AppendVarint(out, bytes.size());
  out.append(bytes);
}

Json ParametersJson(const Error& error) {
  Json::Object object;
  for (const auto& [name, value] : error.parameters()) {
    object.emplace_back(name, Json(value));
  }
  return Json(std::move(object));
}

std::string ContextSummary(const QueryContext& context) {
  if (!context.call_site.empty()) {
    return "== DataFrame ==\n\"" + context.fragment + "\" was called from\n" + context.call_site + "\n";
  }
  if (context.fragment.empty()) {
    return "";
  }
  std::string summary = "== SQL";
  if (!context.object_type.empty()) {
    summary += " of " + context.object_type + " " + context.object_name;
  }
  summary += " (line " + std::to_string(std::max(context.line, 1)) + ", position " +
             std::to_string(context.column + 1) + ") ==\n" + context.fragment + "\n" +
             std::string(std::max<std::size_t>(context.fragment.size(), 1), '^') + "\n";
  return summary;
}

}  // namespace

std::vector<std::string> ExceptionClasses(const Error& error) {
  std::vector<std::string> classes;
  if (IsSqlException(error.condition())) {
    classes = {"org.apache.spark.SparkSQLException", "java.sql.SQLException"};
  } else if (IsPythonException(error)) {
    classes = {"org.apache.spark.api.python.PythonException", "java.lang.RuntimeException"};
  } else if (error.condition() == "DATA_SOURCE_NOT_FOUND") {
    classes = {"org.apache.spark.SparkClassNotFoundException", "java.lang.ClassNotFoundException",
               "java.lang.ReflectiveOperationException"};
  } else if (std::string conflict = DeltaConflictClass(error.condition()); !conflict.empty()) {
    classes = {conflict, "io.delta.exceptions.DeltaConcurrentModificationException"};
    const auto& family = FamilyClasses(ErrorFamily::kDelta);
    classes.insert(classes.end(), family.begin(), family.end());
  } else if (error.condition().starts_with("CONNECT_INVALID_PLAN.") ||
             (error.condition() == "INTERNAL_ERROR" && error.kind() == ErrorKind::kInvalidArgument)) {
    classes = {"org.apache.spark.sql.connect.common.InvalidPlanInput"};
  } else {
    classes = FamilyClasses(error.family());
  }
  classes.insert(classes.end(), {"java.lang.Exception", "java.lang.Throwable", "java.lang.Object"});
  return classes;
}

grpc::Status ToStatus(const Error& error, const std::string& error_id) {
  const std::vector<std::string> classes = ExceptionClasses(error);
  const std::string message = Cut(error.ToString(), kMaxMessageBytes);
  Json::Array class_array;
  for (const std::string& name : classes) {
    class_array.emplace_back(name);
  }
  std::map<std::string, std::string> metadata;
  metadata["classes"] = Json(std::move(class_array)).Dump();
  if (!error.condition().empty() && !IsPythonException(error)) {
    metadata["errorClass"] = error.condition();
    if (const std::string state = error.sql_state(); !state.empty()) {
      metadata["sqlState"] = state;
    }
    if (std::string parameters = ParametersJson(error).Dump(); parameters.size() <= kMaxParameterBytes) {
      metadata["messageParameters"] = std::move(parameters);
    }
  }
  if (!error_id.empty()) {
    metadata["errorId"] = error_id;
  }
  // google.rpc.ErrorInfo{reason=1, domain=2, metadata=3} in google.rpc.Status{code=1, message=2, details=3}.
  std::string info;
  AppendBytes(info, 1, classes.front());
  AppendBytes(info, 2, "org.apache.spark");
  for (const auto& [key, value] : metadata) {
    std::string entry;
    AppendBytes(entry, 1, key);
    AppendBytes(entry, 2, value);
    AppendBytes(info, 3, entry);
  }
  std::string any;
  AppendBytes(any, 1, "type.googleapis.com/google.rpc.ErrorInfo");
  AppendBytes(any, 2, info);
  std::string status;
  AppendVarint(status, 1 << 3);
  AppendVarint(status, static_cast<std::uint64_t>(grpc::StatusCode::INTERNAL));
  AppendBytes(status, 2, message);
  AppendBytes(status, 3, any);
  return grpc::Status(grpc::StatusCode::INTERNAL, message, status);
}

void FillErrorDetails(const Error& error, spark::connect::FetchErrorDetailsResponse* response) {
  response->set_root_error_idx(0);
  int index = 0;
  for (const Error* e = &error; e != nullptr && index < kMaxCauses; e = e->cause(), ++index) {
    auto* out = response->add_errors();
    for (const std::string& name : ExceptionClasses(*e)) {
      out->add_error_type_hierarchy(name);
    }
    out->set_message(e->ToString());
    if (e->cause() != nullptr && index + 1 < kMaxCauses) {
      out->set_cause_idx(index + 1);
    }
    if (e->condition().empty() || IsPythonException(*e)) {
      continue;
    }
    auto* throwable = out->mutable_spark_throwable();
    throwable->set_error_class(e->condition());
    for (const auto& [name, value] : e->parameters()) {
      (*throwable->mutable_message_parameters())[name] = value;
    }
    if (const std::string state = e->sql_state(); !state.empty()) {
      throwable->set_sql_state(state);
    }
    for (const QueryContext& context : e->contexts()) {
      auto* c = throwable->add_query_contexts();
      c->set_context_type(context.call_site.empty()
                              ? spark::connect::FetchErrorDetailsResponse::QueryContext::SQL
                              : spark::connect::FetchErrorDetailsResponse::QueryContext::DATAFRAME);
      c->set_object_type(context.object_type);
      c->set_object_name(context.object_name);
      c->set_start_index(context.start_index);
      c->set_stop_index(context.stop_index);
      c->set_fragment(context.fragment);
      c->set_call_site(context.call_site);
      c->set_summary(ContextSummary(context));
    }
  }
}

std::string ErrorStore::Add(const std::string& session, const Error& error) {
  const std::string id = NewUuid();
  std::lock_guard lock(mutex_);
  auto& errors = sessions_[session];
  errors.emplace_back(id, error);
  if (errors.size() > kMaxKeptErrors) {
    errors.pop_front();
  }
  return id;
}

bool ErrorStore::Take(const std::string& session, const std::string& id, Error* error) {
  std::lock_guard lock(mutex_);
  auto found = sessions_.find(session);
  if (found == sessions_.end()) {
    return false;
  }
  auto& errors = found->second;
  const auto it = std::find_if(errors.begin(), errors.end(), [&](const auto& entry) { return entry.first == id; });
  if (it == errors.end()) {
    return false;
  }
  *error = std::move(it->second);
  errors.erase(it);
  return true;
}

void ErrorStore::Forget(const std::string& session) {
  std::lock_guard lock(mutex_);
  sessions_.erase(session);
}

}  // namespace fleuve::connect
