#include "engine/carriers_internal.h"
#include "engine/raise_internal.h"

namespace fleuve::engine {

using duckdb::LogicalType;
using types::DataType;
using types::TypeKind;

duckdb::LogicalType CarrierType(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kVoid:
      return LogicalType::INTEGER;
    case TypeKind::kBoolean:
      return LogicalType::BOOLEAN;
    case TypeKind::kByte:
      return LogicalType::TINYINT;
    case TypeKind::kShort:
      return LogicalType::SMALLINT;
    case TypeKind::kInt:
    case TypeKind::kYearMonthInterval:
      return LogicalType::INTEGER;
    case TypeKind::kLong:
    case TypeKind::kDayTimeInterval:
      return LogicalType::BIGINT;
    case TypeKind::kFloat:
      return LogicalType::FLOAT;
    case TypeKind::kDouble:
      return LogicalType::DOUBLE;
    case TypeKind::kDecimal:
      return LogicalType::DECIMAL(static_cast<std::uint8_t>(type.precision()), static_cast<std::uint8_t>(type.scale()));
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
      return LogicalType::VARCHAR;
    case TypeKind::kBinary:
      return LogicalType::BLOB;
    case TypeKind::kDate:
      return LogicalType::DATE;
    case TypeKind::kTimestamp:
      return LogicalType::TIMESTAMP_TZ;
    case TypeKind::kTimestampNtz:
      return LogicalType::TIMESTAMP;
    case TypeKind::kCalendarInterval:
      return LogicalType::STRUCT(
          {{"f0", LogicalType::INTEGER}, {"f1", LogicalType::INTEGER}, {"f2", LogicalType::BIGINT}});
    case TypeKind::kVariant:
      return LogicalType::STRUCT({{"f0", LogicalType::BLOB}, {"f1", LogicalType::BLOB}});
    case TypeKind::kArray:
      return LogicalType::LIST(CarrierType(type.element()));
    case TypeKind::kMap:
      return LogicalType::MAP(CarrierType(type.key()), CarrierType(type.value()));
    case TypeKind::kStruct: {
      duckdb::child_list_t<LogicalType> fields;
      for (const auto& field : type.fields()) {
        fields.emplace_back("f" + std::to_string(fields.size()), CarrierType(field.type));
      }
      if (fields.empty()) {
        fields.emplace_back("f0", LogicalType::INTEGER);
      }
      return LogicalType::STRUCT(std::move(fields));
    }
    case TypeKind::kTime:
      break;
  }
  RaiseError(Error::Unsupported("values of type " + type.SimpleString()));
}

duckdb::Value CarrierValue(const types::Value& value, const DataType& type) {
  if (value.is_null()) {
    return duckdb::Value(CarrierType(type));
  }
  switch (type.kind()) {
    case TypeKind::kVoid:
      return duckdb::Value(LogicalType::INTEGER);
    case TypeKind::kBoolean:
      return duckdb::Value::BOOLEAN(value.boolean());
    case TypeKind::kByte:
      return duckdb::Value::TINYINT(static_cast<std::int8_t>(value.integer()));
    case TypeKind::kShort:
      return duckdb::Value::SMALLINT(static_cast<std::int16_t>(value.integer()));
    case TypeKind::kInt:
    case TypeKind::kYearMonthInterval:
      return duckdb::Value::INTEGER(static_cast<std::int32_t>(value.integer()));
    case TypeKind::kLong:
    case TypeKind::kDayTimeInterval:
      return duckdb::Value::BIGINT(value.integer());
    case TypeKind::kFloat:
      return duckdb::Value::FLOAT(static_cast<float>(value.real()));
    case TypeKind::kDouble:
      return duckdb::Value::DOUBLE(value.real());
    case TypeKind::kDecimal: {
      const auto precision = static_cast<std::uint8_t>(type.precision());
      const auto scale = static_cast<std::uint8_t>(type.scale());
      const types::Int128 unscaled = value.decimal();
      if (precision <= 4) {
        return duckdb::Value::DECIMAL(static_cast<std::int16_t>(unscaled), precision, scale);
      }
      if (precision <= 9) {
        return duckdb::Value::DECIMAL(static_cast<std::int32_t>(unscaled), precision, scale);
      }
      if (precision <= 18) {
        return duckdb::Value::DECIMAL(static_cast<std::int64_t>(unscaled), precision, scale);
      }
      return duckdb::Value::DECIMAL(ToHugeint(unscaled), precision, scale);
    }
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar: {
      // The constructor of VARCHAR values refuses invalid UTF-8, which Spark's strings may hold.
      auto blob =
          duckdb::Value::BLOB(reinterpret_cast<duckdb::const_data_ptr_t>(value.text().data()), value.text().size());
      blob.Reinterpret(LogicalType::VARCHAR);
      return blob;
    }
    case TypeKind::kBinary:
      return duckdb::Value::BLOB(reinterpret_cast<duckdb::const_data_ptr_t>(value.text().data()), value.text().size());
    case TypeKind::kDate:
      return duckdb::Value::DATE(duckdb::date_t(static_cast<std::int32_t>(value.integer())));
    case TypeKind::kTimestamp:
      return duckdb::Value::TIMESTAMPTZ(duckdb::timestamp_tz_t(value.integer()));
    case TypeKind::kTimestampNtz:
      return duckdb::Value::TIMESTAMP(duckdb::timestamp_t(value.integer()));
    case TypeKind::kCalendarInterval: {
      const auto& interval = value.interval();
      return duckdb::Value::STRUCT(CarrierType(type),
                                   {duckdb::Value::INTEGER(interval.months), duckdb::Value::INTEGER(interval.days),
                                    duckdb::Value::BIGINT(interval.micros)});
    }
    case TypeKind::kVariant: {
      // A List of two: value, metadata.
      const auto& parts = value.list();
      return duckdb::Value::STRUCT(CarrierType(type), {CarrierValue(parts.at(0), DataType::Binary()),
                                                       CarrierValue(parts.at(1), DataType::Binary())});
    }
    case TypeKind::kArray: {
      duckdb::vector<duckdb::Value> elements;
      for (const auto& element : value.list()) {
        elements.push_back(CarrierValue(element, type.element()));
      }
      return duckdb::Value::LIST(CarrierType(type.element()), std::move(elements));
    }
    case TypeKind::kMap: {
      duckdb::vector<duckdb::Value> keys;
      duckdb::vector<duckdb::Value> values;
      for (const auto& entry : value.list()) {
        keys.push_back(CarrierValue(entry.list().at(0), type.key()));
        values.push_back(CarrierValue(entry.list().at(1), type.value()));
      }
      return duckdb::Value::MAP(CarrierType(type.key()), CarrierType(type.value()), std::move(keys), std::move(values));
    }
    case TypeKind::kStruct: {
      duckdb::vector<duckdb::Value> fields;
      for (std::size_t i = 0; i < type.fields().size(); i++) {
        fields.push_back(CarrierValue(value.list().at(i), type.fields()[i].type));
      }
      if (fields.empty()) {
        fields.push_back(duckdb::Value::INTEGER(0));
      }
      return duckdb::Value::STRUCT(CarrierType(type), std::move(fields));
    }
    case TypeKind::kTime:
      break;
  }
  RaiseError(Error::Unsupported("values of type " + type.SimpleString()));
}

