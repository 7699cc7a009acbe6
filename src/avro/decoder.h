#pragma once

/// \file
/// The one decoder of Avro's binary values. Where they go is a target's business: vectors, JSON text, nowhere.
///
/// A target has a type `Place` (false where the value shall be skipped) and
///   bool Null(Place), Boolean(Place, bool), Int(Place, std::int32_t), Long(Place, std::int64_t), Float(Place, float),
///   Double(Place, double), Bytes(Place, std::string_view), Text(Place, std::string_view)
///   bool BeginRecord(Place, const Node&), Place Field(Place, const Node&, std::size_t field), void EndRecord(Place)
///   bool BeginList(Place), Place Item(Place), void EndList(Place)
///   bool BeginMap(Place), Place Entry(Place, std::string_view key), void EndMap(Place)
///   Place Branch(Place, const Node& union_node, int branch)
/// They are told the reader's types; false: the value does not fit its place.

#include <string_view>
#include <utility>
#include <vector>

#include "avro/binary.h"
#include "avro/map_order.h"
#include "avro/resolution.h"

namespace fleuve::avro {

/// Deeper values are broken: only recursive schemas have them, and reading is recursive.
inline constexpr int kMaxValueDepth = 1000;

/// Passes over a value of a type. False where the bytes are broken.
bool Skip(const Node& type, ByteReader& in, int depth = 0);

template <typename Target>
class Decoder {
 public:
  using Place = typename Target::Place;
  explicit Decoder(Target& target) : target_(target) {}

  /// Reads one value. False where the bytes are no such value; the target then holds a part of it.
  bool Read(const Action& action, ByteReader& in, Place place, int depth = 0) {
    if (depth > kMaxValueDepth || in.failed()) {
      return false;
    }
    if (!place) {
      return Skip(*action.writer, in, depth);
    }
    switch (action.op) {
      case Action::Op::kNull:
        return target_.Null(place);
      case Action::Op::kBoolean: {
        const bool value = in.Boolean();
        return !in.failed() && target_.Boolean(place, value);
      }
      case Action::Op::kInt: {
        const std::int32_t value = in.Int();
        return !in.failed() && Number(action.reader->kind, place, value);
      }
      case Action::Op::kLong: {
        const std::int64_t value = in.Long();
        return !in.failed() && Number(action.reader->kind, place, value);
      }
      case Action::Op::kFloat: {
        const auto value = in.Number<float>();
        return !in.failed() && Number(action.reader->kind, place, value);
      }
      case Action::Op::kDouble: {
        const auto value = in.Number<double>();
        return !in.failed() && target_.Double(place, value);
      }
      case Action::Op::kBytes: {
        const std::string_view value = in.Bytes();
        return !in.failed() &&
               (action.reader->kind == Kind::kString ? target_.Text(place, value) : target_.Bytes(place, value));
      }
      case Action::Op::kFixed: {
        const std::string_view value = in.Take(action.writer->size);
        return !in.failed() && target_.Bytes(place, value);
      }
      case Action::Op::kEnum: {
        const std::int32_t symbol = in.Int();
        if (in.failed() || symbol < 0 || static_cast<std::size_t>(symbol) >= action.symbols.size() ||
            action.symbols[static_cast<std::size_t>(symbol)] < 0) {
          return false;
        }
        const int own = action.symbols[static_cast<std::size_t>(symbol)];
        return target_.Text(place, action.reader->symbols[static_cast<std::size_t>(own)]);
      }
      case Action::Op::kArray:
        return List(action, in, place, depth);
      case Action::Op::kMap:
        return Map(action, in, place, depth);
      case Action::Op::kRecord:
        return Record(action, in, place, depth);
      case Action::Op::kWriterUnion: {
        const std::int32_t branch = in.Int();
        if (in.failed() || branch < 0 || static_cast<std::size_t>(branch) >= action.children.size()) {
          return false;
        }
        return Read(*action.children[static_cast<std::size_t>(branch)], in, place, depth + 1);
      }
      case Action::Op::kReaderUnion:
        return Read(*action.children[0], in, target_.Branch(place, *action.reader, action.branch), depth + 1);
      case Action::Op::kError:
        return false;
    }
    return false;
  }

 private:
  template <typename T>
  bool Number(Kind kind, Place place, T value) {
    switch (kind) {
      case Kind::kInt:
        return target_.Int(place, static_cast<std::int32_t>(value));
      case Kind::kLong:
        return target_.Long(place, static_cast<std::int64_t>(value));
      case Kind::kFloat:
        return target_.Float(place, static_cast<float>(value));
      default:
        return target_.Double(place, static_cast<double>(value));
    }
  }

  bool Record(const Action& action, ByteReader& in, Place place, int depth) {
    if (!target_.BeginRecord(place, *action.reader)) {
      return false;
    }
    for (std::size_t i = 0; i < action.children.size(); ++i) {
      const Action* child = action.children[i];
      const bool read =
          child == nullptr
              ? Skip(*action.writer->fields[i].type, in, depth + 1)
              : Read(*child, in, target_.Field(place, *action.reader, static_cast<std::size_t>(action.fields[i])),
                     depth + 1);
      if (!read) {
        return false;
      }
    }
    for (const Action::Default& value : action.defaults) {
      ByteReader bytes(value.bytes);
      if (!Read(*value.action, bytes, target_.Field(place, *action.reader, value.field), depth + 1)) {
        return false;
      }
    }
    target_.EndRecord(place);
    return true;
  }

  bool List(const Action& action, ByteReader& in, Place place, int depth) {
    if (!target_.BeginList(place)) {
      return false;
    }
    while (const std::int64_t count = in.BlockCount()) {
      for (std::int64_t i = 0; i < count; ++i) {
        if (!Read(*action.children[0], in, target_.Item(place), depth + 1)) {
          return false;
        }
      }
    }
    target_.EndList(place);
    return !in.failed();
  }

  /// Keys first: their order is known only when all are.
  bool Map(const Action& action, ByteReader& in, Place place, int depth) {
    std::vector<std::string_view> keys;
    std::vector<std::size_t> values;
    std::size_t expected = 0;
    while (const std::int64_t count = in.BlockCount()) {
      expected = expected == 0 ? static_cast<std::size_t>(count) : expected;
      for (std::int64_t i = 0; i < count; ++i) {
        keys.push_back(in.Bytes());
        values.push_back(in.position());
        if (!Skip(*action.writer->children[0], in, depth + 1)) {
          return false;
        }
      }
    }
    if (in.failed() || !target_.BeginMap(place)) {
      return false;
    }
    const std::size_t end = in.position();
    for (const std::size_t i : MapOrder(keys, expected, HashOfBytes)) {
      in.Seek(values[i]);
      if (!Read(*action.children[0], in, target_.Entry(place, keys[i]), depth + 1)) {
        return false;
      }
    }
    in.Seek(end);
    target_.EndMap(place);
    return true;
  }

  Target& target_;
};

}  // namespace fleuve::avro
