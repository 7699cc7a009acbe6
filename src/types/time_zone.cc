#include "types/time_zone.h"

#include <unicode/basictz.h>
#include <unicode/timezone.h>

#include <map>
#include <mutex>
#include <optional>

#include "base/bytes.h"

namespace fleuve::types {
namespace {

constexpr std::int64_t kMicrosPerSecond = 1000000;

class FixedZone final : public TimeZone {
 public:
  FixedZone(std::string id, std::int64_t offset_seconds) : TimeZone(std::move(id)), offset_seconds_(offset_seconds) {}
  std::int64_t OffsetSecondsAtUtc(std::int64_t /*utc_micros*/) const override { return offset_seconds_; }
  std::int64_t LocalToUtc(std::int64_t local_micros) const override {
    return local_micros - offset_seconds_ * kMicrosPerSecond;
  }

 private:
  std::int64_t offset_seconds_;
};

class RegionZone final : public TimeZone {
 public:
  RegionZone(std::string id, std::unique_ptr<icu::BasicTimeZone> zone)
      : TimeZone(std::move(id)), zone_(std::move(zone)) {}

  std::int64_t OffsetSecondsAtUtc(std::int64_t utc_micros) const override { return Offset(utc_micros, false); }

  std::int64_t LocalToUtc(std::int64_t local_micros) const override {
    std::int32_t raw = 0;
    std::int32_t dst = 0;
    UErrorCode status = U_ZERO_ERROR;
    // UCAL_TZ_LOCAL_FORMER: in an overlap the earlier offset, in a gap the one before it: the time moves forward.
    zone_->getOffsetFromLocal(Millis(local_micros), UCAL_TZ_LOCAL_FORMER, UCAL_TZ_LOCAL_FORMER, raw, dst, status);
    return local_micros - static_cast<std::int64_t>(raw + dst) * 1000;
  }

 private:
  static UDate Millis(std::int64_t micros) {
    const std::int64_t millis = micros / 1000;
    return static_cast<UDate>(millis * 1000 > micros ? millis - 1 : millis);
  }
  std::int64_t Offset(std::int64_t micros, bool local) const {
    std::int32_t raw = 0;
    std::int32_t dst = 0;
    UErrorCode status = U_ZERO_ERROR;
    zone_->getOffset(Millis(micros), static_cast<UBool>(local), raw, dst, status);
    return (raw + dst) / 1000;
  }

  std::unique_ptr<icu::BasicTimeZone> zone_;
};

/// `+8`, `-08:30`, `+01:02:03`, `+0130` in seconds; nullopt where it is no offset or beyond 18 hours.
std::optional<std::int64_t> ParseOffset(std::string_view text) {
  if (text.size() < 2 || (text[0] != '+' && text[0] != '-')) {
    return std::nullopt;
  }
  const std::int64_t sign = text[0] == '-' ? -1 : 1;
  std::string digits;
  int parts = 1;
  std::string padded;
  for (const char c : text.substr(1)) {
    if (c >= '0' && c <= '9') {
      digits += c;
    } else if (c == ':') {
      if (digits.size() == 1) {
        digits.insert(0, "0");
      }
      if (digits.size() != 2) {
        return std::nullopt;
      }
      padded += digits;
      digits.clear();
      ++parts;
    } else {
      return std::nullopt;
    }
  }
  if (parts > 3 || digits.empty()) {
    return std::nullopt;
  }
  if (digits.size() == 1 || digits.size() == 3) {
    digits.insert(0, "0");
  }
  padded += digits;
  if (padded.size() > 6 || padded.size() % 2 != 0) {
    return std::nullopt;
  }
  padded.append(6 - padded.size(), '0');
  const std::int64_t hours = std::stoi(padded.substr(0, 2));
  const std::int64_t minutes = std::stoi(padded.substr(2, 2));
  const std::int64_t seconds = std::stoi(padded.substr(4, 2));
  const std::int64_t total = hours * 3600 + minutes * 60 + seconds;
  if (minutes > 59 || seconds > 59 || total > 18 * 3600) {
    return std::nullopt;
  }
  return sign * total;
}

std::shared_ptr<const TimeZone> Make(const std::string& id) {
  if (id == "Z" || id == "UTC" || id == "GMT" || id == "UT" || id == "Etc/UTC") {
    return std::make_shared<FixedZone>(id, 0);
  }
  std::string_view offset = id;
  for (const std::string_view prefix : {"UTC", "GMT", "UT"}) {
    if (offset.starts_with(prefix) && offset.size() > prefix.size() &&
        (offset[prefix.size()] == '+' || offset[prefix.size()] == '-')) {
      offset.remove_prefix(prefix.size());
      break;
    }
  }
  if (const auto seconds = ParseOffset(offset)) {
    return std::make_shared<FixedZone>(id, *seconds);
  }
  std::unique_ptr<icu::TimeZone> zone(icu::TimeZone::createTimeZone(icu::UnicodeString::fromUTF8(id)));
  if (zone == nullptr || *zone == icu::TimeZone::getUnknown()) {
    return nullptr;
  }
  auto* basic = dynamic_cast<icu::BasicTimeZone*>(zone.get());
  if (basic == nullptr) {
    return nullptr;
  }
  zone.release();
  return std::make_shared<RegionZone>(id, std::unique_ptr<icu::BasicTimeZone>(basic));
}

}  // namespace

Result<std::shared_ptr<const TimeZone>> TimeZone::Find(std::string_view id) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const TimeZone>, std::less<>> cache;
  const std::lock_guard lock(mutex);
  const auto found = cache.find(id);
  if (found != cache.end()) {
    return found->second;
  }
  auto made = Make(std::string(id));
  if (made == nullptr) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_TIMEZONE",
                 "The timezone: " + std::string(id) +
                     " is invalid. The timezone must be either a region-based zone ID or a zone offset.")
        .With("timeZone", std::string(id));
  }
  cache.emplace(std::string(id), made);
  return made;
}

}  // namespace fleuve::types
