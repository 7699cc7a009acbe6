#pragma once

/// \file
/// Vectors as the target of the Avro decoder.

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "avro/decoder.h"
#include "engine/duckdb_pch.h"
#include "plan/avro_options.h"
#include "types/data_type.h"
#include "types/time_zone.h"

namespace fleuve::engine {

/// Where values of one type of the reader's schema go.
struct AvroColumn {
  types::DataType type;
  avro::Logical logical = avro::Logical::kNone;
  /// The struct of a union's members: one of its fields has the value.
  bool members = false;
  std::vector<AvroColumn> children;  ///< fields of a struct, the element of an array, the value of a map
  std::vector<int> places;           ///< of a record's fields or a union's branches: their child; -1 = none
};

/// nullopt where no value of the schema can become one of the type: names of fields that are equal but for their case,
/// a member of a union that recursion has left out, a Spark type in a property that does not fit.
std::optional<AvroColumn> CompileAvroColumn(const avro::Node& node, const types::DataType& type, bool case_sensitive);

/// Threads: one.
class AvroVectors {
 public:
  struct Place {
    const AvroColumn* column = nullptr;
    duckdb::Vector* vector = nullptr;
    duckdb::idx_t row = 0;
    explicit operator bool() const { return column != nullptr; }
  };

  /// \param zone  of the session: old timestamps are of its wall clock.
  AvroVectors(plan::AvroCalendar calendar, std::shared_ptr<const types::TimeZone> zone)
      : calendar_(calendar), zone_(std::move(zone)) {}

  bool Null(Place place);
  bool Boolean(Place place, bool value);
  bool Int(Place place, std::int32_t value);
  bool Long(Place place, std::int64_t value);
  bool Float(Place place, float value);
  bool Double(Place place, double value);
  bool Bytes(Place place, std::string_view value);
  bool Text(Place place, std::string_view value);
  bool BeginRecord(Place place, const avro::Node& node);
  Place Field(Place place, const avro::Node& node, std::size_t field);
  void EndRecord(Place) {}
  bool BeginList(Place place);
  Place Item(Place place);
  void EndList(Place) {}
  bool BeginMap(Place place) { return BeginList(place); }
  Place Entry(Place place, std::string_view key);
  void EndMap(Place) {}
  Place Branch(Place place, const avro::Node& union_node, int branch);

 private:
  bool Timestamp(Place place, std::int64_t value, bool rebase);
  bool Date(Place place, std::int64_t days);

  plan::AvroCalendar calendar_;
  std::shared_ptr<const types::TimeZone> zone_;
};

/// The number that big-endian bytes in two's complement are; nullopt where there are none or it has more than 128 bits.
std::optional<types::Int128> AvroDecimal(std::string_view bytes);

}  // namespace fleuve::engine
