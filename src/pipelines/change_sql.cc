#include <algorithm>

#include "base/bytes.h"
#include "pipelines/change_sql_internal.h"
#include "pipelines/changes_internal.h"

namespace fleuve::pipelines {

using types::StructField;

namespace {

// Columns of the book behind those of the events.
constexpr const char* kSequence = "__fleuve_sequence";  // of the upsert, or of the event
constexpr const char* kDeleted = "__fleuve_deleted";    // sequence of the newest delete
constexpr const char* kTruncated = "__fleuve_truncated";
constexpr const char* kIsDelete = "__fleuve_delete";
constexpr const char* kBatch = "__fleuve_batch";

std::string Quote(const std::string& name) { return types::QuoteIdentifier(name); }

bool Holds(const std::vector<std::string>& names, const std::string& name) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& other) { return EqualsIgnoreAsciiCase(other, name); });
}

/// `prefix.a, prefix.b`
std::string List(const std::vector<StructField>& fields, const std::string& prefix) {
  std::vector<std::string> names;
  for (const StructField& field : fields) {
    names.push_back(prefix + Quote(field.name));
  }
  return Join(names, ", ");
}

/// The larger of two sequences, either of which may be NULL.
std::string Larger(const std::string& a, const std::string& b) {
  return "CASE WHEN " + a + " IS NULL OR " + b + " > " + a + " THEN " + b + " ELSE " + a + " END";
}

}  // namespace

ChangeSql::ChangeSql(const ChangeRules& rules, const types::Schema& events, const std::vector<std::string>& target,
                     const std::string& book, std::string view)
    : rules_(rules), view_(std::move(view)) {
  for (const StructField& field : events.fields()) {
    if (field.name == kSequenceColumn) {
      sequence_type_ = field.type.AsNullable().Sql();
      break;
    }
    if (!rules.columns || Holds(rules.columns->names, field.name) != rules.columns->except) {
      columns_.push_back(field);
      columns_.back().type = field.type.AsNullable();
    }
  }
  for (const std::string& key : rules.keys) {
    keys_.push_back(Quote(key));
  }
  std::vector<std::string> parts;
  for (const std::string& part : target) {
    parts.push_back(Quote(part));
  }
  target_ = Join(parts, ".");
  book_ = "delta." + Quote(book);
  keeps_all_ = rules.scd_type == 2 || rules.ignore_null_updates;
}

bool ChangeSql::IsKey(const std::string& name) const { return Holds(rules_.keys, name); }

bool ChangeSql::IgnoresNull(const std::string& name) const {
  return rules_.ignore_null_updates && (!rules_.ignore_null_columns || Holds(rules_.ignore_null_columns->names, name) !=
                                                                           rules_.ignore_null_columns->except);
}

bool ChangeSql::IsTracked(const std::string& name) const {
  return !IsKey(name) &&
         (!rules_.track_history || Holds(rules_.track_history->names, name) != rules_.track_history->except);
}

std::string ChangeSql::Keys(const std::string& prefix) const {
  std::vector<std::string> keys;
  for (const std::string& key : keys_) {
    keys.push_back(prefix + key);
  }
  return Join(keys, ", ");
}

std::string ChangeSql::SameKeys(const std::string& a, const std::string& b, const std::string& op) const {
  std::vector<std::string> pairs;
  for (const std::string& key : keys_) {
    pairs.push_back(a + "." + key + " " + op + " " + b + "." + key);
  }
  return Join(pairs, " AND ");
}

std::string ChangeSql::CreateBook() const {
  std::vector<std::string> fields;
  for (const StructField& field : columns_) {
    fields.push_back(Quote(field.name) + " " + field.type.Sql());
  }
  fields.push_back(std::string(kSequence) + " " + sequence_type_);
  if (keeps_all_) {
    fields.push_back(std::string(kIsDelete) + " BOOLEAN");
  } else {
    fields.push_back(std::string(kDeleted) + " " + sequence_type_);
    fields.push_back(std::string(kTruncated) + " " + sequence_type_);
  }
  fields.push_back(std::string(kBatch) + " STRING");
  return "CREATE TABLE IF NOT EXISTS " + book_ + " (" + Join(fields, ", ") + ") USING delta";
}

std::string ChangeSql::AddBookColumns(const std::vector<StructField>& fields) const {
  std::vector<std::string> added;
  for (const StructField& field : fields) {
    added.push_back(Quote(field.name) + " " + field.type.Sql());
  }
  return "ALTER TABLE " + book_ + " ADD COLUMNS (" + Join(added, ", ") + ")";
}

