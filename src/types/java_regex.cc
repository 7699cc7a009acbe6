#include "types/java_regex.h"

#include <unicode/regex.h>
#include <unicode/unistr.h>

namespace fleuve::types {

namespace {

class IcuRegex final : public JavaRegex {
 public:
  explicit IcuRegex(std::unique_ptr<icu::RegexPattern> pattern) : pattern_(std::move(pattern)) {}
  bool Find(std::string_view text) const override {
    const icu::UnicodeString input =
        icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())));
    UErrorCode status = U_ZERO_ERROR;
    const std::unique_ptr<icu::RegexMatcher> matcher(pattern_->matcher(input, status));
    return U_SUCCESS(status) && matcher->find() != 0;
  }

 private:
  std::unique_ptr<icu::RegexPattern> pattern_;
};

}  // namespace

Result<std::shared_ptr<const JavaRegex>> JavaRegex::Compile(std::string_view pattern) {
  UErrorCode status = U_ZERO_ERROR;
  UParseError where{};
  std::unique_ptr<icu::RegexPattern> compiled(icu::RegexPattern::compile(
      icu::UnicodeString::fromUTF8(icu::StringPiece(pattern.data(), static_cast<std::int32_t>(pattern.size()))), where,
      status));
  if (U_FAILURE(status)) {
    return Error(ErrorKind::kInvalidArgument, "",
                 "the regular expression '" + std::string(pattern) + "' is wrong near position " +
                     std::to_string(where.offset) + " (" + u_errorName(status) + ")");
  }
  return std::shared_ptr<const JavaRegex>(std::make_shared<IcuRegex>(std::move(compiled)));
}

}  // namespace fleuve::types
