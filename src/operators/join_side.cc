#include <algorithm>
#include <map>

#include "operators/join_side_internal.h"

namespace fleuve::operators {

namespace {

constexpr std::size_t kNumberBytes = 8;
constexpr std::size_t kHeaderBytes = 9;

void AppendNumber(std::string& out, std::uint64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>(number >> shift & 0xFF));
  }
}

std::uint64_t NumberOf(std::string_view text) {
  std::uint64_t number = 0;
  for (const char c : text) {
    number = number << 8 | static_cast<unsigned char>(c);
  }
  return number;
}

std::string RowKey(std::string_view key, std::uint64_t number) {
  std::string out(key);
  AppendNumber(out, number);
  return out;
}

Error Damaged() {
  return Error(ErrorKind::kCorrupt, "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED",
               "An error occurred during loading state. A row that the state of a join counts is not there.");
}

}  // namespace

std::uint64_t JoinSide::Count(std::string_view key) const {
  const std::string_view value = store_.Get(counts_, key);
  return value.data() == nullptr ? 0 : NumberOf(value);
}

Result<JoinSide::Row> JoinSide::Get(std::string_view key, std::uint64_t number) const {
  const std::string_view value = store_.Get(rows(), RowKey(key, number));
  if (value.data() == nullptr || value.size() < kHeaderBytes) {
    return Damaged();
  }
  Row row;
  row.matched = value[0] != 0;
  row.time = state::TimeOf(value.substr(1, 8));
  row.bytes = value.substr(kHeaderBytes);
  return row;
}

void JoinSide::Put(const std::string& row_key, const Row& row) {
  std::string value(1, row.matched ? '\1' : '\0');
  state::AppendTime(value, row.time);
  value += row.bytes;
  store_.Put(rows(), row_key, value);
}

void JoinSide::Add(std::string_view key, std::string_view bytes, std::int64_t time, bool matched) {
  const std::uint64_t number = Count(key);
  std::string count;
  AppendNumber(count, number + 1);
  store_.Put(counts_, key, count);
  const std::string row_key = RowKey(key, number);
  Put(row_key, Row{bytes, time, matched});
  if (time != kNoTime) {
    std::string time_key;
    state::AppendTime(time_key, time);
    store_.Put(times(), time_key + row_key, "");
  }
}

Result<void> JoinSide::SetMatched(std::string_view key, std::uint64_t number) {
  FLEUVE_ASSIGN(const Row row, Get(key, number));
  if (!row.matched) {
    const std::string bytes(row.bytes);  // the store's copy moves
    Put(RowKey(key, number), Row{bytes, row.time, true});
  }
  return {};
}

Result<std::int64_t> JoinSide::Expire(std::int64_t limit, const std::function<Result<void>(const Row& row)>& gone) {
  std::map<std::string, std::vector<std::uint64_t>> by_key;
  std::int64_t count = 0;
  std::optional<Error> failure;
  store_.Range(times(), INT64_MIN, limit, [&](std::string_view time_key, std::string_view) {
    const std::string_view row_key = time_key.substr(8);
    const std::string_view key = row_key.substr(0, row_key.size() - kNumberBytes);
    const std::uint64_t number = NumberOf(row_key.substr(row_key.size() - kNumberBytes));
    auto row = Get(key, number);
    auto seen = row.ok() ? gone(*row) : Result<void>(std::move(row).error());
    if (!seen.ok()) {
      failure = std::move(seen).error();
      return false;
    }
    by_key[std::string(key)].push_back(number);
    ++count;
    return true;
  });
  if (failure) {
    return *std::move(failure);
  }
  for (auto& [key, numbers] : by_key) {
    // From the greatest number down: the last row of the key is then always one that stays, or this one.
    std::sort(numbers.rbegin(), numbers.rend());
    std::uint64_t left = Count(key);
    for (const std::uint64_t number : numbers) {
      FLEUVE_ASSIGN(const Row row, Get(key, number));
      std::string time_key;
      state::AppendTime(time_key, row.time);
      const std::string row_key = RowKey(key, number);
      store_.Remove(times(), time_key + row_key);
      --left;
      const std::string last_key = RowKey(key, left);
      if (number == left) {
        store_.Remove(rows(), row_key);
        continue;
      }
      FLEUVE_ASSIGN(const Row last, Get(key, left));
      const std::string bytes(last.bytes);
      const Row moved{bytes, last.time, last.matched};
      store_.Remove(rows(), last_key);
      Put(row_key, moved);
      if (moved.time != kNoTime) {
        time_key.clear();
        state::AppendTime(time_key, moved.time);
        store_.Remove(times(), time_key + last_key);
        store_.Put(times(), time_key + row_key, "");
      }
    }
    if (left == 0) {
      store_.Remove(counts_, key);
    } else {
      std::string text;
      AppendNumber(text, left);
      store_.Put(counts_, key, text);
    }
  }
  return count;
}

}  // namespace fleuve::operators
