// What the user must have allowed before a stream with a schema tracking log goes on past a change of its table.

#include <map>

#include "base/bytes.h"
#include "connectors/delta/delta_source_internal.h"
#include "connectors/delta/schema_log_internal.h"

namespace fleuve::connectors::delta {

namespace {

using types::DataType;
using types::StructField;
using types::TypeKind;

std::string PhysicalOf(const StructField& field) {
  const Json& name = field.metadata["delta.columnMapping.physicalName"];
  return name.is_string() ? name.AsString() : field.name;
}

struct Changes {
  std::vector<std::string> renamed;
  std::vector<std::string> dropped;
  std::vector<std::string> widened;
  /// A change of type that is none of Delta's widenings, or NULL that is no longer allowed.
  bool unreadable = false;
};

void CompareTypes(const DataType& before, const DataType& after, const std::string& name, Changes& changes);

void CompareFields(const DataType& before, const DataType& after, const std::string& prefix, Changes& changes) {
  std::map<std::string, const StructField*> now;
  for (const auto& field : after.fields()) {
    now[PhysicalOf(field)] = &field;
  }
  for (const auto& field : before.fields()) {
    const std::string name = prefix + field.name;
    const auto at = now.find(PhysicalOf(field));
    if (at == now.end()) {
      changes.dropped.push_back("'" + name + "'");
      continue;
    }
    if (at->second->name != field.name) {
      changes.renamed.push_back("'" + name + "' -> '" + prefix + at->second->name + "'");
    }
    changes.unreadable = changes.unreadable || (field.nullable && !at->second->nullable);
    CompareTypes(field.type, at->second->type, prefix + at->second->name, changes);
  }
}

void CompareTypes(const DataType& before, const DataType& after, const std::string& name, Changes& changes) {
  if (before.kind() != after.kind()) {
    if (IsWidening(before, after)) {
      changes.widened.push_back(name + ": " + before.SimpleString() + " -> " + after.SimpleString());
    } else {
      changes.unreadable = true;
    }
    return;
  }
  switch (before.kind()) {
    case TypeKind::kStruct:
      CompareFields(before, after, name + ".", changes);
      return;
    case TypeKind::kArray:
      changes.unreadable = changes.unreadable || (before.contains_null() && !after.contains_null());
      CompareTypes(before.element(), after.element(), name + ".element", changes);
      return;
    case TypeKind::kMap:
      changes.unreadable = changes.unreadable || (before.contains_null() && !after.contains_null());
      CompareTypes(before.key(), after.key(), name + ".key", changes);
      CompareTypes(before.value(), after.value(), name + ".value", changes);
      return;
    default:
      if (before.EqualsIgnoringNullability(after)) {
        return;
      }
      if (IsWidening(before, after)) {
        changes.widened.push_back(name + ": " + before.SimpleString() + " -> " + after.SimpleString());
      } else {
        changes.unreadable = true;
      }
  }
}

/// Java's String.hashCode of an ASCII text.
std::int32_t JavaHash(std::string_view text) {
  std::uint32_t hash = 0;
  for (const char c : text) {
    hash = hash * 31 + static_cast<unsigned char>(c);
  }
  return static_cast<std::int32_t>(hash);
}

struct Unblock {
  const char* option;
  std::vector<std::string> confs;
};

constexpr const char* kConfPrefix = "spark.databricks.delta.streaming.";

bool IsUnblocked(const Unblock& unblock, const std::string& version, const std::string& hash,
                 const plan::Options& options, const plan::AnalysisConfig& config) {
  if (const std::string* text = plan::FindOption(options, unblock.option)) {
    if (*text == "always" || *text == version) {
      return true;
    }
  }
  for (const std::string& conf : unblock.confs) {
    const std::string key = kConfPrefix + conf;
    if (const auto value = ConfOf(config, key); value && EqualsIgnoreAsciiCase(*value, "always")) {
      return true;
    }
    if (const auto value = ConfOf(config, key + ".ckpt_" + hash);
        value && (EqualsIgnoreAsciiCase(*value, "always") || *value == version)) {
      return true;
    }
  }
  return false;
}

}  // namespace

Result<void> CheckAllowed(SchemaLog& log, const plan::Options& options, const plan::AnalysisConfig& config) {
  if (log.empty()) {
    return {};
  }
  FLEUVE_ASSIGN(const std::optional<TrackedMetadata> before, log.Predecessor());
  if (!before) {
    return {};
  }
  const TrackedMetadata& now = log.newest();
  FLEUVE_ASSIGN(const types::Schema old_schema, SchemaOfJson(before->data_schema_json));
  FLEUVE_ASSIGN(const types::Schema new_schema, SchemaOfJson(now.data_schema_json));
  Changes changes;
  CompareFields(old_schema, new_schema, "", changes);
  const bool bypass = BooleanConf(config, "spark.databricks.delta.typeWidening.bypassStreamingTypeChangeCheck", false);
  const bool may_widen =
      BooleanConf(config, "spark.databricks.delta.typeWidening.allowTypeChangeStreamingDeltaSource", true);
  if (!bypass && (changes.unreadable || (!may_widen && !changes.widened.empty()))) {
    return SchemaChangedWithVersion(/*with_start=*/false, now.version, dl::ReadSchemaOf(old_schema),
                                    dl::ReadSchemaOf(new_schema));
  }
  const std::string version = std::to_string(now.version);
  const std::string hash = std::to_string(JavaHash(now.source_path));
  const Unblock rename{"allowSourceColumnRename", {"allowSourceColumnRename", "allowSourceColumnRenameAndDrop"}};
  const Unblock drop{"allowSourceColumnDrop", {"allowSourceColumnDrop", "allowSourceColumnRenameAndDrop"}};
  const Unblock widen{"allowSourceColumnTypeChange", {"allowSourceColumnTypeChange"}};
  std::vector<std::string> kinds;
  std::vector<std::string> details;
  std::vector<std::string> change_options;
  std::vector<std::string> stream_options;
  std::vector<std::string> change_confs;
  std::vector<std::string> stream_confs;
  std::vector<std::string> all_confs;
  bool allowed = true;
  const auto need = [&](const std::vector<std::string>& found, const Unblock& unblock, const char* kind,
                        const char* title) {
    if (found.empty()) {
      return;
    }
    kinds.emplace_back(kind);
    details.push_back(std::string(title) + ":\n" + Join(found, "\n"));
    const std::string key = std::string(kConfPrefix) + unblock.confs.front();
    change_options.push_back(".option(\"" + std::string(unblock.option) + "\", \"" + version + "\")");
    stream_options.push_back(".option(\"" + std::string(unblock.option) + "\", \"always\")");
    change_confs.push_back("SET " + key + ".ckpt_" + hash + " = " + version);
    stream_confs.push_back("SET " + key + ".ckpt_" + hash + " = \"always\"");
    all_confs.push_back("SET " + key + " = \"always\"");
    allowed = allowed && IsUnblocked(unblock, version, hash, options, config);
  };
  need(changes.renamed, rename, "RENAME", "Columns renamed");
  need(changes.dropped, drop, "DROP", "Columns dropped");
  need(changes.widened, widen, "TYPE WIDENING", "Type changes");
  if (allowed) {
    return {};
  }
  std::string kind;
  const bool columns = kinds.back() != "TYPE WIDENING";
  if (kinds.size() == 1) {
    kind = columns ? kinds[0] + " COLUMN" : kinds[0];
  } else if (kinds.size() == 2) {
    kind = kinds[0] + " AND " + kinds[1] + (columns ? " COLUMN" : "");
  } else {
    kind = "RENAME, DROP AND TYPE WIDENING";
  }
  return Error(
             ErrorKind::kConflict, "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION",
             "We've detected one or more non-additive schema change(s) (" + kind + ") between Delta version " +
                 std::to_string(before->version) + " and " + version + " in the Delta streaming source.\nChanges:\n" +
                 Join(details, "\n") +
                 "\n\nPlease check if you want to manually propagate the schema change(s) to the sink table before we "
                 "proceed with stream processing using the finalized schema at version " +
                 version +
                 ".\nOnce you have fixed the schema of the sink table or have decided there is no need to fix, you "
                 "can set the following configuration(s) to unblock the non-additive schema change(s) and continue "
                 "stream processing.\n\nUsing dataframe reader option(s):\nTo unblock for this particular stream just "
                 "for this series of schema change(s):\n" +
                 Join(change_options, "\n") + "\nTo unblock for this particular stream:\n" +
                 Join(stream_options, "\n") +
                 "\n\nUsing SQL configuration(s):\nTo unblock for this particular stream just for this series of "
                 "schema change(s):\n" +
                 Join(change_confs, "\n") + "\nTo unblock for this particular stream:\n" + Join(stream_confs, "\n") +
                 "\nTo unblock for all streams:\n" + Join(all_confs, "\n"))
      .With("opType", kind)
      .With("previousSchemaChangeVersion", std::to_string(before->version))
      .With("currentSchemaChangeVersion", version)
      .With("columnChangeDetails", Join(details, "\n"))
      .With("unblockChangeOptions", Join(change_options, "\n"))
      .With("unblockStreamOptions", Join(stream_options, "\n"))
      .With("unblockChangeConfs", Join(change_confs, "\n"))
      .With("unblockStreamConfs", Join(stream_confs, "\n"))
      .With("unblockAllConfs", Join(all_confs, "\n"));
}

}  // namespace fleuve::connectors::delta
