#pragma once

/// \file
/// The state of an aggregate as bytes, so that a stream can keep it between batches. A policy's State that has
///
///   auto Fields() { return std::tie(a, b); }
///
/// can be kept: its fields are written one after the other, numbers as they lie in memory (little-endian), texts and
/// containers with their length.
///
/// A call `f` then has three more forms, told by the end of its name (operators/aggregate_states.cc builds them). The
/// last child is a NULL of f's result type.
///
///   f#partial(arguments..., type)           rows to a state
///   f#merge(state, arguments..., type)      states to one; arguments are literals (those of the call, or NULLs)
///   f#final(state, arguments..., type)      states to the result

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "duckdb/common/serializer/binary_deserializer.hpp"
#include "duckdb/common/serializer/binary_serializer.hpp"
#include "duckdb/common/serializer/memory_stream.hpp"
#include "engine/functions/register_internal.h"

namespace fleuve::engine {

template <typename S>
concept KeptState = requires(S state) { state.Fields(); };

/// Appends values to a state's bytes.
class StateWriter {
 public:
  explicit StateWriter(std::string& out) : out_(out) {}

  template <typename T>
  void Put(const T& value) {
    if constexpr (std::is_same_v<T, duckdb::hugeint_t>) {
      Put(value.lower);
      Put(value.upper);
    } else if constexpr (std::is_same_v<T, duckdb::Value>) {
      duckdb::MemoryStream stream;
      duckdb::BinarySerializer::Serialize(value, stream);
      Length(stream.GetPosition());
      out_.append(reinterpret_cast<const char*>(stream.GetData()), stream.GetPosition());
    } else {
      static_assert(std::is_arithmetic_v<T>);
      out_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
  }
  void Put(const std::string& text) {
    Length(text.size());
    out_ += text;
  }
  template <typename A, typename B>
  void Put(const std::pair<A, B>& pair) {
    Put(pair.first);
    Put(pair.second);
  }
  template <typename T, typename A>
  void Put(const std::vector<T, A>& items) {
    Items(items);
  }
  template <typename K, typename V, typename C>
  void Put(const std::map<K, V, C>& items) {
    Items(items);
  }

 private:
  void Length(std::uint64_t length) { Put(length); }
  template <typename Container>
  void Items(const Container& items) {
    Length(items.size());
    for (const auto& item : items) {
      Put(item);
    }
  }
  std::string& out_;
};

/// Reads what StateWriter wrote; raises an internal error where the bytes do not fit.
class StateReader {
 public:
  explicit StateReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  void Take(T& value) {
    if constexpr (std::is_same_v<T, duckdb::hugeint_t>) {
      Take(value.lower);
      Take(value.upper);
    } else if constexpr (std::is_same_v<T, duckdb::Value>) {
      const std::string_view part = Bytes(Length());
      duckdb::MemoryStream stream(duckdb::Allocator::DefaultAllocator(), std::max<std::size_t>(part.size(), 1));
      stream.WriteData(reinterpret_cast<const unsigned char*>(part.data()), part.size());
      stream.Rewind();
      duckdb::BinaryDeserializer deserializer(stream);
      deserializer.Begin();
      value = duckdb::Value::Deserialize(deserializer);
      deserializer.End();
    } else {
      static_assert(std::is_arithmetic_v<T>);
      std::memcpy(&value, Bytes(sizeof(value)).data(), sizeof(value));
    }
  }
  void Take(std::string& text) { text = std::string(Bytes(Length())); }
  template <typename A, typename B>
  void Take(std::pair<A, B>& pair) {
    Take(pair.first);
    Take(pair.second);
  }
  template <typename T, typename A>
  void Take(std::vector<T, A>& items) {
    const std::uint64_t count = Length();
    for (std::uint64_t i = 0; i < count; ++i) {
      T item{};
      Take(item);
      items.push_back(std::move(item));
    }
  }
  template <typename K, typename V, typename C>
  void Take(std::map<K, V, C>& items) {
    const std::uint64_t count = Length();
    for (std::uint64_t i = 0; i < count; ++i) {
      K key{};
      V value{};
      Take(key);
      Take(value);
      items.emplace(std::move(key), std::move(value));
    }
  }

 private:
  std::uint64_t Length() {
    std::uint64_t length = 0;
    Take(length);
    return length;
  }
  std::string_view Bytes(std::size_t count) {
    if (count > bytes_.size()) {
      ThrowRowError(Error::Internal("the kept state of an aggregate is cut off"));
    }
    const std::string_view part = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return part;
  }
  std::string_view bytes_;
};

template <KeptState State>
std::string WriteState(State& state) {
  std::string out;
  StateWriter writer(out);
  std::apply([&](auto&... fields) { (writer.Put(fields), ...); }, state.Fields());
  return out;
}

template <KeptState State>
State ReadState(std::string_view bytes) {
  State state;
  StateReader reader(bytes);
  std::apply([&](auto&... fields) { (reader.Take(fields), ...); }, state.Fields());
  return state;
}

}  // namespace fleuve::engine