std::string ChangeSql::Check() const {
  std::vector<std::string> missing;
  for (const std::string& key : keys_) {
    missing.push_back(key + " IS NULL");
  }
  return std::string("SELECT count_if(") + kSequenceColumn + " IS NULL), count_if(NOT " + kTruncateColumn + " AND (" +
         Join(missing, " OR ") + ")), count_if(" + kTruncateColumn + ") FROM " + view_;
}

std::string ChangeSql::Record(const std::string& batch) const {
  return keeps_all_ ? RecordAll(batch) : RecordNewest(batch);
}

std::string ChangeSql::RecordNewest(const std::string& batch) const {
  // A truncation stands under the key NULL, which no event has.
  std::vector<std::string> keys;
  std::vector<std::string> values;
  for (const std::string& key : keys_) {
    keys.push_back(std::string("CASE WHEN ") + kTruncateColumn + " THEN NULL ELSE " + key + " END AS " + key);
  }
  for (const StructField& field : columns_) {
    values.push_back(Quote(field.name));
  }
  const std::string upsert = std::string("NOT ") + kDeleteColumn + " AND NOT " + kTruncateColumn;
  const std::string numbered = "SELECT " + Join(keys, ", ") + ", struct(" + Join(values, ", ") + ") AS __row, " +
                               kSequenceColumn + ", " + kDeleteColumn + ", " + kTruncateColumn +
                               ", monotonically_increasing_id() AS __order FROM " + view_;
  const std::string newest = "SELECT " + Keys("") + ", max_by(CASE WHEN " + upsert + " THEN __row END, CASE WHEN " +
                             upsert + " THEN struct(" + kSequenceColumn + ", __order) END) AS __row, max(CASE WHEN " +
                             upsert + " THEN " + kSequenceColumn + " END) AS __upserted, max(CASE WHEN " +
                             kDeleteColumn + " AND NOT " + kTruncateColumn + " THEN " + kSequenceColumn +
                             " END) AS __deleted, max(CASE WHEN " + kTruncateColumn + " THEN " + kSequenceColumn +
                             " END) AS __truncated FROM (" + numbered + ") GROUP BY " + Keys("");
  const std::string newer =
      std::string("s.__upserted IS NOT NULL AND (t.") + kSequence + " IS NULL OR s.__upserted >= t." + kSequence + ")";
  std::vector<std::string> sets;
  std::vector<std::string> names;
  std::vector<std::string> inserted;
  for (const StructField& field : columns_) {
    const std::string name = Quote(field.name);
    names.push_back(name);
    inserted.push_back(IsKey(field.name) ? "s." + name : "s.__row." + name);
    if (!IsKey(field.name)) {
      sets.push_back("t." + name + " = CASE WHEN " + newer + " THEN s.__row." + name + " ELSE t." + name + " END");
    }
  }
  sets.push_back(std::string("t.") + kSequence + " = CASE WHEN " + newer + " THEN s.__upserted ELSE t." + kSequence +
                 " END");
  sets.push_back(std::string("t.") + kDeleted + " = " + Larger(std::string("t.") + kDeleted, "s.__deleted"));
  sets.push_back(std::string("t.") + kTruncated + " = " + Larger(std::string("t.") + kTruncated, "s.__truncated"));
  sets.push_back(std::string("t.") + kBatch + " = '" + batch + "'");
  return "MERGE INTO " + book_ + " AS t USING (" + newest + ") AS s ON " + SameKeys("t", "s", "<=>") +
         " WHEN MATCHED THEN UPDATE SET " + Join(sets, ", ") + " WHEN NOT MATCHED THEN INSERT (" + Join(names, ", ") +
         ", " + kSequence + ", " + kDeleted + ", " + kTruncated + ", " + kBatch + ") VALUES (" + Join(inserted, ", ") +
         ", s.__upserted, s.__deleted, s.__truncated, '" + batch + "')";
}