types::Value FromCarrier(const duckdb::Value& value, const DataType& type) {
  if (value.IsNull()) {
    return types::Value();
  }
  switch (type.kind()) {
    case TypeKind::kVoid:
      return types::Value();
    case TypeKind::kBoolean:
      return types::Value(value.GetValueUnsafe<bool>());
    case TypeKind::kByte:
      return types::Value(static_cast<std::int64_t>(value.GetValueUnsafe<std::int8_t>()));
    case TypeKind::kShort:
      return types::Value(static_cast<std::int64_t>(value.GetValueUnsafe<std::int16_t>()));
    case TypeKind::kInt:
    case TypeKind::kYearMonthInterval:
      return types::Value(static_cast<std::int64_t>(value.GetValueUnsafe<std::int32_t>()));
    case TypeKind::kLong:
    case TypeKind::kDayTimeInterval:
      return types::Value(value.GetValueUnsafe<std::int64_t>());
    case TypeKind::kFloat:
      return types::Value(static_cast<double>(value.GetValueUnsafe<float>()));
    case TypeKind::kDouble:
      return types::Value(value.GetValueUnsafe<double>());
    case TypeKind::kDecimal:
      switch (value.type().InternalType()) {
        case duckdb::PhysicalType::INT16:
          return types::Value(static_cast<types::Int128>(value.GetValueUnsafe<std::int16_t>()));
        case duckdb::PhysicalType::INT32:
          return types::Value(static_cast<types::Int128>(value.GetValueUnsafe<std::int32_t>()));
        case duckdb::PhysicalType::INT64:
          return types::Value(static_cast<types::Int128>(value.GetValueUnsafe<std::int64_t>()));
        default:
          return types::Value(ToInt128(value.GetValueUnsafe<duckdb::hugeint_t>()));
      }
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
    case TypeKind::kBinary:
      return types::Value(std::string(duckdb::StringValue::Get(value)));
    case TypeKind::kDate:
      return types::Value(static_cast<std::int64_t>(value.GetValueUnsafe<std::int32_t>()));
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampNtz:
      return types::Value(value.GetValueUnsafe<std::int64_t>());
    case TypeKind::kCalendarInterval: {
      const auto& parts = duckdb::StructValue::GetChildren(value);
      types::CalendarInterval interval;
      interval.months = parts[0].GetValueUnsafe<std::int32_t>();
      interval.days = parts[1].GetValueUnsafe<std::int32_t>();
      interval.micros = parts[2].GetValueUnsafe<std::int64_t>();
      return types::Value(interval);
    }
    case TypeKind::kVariant: {
      const auto& parts = duckdb::StructValue::GetChildren(value);
      return types::Value(
          types::Value::List{FromCarrier(parts[0], DataType::Binary()), FromCarrier(parts[1], DataType::Binary())});
    }
    case TypeKind::kArray: {
      types::Value::List list;
      for (const auto& element : duckdb::ListValue::GetChildren(value)) {
        list.push_back(FromCarrier(element, type.element()));
      }
      return types::Value(std::move(list));
    }
    case TypeKind::kMap: {
      types::Value::List list;
      for (const auto& entry : duckdb::MapValue::GetChildren(value)) {
        const auto& pair = duckdb::StructValue::GetChildren(entry);
        list.push_back(
            types::Value(types::Value::List{FromCarrier(pair[0], type.key()), FromCarrier(pair[1], type.value())}));
      }
      return types::Value(std::move(list));
    }
    case TypeKind::kStruct: {
      types::Value::List list;
      const auto& parts = duckdb::StructValue::GetChildren(value);
      for (std::size_t i = 0; i < type.fields().size(); i++) {
        list.push_back(FromCarrier(parts[i], type.fields()[i].type));
      }
      return types::Value(std::move(list));
    }
    case TypeKind::kTime:
      break;
  }
  RaiseError(Error::Unsupported("values of type " + type.SimpleString()));
}

}  // namespace fleuve::engine
