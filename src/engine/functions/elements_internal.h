#pragma once

/// \file
/// Elements of arrays and maps inside kernels: compared, told apart, and copied into results.

#include <string>
#include <vector>

#include "engine/duckdb_pch.h"
#include "engine/functions/rows_internal.h"
#include "types/data_type.h"

namespace fleuve::engine {

/// The values of one vector, compared as Spark orders them: NaN is equal to itself and above everything, 0.0 equals
/// -0.0, NULL inside arrays and structs comes first.
class Elements {
 public:
  Elements(types::DataType type, duckdb::Vector& vector, duckdb::idx_t count);

  bool IsNull(duckdb::idx_t row) const {
    return !format_.unified.validity.RowIsValid(format_.unified.sel->get_index(row));
  }
  /// Below, equal or above zero. Neither value is NULL.
  int Compare(duckdb::idx_t row, const Elements& other, duckdb::idx_t other_row) const;
  /// Appends bytes that are equal for equal values only. NULL has a key too.
  void AppendKey(duckdb::idx_t row, std::string& key) const;
  std::string Key(duckdb::idx_t row) const {
    std::string key;
    AppendKey(row, key);
    return key;
  }
  /// As `Key`, but for Spark's sets of array elements, which tell -0.0 from 0.0 where the element itself is a number.
  std::string SetKey(duckdb::idx_t row) const;

 private:
  using Format = duckdb::RecursiveUnifiedVectorFormat;
  static int CompareAt(const types::DataType& type, const Format& a, duckdb::idx_t i, const Format& b, duckdb::idx_t j);
  static int CompareRows(const types::DataType& type, const Format& a, duckdb::idx_t i, const Format& b,
                         duckdb::idx_t j);
  static void KeyOf(const types::DataType& type, const Format& format, duckdb::idx_t row, std::string& key);

  types::DataType type_;
  Format format_;
};

/// A LIST or MAP argument: entries by row and the elements they point to.
class ListArgument {
 public:
  ListArgument(duckdb::Vector& vector, duckdb::idx_t count) {
    vector.Flatten(count);
    entries_ = duckdb::FlatVector::GetData<duckdb::list_entry_t>(vector);
    validity_ = &duckdb::FlatVector::Validity(vector);
    child_ = &duckdb::ListVector::GetEntry(vector);
    size_ = duckdb::ListVector::GetListSize(vector);
    child_->Flatten(size_);
  }
  bool IsNull(duckdb::idx_t row) const { return !validity_->RowIsValid(row); }
  duckdb::idx_t length(duckdb::idx_t row) const { return entries_[row].length; }
  duckdb::idx_t offset(duckdb::idx_t row) const { return entries_[row].offset; }
  duckdb::Vector& child() const { return *child_; }
  /// Keys and values of a MAP.
  duckdb::Vector& keys() const { return *duckdb::StructVector::GetEntries(*child_)[0]; }
  duckdb::Vector& values() const { return *duckdb::StructVector::GetEntries(*child_)[1]; }
  /// Number of elements of all rows.
  duckdb::idx_t size() const { return size_; }

 private:
  const duckdb::list_entry_t* entries_;
  const duckdb::ValidityMask* validity_;
  duckdb::Vector* child_;
  duckdb::idx_t size_;
};

/// Collects which elements make a column and copies them in runs.
class ElementPicker {
 public:
  void Add(duckdb::Vector& source, duckdb::idx_t index) { picks_.push_back({&source, index}); }
  void AddNull() { picks_.push_back({nullptr, 0}); }
  duckdb::idx_t size() const { return picks_.size(); }
  /// Fills rows start.. of the flat vector `target`, which has room.
  void CopyInto(duckdb::Vector& target, duckdb::idx_t start) const;

 private:
  struct Pick {
    duckdb::Vector* source;
    duckdb::idx_t index;
  };
  std::vector<Pick> picks_;
};

/// Builds a LIST result row by row.
class ListBuilder {
 public:
  explicit ListBuilder(duckdb::Vector& result) : result_(result) {
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    entries_ = duckdb::FlatVector::GetData<duckdb::list_entry_t>(result);
  }
  void Add(duckdb::Vector& source, duckdb::idx_t index) { picker_.Add(source, index); }
  void AddNull() { picker_.AddNull(); }
  void EndRow(duckdb::idx_t row) {
    entries_[row] = duckdb::list_entry_t(begin_, picker_.size() - begin_);
    begin_ = picker_.size();
  }
  void NullRow(duckdb::idx_t row) {
    EndRow(row);
    duckdb::FlatVector::SetNull(result_, row, true);
  }
  void Finish();

 private:
  duckdb::Vector& result_;
  duckdb::list_entry_t* entries_;
  duckdb::idx_t begin_ = 0;
  ElementPicker picker_;
};

/// Builds a MAP result row by row; refuses NULL keys and, unless the last one wins, keys that come twice.
class MapBuilder {
 public:
  /// \param key  type of the keys
  MapBuilder(duckdb::Vector& result, types::DataType key, bool last_wins)
      : result_(result), key_type_(std::move(key)), last_wins_(last_wins) {
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    entries_ = duckdb::FlatVector::GetData<duckdb::list_entry_t>(result);
  }
  /// A null `value_source` is a NULL value. `keys` describes `key_source`.
  void Add(const Elements& keys, duckdb::Vector& key_source, duckdb::idx_t key, duckdb::Vector* value_source,
           duckdb::idx_t value);
  void EndRow(duckdb::idx_t row);
  void NullRow(duckdb::idx_t row);
  /// -0.0 among the keys stays, as Spark leaves it where it takes the keys as one array.
  void KeepZeros() { keep_zeros_ = true; }
  void Finish();

 private:
  struct Pair {
    duckdb::Vector* key_source;
    duckdb::idx_t key;
    duckdb::Vector* value_source;
    duckdb::idx_t value;
  };
  duckdb::Vector& result_;
  types::DataType key_type_;
  bool last_wins_;
  bool keep_zeros_ = false;
  duckdb::list_entry_t* entries_;
  std::vector<Pair> pairs_;
  std::vector<std::pair<std::string, std::size_t>> seen_;
  std::size_t begin_ = 0;
};

/// Raises NULL_MAP_KEY.
[[noreturn]] void ThrowNullMapKey();
/// Raises COLLECTION_SIZE_LIMIT_EXCEEDED.FUNCTION where an array would be too long.
void CheckArrayLength(std::int64_t length, const char* function);

}  // namespace fleuve::engine