std::string ChangeSql::RecordAll(const std::string& batch) const {
  std::vector<std::string> values;
  std::vector<std::string> sets;
  std::vector<std::string> names;
  std::vector<std::string> inserted;
  for (const StructField& field : columns_) {
    const std::string name = Quote(field.name);
    values.push_back(IsKey(field.name)
                         ? std::string("CASE WHEN ") + kTruncateColumn + " THEN NULL ELSE " + name + " END AS " + name
                         : name);
    names.push_back(name);
    inserted.push_back("s." + name);
    if (!IsKey(field.name)) {
      sets.push_back("t." + name + " = s." + name);
    }
  }
  const std::string numbered = "SELECT " + Join(values, ", ") + ", " + kSequenceColumn + " AS __s, (" + kDeleteColumn +
                               " OR " + kTruncateColumn + ") AS __d, monotonically_increasing_id() AS __order FROM " +
                               view_;
  const std::string ranked = "SELECT *, row_number() OVER (PARTITION BY " + Keys("") +
                             ", __s, __d ORDER BY __order DESC) AS __rank FROM (" + numbered + ")";
  sets.push_back(std::string("t.") + kBatch + " = '" + batch + "'");
  return "MERGE INTO " + book_ + " AS t USING (SELECT * FROM (" + ranked + ") WHERE __rank = 1) AS s ON " +
         SameKeys("t", "s", "<=>") + " AND t." + kSequence + " <=> s.__s AND t." + kIsDelete +
         " = s.__d WHEN MATCHED THEN UPDATE SET " + Join(sets, ", ") + " WHEN NOT MATCHED THEN INSERT (" +
         Join(names, ", ") + ", " + kSequence + ", " + kIsDelete + ", " + kBatch + ") VALUES (" + Join(inserted, ", ") +
         ", s.__s, s.__d, '" + batch + "')";
}

std::string ChangeSql::Apply(const std::string& batch, bool all_keys) const {
  if (rules_.scd_type == 2) {
    return MergeVersions(batch);
  }
  return MergeRows(keeps_all_ ? FilledRows(batch, all_keys) : NewestRows(batch, all_keys));
}

std::string ChangeSql::NewestRows(const std::string& batch, bool all_keys) const {
  const std::string truncated = std::string("(SELECT max(") + kTruncated + ") FROM " + book_ + ")";
  std::string alive =
      std::string(kSequence) + " IS NOT NULL AND (" + kDeleted + " IS NULL OR " + kSequence + " >= " + kDeleted + ")";
  if (rules_.truncates != nullptr) {
    alive += std::string(" AND (") + truncated + " IS NULL OR " + kSequence + " >= " + truncated + ")";
  }
  return "SELECT " + List(columns_, "") + ", " + alive + " AS __alive FROM " + book_ + " WHERE " + keys_[0] +
         " IS NOT NULL" + (all_keys ? "" : std::string(" AND ") + kBatch + " = '" + batch + "'");
}

std::string ChangeSql::FilledRows(const std::string& batch, bool all_keys) const {
  // Every event of the touched keys with the newest delete or truncation that is over it.
  std::string touched = "SELECT * FROM " + book_ + " AS e WHERE " + keys_[0] + " IS NOT NULL";
  if (!all_keys) {
    touched = "SELECT e.* FROM " + book_ + " AS e LEFT SEMI JOIN (SELECT " + Keys("") + " FROM " + book_ + " WHERE " +
              kBatch + " = '" + batch + "') AS b ON " + SameKeys("e", "b", "=");
  }
  const std::string truncated =
      std::string("(SELECT max(") + kSequence + ") FROM " + book_ + " WHERE " + keys_[0] + " IS NULL)";
  const std::string deleted =
      std::string("max(CASE WHEN ") + kIsDelete + " THEN " + kSequence + " END) OVER (PARTITION BY " + Keys("") + ")";
  const std::string bounded = "SELECT *, " + deleted + " AS __deleted, " +
                              (rules_.truncates == nullptr ? "CAST(NULL AS " + sequence_type_ + ")" : truncated) +
                              " AS __truncated FROM (" + touched + ")";
  const std::string counts = std::string("NOT ") + kIsDelete + " AND (__deleted IS NULL OR " + kSequence +
                             " >= __deleted) AND (__truncated IS NULL OR " + kSequence + " >= __truncated)";
  std::vector<std::string> values;
  for (const StructField& field : columns_) {
    const std::string name = Quote(field.name);
    if (IsKey(field.name)) {
      values.push_back(name);
      continue;
    }
    const std::string condition = IgnoresNull(field.name) ? "__counts AND " + name + " IS NOT NULL" : "__counts";
    values.push_back("max_by(" + name + ", CASE WHEN " + condition + " THEN " + kSequence + " END) AS " + name);
  }
  return "SELECT " + Join(values, ", ") +
         ", max(CASE WHEN __counts THEN 1 ELSE 0 END) = 1 AS __alive FROM (SELECT *, (" + counts +
         ") AS __counts FROM (" + bounded + ")) GROUP BY " + Keys("");
}

