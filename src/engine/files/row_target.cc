#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/ids.h"
#include "base/json.h"
#include "engine/files/row_target_internal.h"
#include "engine/raise_internal.h"

namespace fleuve::engine {

namespace {

std::string TimeFolder() {
  const std::time_t now = static_cast<std::time_t>(Clock::System()->NowMillis() / 1000);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y%m%dT%H%M%S", &parts);
  return text;
}

std::string LocalPath(const std::string& path) {
  std::string out = path;
  for (const char* scheme : {"file://", "file:"}) {
    if (out.starts_with(scheme)) {
      return out.substr(std::string_view(scheme).size());
    }
  }
  return out;
}

}  // namespace

BadRecords::BadRecords(std::string path)
    : path_(LocalPath(path)), time_(TimeFolder()), name_("part-00000-" + NewUuid()) {}

void BadRecords::Write(const char* folder, std::string line) {
  const std::lock_guard lock(mutex_);
  std::error_code code;
  const std::filesystem::path parent = std::filesystem::path(path_) / time_ / folder;
  std::filesystem::create_directories(parent, code);
  std::ofstream out(parent / name_, std::ios::app | std::ios::binary);
  out << line << '\n';
  out.flush();
  if (!out) {
    RaiseError(Error(ErrorKind::kTransient, "FAILED_READ_FILE.NO_HINT",
                     "bad records cannot be written below " + parent.string()));
  }
}

void BadRecords::Add(const std::string& uri, std::string_view record, std::string_view reason) {
  Json line = Json::Object{};
  line.Set("path", uri);
  line.Set("record", record);
  line.Set("reason", reason);
  Write("bad_records", line.Dump());
}

void BadRecords::AddFile(const std::string& uri, std::string_view reason) {
  Json line = Json::Object{};
  line.Set("path", uri);
  line.Set("reason", reason);
  Write("bad_files", line.Dump());
}

Error MalformedRecord(const std::string& uri, std::string_view record, std::string_view reason) {
  constexpr std::size_t kShown = 1000;
  std::string shown(record.substr(0, kShown));
  if (record.size() > kShown) {
    shown += "...";
  }
  Error cause(ErrorKind::kInvalidArgument, "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION",
              "Malformed records are detected in record parsing: " + shown +
                  ".\nParse Mode: FAILFAST. To process malformed records as null result, try setting the option 'mode' "
                  "as 'PERMISSIVE'." +
                  (reason.empty() ? std::string() : " (" + std::string(reason) + ")") + " File: " + uri);
  return std::move(cause).With("badRecord", shown).With("failFastMode", "FAILFAST").With("path", uri);
}

}  // namespace fleuve::engine
