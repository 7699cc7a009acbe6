// What a store's folder says of itself: `_metadata`, and who wrote it.

#include <algorithm>

#include "base/json.h"
#include "state/changelog_internal.h"

namespace fleuve::state {

namespace {

constexpr std::string_view kSchemaMagic = "fleuve state schema 1\n";

std::string MetadataPath(const std::string& folder) { return folder + "/_metadata/metadata"; }
std::string SchemaPath(const std::string& folder) { return folder + "/_metadata/schema"; }

std::string MetadataText(const StoreSpec& spec) {
  Json operator_info;
  operator_info.Set("operatorId", spec.operator_id).Set("operatorName", spec.operator_name);
  Json store_info;
  store_info.Set("storeName", "default").Set("numColsPrefixKey", 0).Set("numPartitions", spec.partitions);
  Json json;
  json.Set("operatorInfo", std::move(operator_info)).Set("stateStoreInfo", Json::Array{std::move(store_info)});
  return "v1\n" + json.Dump();
}

std::string SchemaText(const StoreSpec& spec) {
  Json::Array spaces;
  for (const SpaceSpec& space : spec.spaces) {
    Json json;
    json.Set("name", space.name)
        .Set("timed", space.timed)
        .Set("timedByValue", space.timed_by_value)
        .Set("keySchema", space.key_schema)
        .Set("valueSchema", space.value_schema)
        .Set("valueNote", space.value_note)
        .Set("keyColumns", space.key_columns)
        .Set("valueColumns", space.value_columns);
    spaces.push_back(std::move(json));
  }
  Json json;
  json.Set("spaces", std::move(spaces));
  return std::string(kSchemaMagic) + json.Dump();
}

Error NotCompatible(bool key, const std::string& stored, const std::string& wanted, const StoreSpec& spec) {
  return SchemaNotCompatible(
      key, stored, wanted,
      " of operator " + std::to_string(spec.operator_id) + " (" + spec.operator_name +
          ").\nIf you want to force running the query without schema validation, please set "
          "spark.sql.streaming.stateStore.stateSchemaCheck to false.\nHowever, please note that running the "
          "query with incompatible schema could cause non-deterministic behavior.");
}

Error Foreign(const std::string& path) {
  return CannotLoad(ErrorKind::kUnsupported, "UNCATEGORIZED",
                    "The state in " + path +
                        " was written by another engine. Stateless queries continue from each other's checkpoints, "
                        "stateful ones do not: start with a new checkpoint location, or continue on the engine that "
                        "wrote this one.");
}

/// The query had no such operator before.
Error NoState(const StoreSpec& spec) {
  return CannotLoad(ErrorKind::kNotFound, "CANNOT_READ_DELTA_FILE_NOT_EXISTS",
                    "Error reading delta file " + spec.folder.path + ": the checkpoint has no state of operator " +
                        std::to_string(spec.operator_id) + " (" + spec.operator_name + ").");
}

bool IsNumber(std::string_view name) {
  return !name.empty() && name.size() < 10 &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

Error SchemaNotCompatible(bool key, const std::string& stored, const std::string& wanted, const std::string& where) {
  const std::string what = key ? "key" : "value";
  return Error(ErrorKind::kInvalidArgument,
               key ? "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE" : "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
               "Provided " + what + " schema does not match existing state " + what +
                   " schema.\nPlease check number and type of fields.\nExisting " + what + "_schema=" + stored +
                   " and new " + what + "_schema=" + wanted + where)
      .With(key ? "storedKeySchema" : "storedValueSchema", stored)
      .With(key ? "newKeySchema" : "newValueSchema", wanted);
}

Result<void> WriteMetadata(const StoreSpec& spec, StagedFiles* files) {
  const std::string& folder = spec.folder.path;
  for (const auto& [path, text] :
       {std::pair(MetadataPath(folder), MetadataText(spec)), std::pair(SchemaPath(folder), SchemaText(spec))}) {
    FLEUVE_TRY(spec.folder.store->Put(path, text, storage::PutMode::kOverwrite));
    files->files.push_back(path);
  }
  files->folders.push_back(folder + "/_metadata");
  files->folders.push_back(folder);
  // The folders above may be new as well.
  const std::size_t cut = folder.rfind('/');
  if (cut != std::string::npos && cut > 0) {
    files->folders.push_back(folder.substr(0, cut));
    const std::size_t above = folder.rfind('/', cut - 1);
    if (above != std::string::npos && above > 0) {
      files->folders.push_back(folder.substr(0, above));
    }
  }
  return {};
}

Result<void> CheckSchema(const StoreSpec& spec) {
  auto text = spec.folder.store->Get(SchemaPath(spec.folder.path));
  if (!text.ok()) {
    if (text.error().kind() == ErrorKind::kNotFound) {
      const auto files = spec.folder.store->ListRecursive(spec.folder.path);
      return files.ok() && !files->empty() ? Foreign(spec.folder.path) : NoState(spec);
    }
    return std::move(text).error();
  }
  if (!text->starts_with(kSchemaMagic)) {
    return Foreign(spec.folder.path);
  }
  FLEUVE_ASSIGN(const Json json, Json::Parse(std::string_view(*text).substr(kSchemaMagic.size())));
  const Json::Array& stored = json["spaces"].items();
  for (const bool key : {true, false}) {
    for (std::size_t i = 0; i < std::max(stored.size(), spec.spaces.size()); ++i) {
      if (i >= stored.size() || i >= spec.spaces.size()) {
        return NotCompatible(key, std::to_string(stored.size()) + " kinds of rows",
                             std::to_string(spec.spaces.size()) + " kinds of rows", spec);
      }
      const SpaceSpec& space = spec.spaces[i];
      const std::string& before = stored[i][key ? "keySchema" : "valueSchema"].AsString();
      const std::string& now = key ? space.key_schema : space.value_schema;
      if (before != now ||
          (key && (stored[i]["name"].AsString() != space.name || stored[i]["timed"].AsBool() != space.timed ||
                   stored[i]["timedByValue"].AsBool() != space.timed_by_value))) {
        return NotCompatible(key, before, now, spec);
      }
      if (!key && stored[i]["valueNote"].AsString() != space.value_note) {
        return NotCompatible(key, before + " of " + stored[i]["valueNote"].AsString(), now + " of " + space.value_note,
                             spec);
      }
    }
  }
  return {};
}

Result<std::vector<FoundOperator>> FindOperators(const storage::Location& state_folder) {
  std::vector<FoundOperator> found;
  auto children = state_folder.store->List(state_folder.path);
  if (!children.ok()) {
    if (children.error().kind() == ErrorKind::kNotFound) {
      return found;
    }
    return std::move(children).error();
  }
  for (const storage::ObjectMeta& child : *children) {
    const std::string name = child.path.substr(child.path.rfind('/') + 1);
    if (!IsNumber(name)) {
      continue;
    }
    auto schema = state_folder.store->Get(SchemaPath(child.path));
    if (!schema.ok()) {
      if (schema.error().kind() != ErrorKind::kNotFound) {
        return std::move(schema).error();
      }
      // An empty folder is nobody's.
      FLEUVE_ASSIGN(const auto files, state_folder.store->ListRecursive(child.path));
      if (files.empty()) {
        continue;
      }
      return Foreign(state_folder.path);
    }
    if (!schema->starts_with(kSchemaMagic)) {
      return Foreign(state_folder.path);
    }
    FLEUVE_ASSIGN(const std::string text, state_folder.store->Get(MetadataPath(child.path)));
    const std::size_t line = text.find('\n');
    FLEUVE_ASSIGN(const Json json, Json::Parse(line == std::string::npos ? text : text.substr(line + 1)));
    FoundOperator one;
    one.id = static_cast<int>(json["operatorInfo"]["operatorId"].AsInt());
    one.name = json["operatorInfo"]["operatorName"].AsString();
    const Json::Array& stores = json["stateStoreInfo"].items();
    one.partitions = stores.empty() ? 0 : stores.front()["numPartitions"].AsInt();
    found.push_back(std::move(one));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return found;
}

Result<StoreSpec> ReadSpec(const storage::Location& folder) {
  StoreSpec spec;
  spec.folder = folder;
  FLEUVE_ASSIGN(const std::string metadata, folder.store->Get(MetadataPath(folder.path)));
  const std::size_t line = metadata.find('\n');
  FLEUVE_ASSIGN(const Json told, Json::Parse(line == std::string::npos ? metadata : metadata.substr(line + 1)));
  spec.operator_id = static_cast<int>(told["operatorInfo"]["operatorId"].AsInt());
  spec.operator_name = told["operatorInfo"]["operatorName"].AsString();
  FLEUVE_ASSIGN(const std::string schema, folder.store->Get(SchemaPath(folder.path)));
  if (!schema.starts_with(kSchemaMagic)) {
    return Foreign(folder.path);
  }
  FLEUVE_ASSIGN(const Json json, Json::Parse(std::string_view(schema).substr(kSchemaMagic.size())));
  for (const Json& one : json["spaces"].items()) {
    SpaceSpec space;
    space.name = one["name"].AsString();
    space.timed = one["timed"].AsBool();
    space.timed_by_value = one["timedByValue"].AsBool();
    space.key_schema = one["keySchema"].AsString();
    space.value_schema = one["valueSchema"].AsString();
    space.value_note = one["valueNote"].AsString();
    space.key_columns = one["keyColumns"].AsString();
    space.value_columns = one["valueColumns"].AsString();
    spec.spaces.push_back(std::move(space));
  }
  return spec;
}

void AppendTime(std::string& key, std::int64_t micros) {
  const std::uint64_t sortable = static_cast<std::uint64_t>(micros) ^ (std::uint64_t{1} << 63);
  for (int shift = 56; shift >= 0; shift -= 8) {
    key.push_back(static_cast<char>(sortable >> shift & 0xFF));
  }
}

std::int64_t TimeOf(std::string_view key) {
  std::uint64_t sortable = 0;
  for (std::size_t i = 0; i < 8 && i < key.size(); ++i) {
    sortable = sortable << 8 | static_cast<unsigned char>(key[i]);
  }
  return static_cast<std::int64_t>(sortable ^ (std::uint64_t{1} << 63));
}

}  // namespace fleuve::state