std::string ChangeSql::MergeRows(const std::string& rows) const {
  std::vector<std::string> sets;
  for (const StructField& field : columns_) {
    if (!IsKey(field.name)) {
      sets.push_back("t." + Quote(field.name) + " = s." + Quote(field.name));
    }
  }
  const std::string update = sets.empty() ? "" : " WHEN MATCHED AND s.__alive THEN UPDATE SET " + Join(sets, ", ");
  return "MERGE INTO " + target_ + " AS t USING (" + rows + ") AS s ON " + SameKeys("t", "s", "=") + update +
         " WHEN MATCHED AND NOT s.__alive THEN DELETE WHEN NOT MATCHED AND s.__alive THEN INSERT (" +
         List(columns_, "") + ") VALUES (" + List(columns_, "s.") + ")";
}

std::string ChangeSql::MergeVersions(const std::string& batch) const {
  std::vector<std::string> tracked;
  std::vector<std::string> last;
  std::vector<std::string> sets;
  for (const StructField& field : columns_) {
    const std::string name = Quote(field.name);
    if (IsTracked(field.name)) {
      tracked.push_back(name);
    }
    last.push_back(IsKey(field.name) ? name : "max_by(" + name + ", " + kSequence + ") AS " + name);
    if (!IsKey(field.name)) {
      sets.push_back("t." + name + " = s." + name);
    }
  }
  sets.push_back("t.__END_AT = s.__END_AT");
  const std::string touched =
      "SELECT DISTINCT " + Keys("") + " FROM " + book_ + " WHERE " + kBatch + " = '" + batch + "'";
  const std::string events =
      "SELECT e.* FROM " + book_ + " AS e LEFT SEMI JOIN (" + touched + ") AS b ON " + SameKeys("e", "b", "=");
  // A delete comes behind an upsert of the same sequence: what lasts no time leaves no row.
  const std::string over =
      std::string(" OVER (PARTITION BY ") + Keys("") + " ORDER BY " + kSequence + ", " + kIsDelete + ")";
  const std::string track = tracked.empty() ? "struct(1 AS one)" : "struct(" + Join(tracked, ", ") + ")";
  const std::string neighbours = std::string("SELECT *, lag(") + kIsDelete + ")" + over + " AS __before_deletes, lag(" +
                                 track + ")" + over + " AS __before, " + track + " AS __track, lead(" + kSequence +
                                 ")" + over + " AS __next FROM (" + events + ")";
  const std::string marked = std::string("SELECT *, CASE WHEN NOT ") + kIsDelete +
                             " AND (__before_deletes IS NULL OR __before_deletes OR NOT (__track <=> __before)) THEN 1 "
                             "ELSE 0 END AS __begins FROM (" +
                             neighbours + ")";
  const std::string numbered = "SELECT *, sum(__begins)" + over + " AS __run FROM (" + marked + ")";
  const std::string versions = "SELECT " + Join(last, ", ") + ", min(" + kSequence +
                               ") AS __START_AT, max_by(__next, " + kSequence + ") AS __END_AT FROM (" + numbered +
                               ") WHERE NOT " + kIsDelete + " GROUP BY " + Keys("") + ", __run";
  const std::string rows = "SELECT * FROM (" + versions + ") WHERE __END_AT IS NULL OR NOT (__END_AT <=> __START_AT)";
  std::vector<std::string> nothing;
  for (const StructField& field : columns_) {
    nothing.push_back(IsKey(field.name) ? "o." + Quote(field.name)
                                        : "CAST(NULL AS " + field.type.Sql() + ") AS " + Quote(field.name));
  }
  const std::string gone = "SELECT " + Join(nothing, ", ") + ", o.__START_AT, CAST(NULL AS " + sequence_type_ +
                           ") AS __END_AT, true AS __gone FROM " + target_ + " AS o LEFT SEMI JOIN (" + touched +
                           ") AS b ON " + SameKeys("o", "b", "=") + " LEFT ANTI JOIN (" + rows + ") AS r ON " +
                           SameKeys("o", "r", "=") + " AND o.__START_AT <=> r.__START_AT";
  return "MERGE INTO " + target_ + " AS t USING (SELECT " + List(columns_, "") +
         ", __START_AT, __END_AT, false AS __gone FROM (" + rows + ") UNION ALL " + gone + ") AS s ON " +
         SameKeys("t", "s", "=") +
         " AND t.__START_AT <=> s.__START_AT WHEN MATCHED AND s.__gone THEN DELETE WHEN MATCHED THEN UPDATE SET " +
         Join(sets, ", ") + " WHEN NOT MATCHED AND NOT s.__gone THEN INSERT (" + List(columns_, "") +
         ", __START_AT, __END_AT) VALUES (" + List(columns_, "s.") + ", s.__START_AT, s.__END_AT)";
}

}  // namespace fleuve::pipelines
