#include "delta/features.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "base/bytes.h"
#include "types/collation.h"
#include "types/parts.h"

namespace fleuve::delta {
namespace {

/// A table feature as the protocol defines it.
struct Feature {
  std::string_view name;
  bool reader = false;
  /// Versions that imply it on tables without a feature list; 0 = only by name.
  int reader_version = 0;
  int writer_version = 0;
  bool can_read = true;
  bool can_write = true;
  /// Features that it needs beside itself.
  std::string_view needs = {};
};

// What a writer must keep when it only appends, overwrites and rewrites files is served; others are refused by name.
constexpr Feature kFeatures[] = {
    {"appendOnly", false, 0, 2},
    {"invariants", false, 0, 2},
    {"checkConstraints", false, 0, 3},
    {"changeDataFeed", false, 0, 4},
    {"generatedColumns", false, 0, 4},
    {"columnMapping", true, 2, 5},
    {"identityColumns", false, 0, 6},
    {"timestampNtz", true},
    {"deletionVectors", true},
    {"domainMetadata", false},
    {"v2Checkpoint", true},
    {"vacuumProtocolCheck", true},
    {"inCommitTimestamp", false},
    {"allowColumnDefaults", false},
    {"typeWidening", true},
    {"typeWidening-preview", true},
    {"clustering", false, 0, 0, true, true, "domainMetadata"},
    {"rowTracking", false, 0, 0, true, true, "domainMetadata"},
    {"icebergCompatV1", false, 0, 0, true, false, "columnMapping"},
    {"icebergCompatV2", false, 0, 0, true, false, "columnMapping"},
    {"checkpointProtection", false},
    {"variantType", true},
    {"variantType-preview", true},
    // Variants are written whole, which every reader of shredded ones takes.
    {"variantShredding", true},
    {"variantShredding-preview", true},
    {"materializePartitionColumns", false, 0, 0, true, false},
    {"collations-preview", false, 0, 0, true, false},
};

const Feature* FindFeature(std::string_view name) {
  for (const Feature& f : kFeatures) {
    if (EqualsIgnoreAsciiCase(f.name, name)) {
      return &f;
    }
  }
  return nullptr;
}

bool Contains(const std::optional<std::vector<std::string>>& list, std::string_view name) {
  return list && std::find(list->begin(), list->end(), name) != list->end();
}

Error UnsupportedFeatures(std::string_view condition, std::string_view table, const std::vector<std::string>& names,
                          std::string_view verb) {
  return Error(ErrorKind::kUnsupported, std::string(condition),
               "The table " + std::string(table) + " has features that this version does not " + std::string(verb) +
                   ": " + Join(names, ", ") + ".")
      .With("tableNameOrPath", std::string(table))
      .With("deltaVersion", EngineInfo())
      .With("unsupported", Join(names, ", "));
}

Error InvalidVersion(const Protocol& p, std::string_view table) {
  return Error(ErrorKind::kUnsupported, "DELTA_INVALID_PROTOCOL_VERSION",
               "The table " + std::string(table) + " needs reader version " + std::to_string(p.min_reader_version) +
                   " and writer version " + std::to_string(p.min_writer_version) +
                   "; this version supports readers 1 to 3 and writers 1 to 7.")
      .With("tableNameOrPath", std::string(table))
      .With("readerRequired", std::to_string(p.min_reader_version))
      .With("writerRequired", std::to_string(p.min_writer_version))
      .With("deltaVersion", EngineInfo())
      .With("supportedReaders", "1, 2, 3")
      .With("supportedWriters", "1, 2, 3, 4, 5, 6, 7");
}

bool AnyField(const types::DataType& type, const std::function<bool(const types::StructField&)>& test) {
  switch (type.kind()) {
    case types::TypeKind::kArray:
      return AnyField(type.element(), test);
    case types::TypeKind::kMap:
      return AnyField(type.key(), test) || AnyField(type.value(), test);
    case types::TypeKind::kStruct:
      return std::any_of(type.fields().begin(), type.fields().end(),
                         [&](const auto& f) { return test(f) || AnyField(f.type, test); });
    default:
      return false;
  }
}

bool IsTrue(const StringMap& configuration, std::string_view key) {
  const std::string* value = FindIn(configuration, key);
  return value != nullptr && EqualsIgnoreAsciiCase(*value, "true");
}

void MoveToFeatureList(Protocol& p) {
  if (p.min_writer_version >= 7) {
    if (!p.writer_features) {
      p.writer_features.emplace();
    }
    return;
  }
  std::vector<std::string> implied;
  for (const Feature& f : kFeatures) {
    if (f.writer_version > 0 && f.writer_version <= p.min_writer_version) {
      implied.emplace_back(f.name);
    }
  }
  p.min_writer_version = 7;
  p.writer_features = std::move(implied);
}

}  // namespace

Result<void> CheckReadable(const Protocol& p, std::string_view table) {
  if (p.min_reader_version > 3 || p.min_writer_version > 7 || p.min_reader_version < 1) {
    return InvalidVersion(p, table);
  }
  std::vector<std::string> unknown;
  if (p.reader_features) {
    for (const std::string& name : *p.reader_features) {
      const Feature* f = FindFeature(name);
      if (f == nullptr || !f->can_read) {
        unknown.push_back(name);
      }
    }
  }
  if (!unknown.empty()) {
    return UnsupportedFeatures("DELTA_UNSUPPORTED_FEATURES_FOR_READ", table, unknown, "read");
  }
  return {};
}

Result<void> CheckWritable(const Protocol& p, std::string_view table) {
  FLEUVE_TRY(CheckReadable(p, table));
  std::vector<std::string> unknown;
  if (p.writer_features) {
    for (const std::string& name : *p.writer_features) {
      const Feature* f = FindFeature(name);
      if (f == nullptr || !f->can_write) {
        unknown.push_back(name);
      }
    }
  } else if (p.min_writer_version == 6) {
    // Version 6 alone says that identity columns may be there; whether they are is seen in the schema.
  }
  if (!unknown.empty()) {
    return UnsupportedFeatures("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE", table, unknown, "write");
  }
  return {};
}

bool HasFeature(const Protocol& p, std::string_view feature) {
  if (Contains(p.writer_features, feature) || Contains(p.reader_features, feature)) {
    return true;
  }
  const Feature* f = FindFeature(feature);
  return f != nullptr && !p.writer_features && f->writer_version > 0 && f->writer_version <= p.min_writer_version &&
         f->reader_version <= p.min_reader_version;
}

std::vector<std::string> FeaturesOf(const Protocol& p) {
  std::set<std::string> names;
  if (p.writer_features) {
    names.insert(p.writer_features->begin(), p.writer_features->end());
    if (p.reader_features) {
      names.insert(p.reader_features->begin(), p.reader_features->end());
    }
  } else {
    for (const Feature& f : kFeatures) {
      if (f.writer_version > 0 && f.writer_version <= p.min_writer_version &&
          f.reader_version <= p.min_reader_version) {
        names.insert(std::string(f.name));
      }
    }
  }
  return {names.begin(), names.end()};
}

Result<Protocol> WithFeature(const Protocol& protocol, std::string_view feature) {
  const Feature* f = FindFeature(feature);
  if (f == nullptr) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
                 "The table feature " + std::string(feature) + " is not known.")
        .With("configs", "delta.feature." + std::string(feature))
        .With("deltaVersion", EngineInfo());
  }
  Protocol p = protocol;
  if (HasFeature(p, f->name)) {
    return p;
  }
  if (!f->can_write) {
    return UnsupportedFeatures("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE", "", {std::string(f->name)}, "write");
  }
  if (!f->needs.empty()) {
    const bool begins_list = !p.writer_features;
    FLEUVE_ASSIGN(p, WithFeature(p, f->needs));
    if (begins_list && p.writer_features && !f->reader) {
      // The reference lists a new table's features before those that its old versions implied.
      p.writer_features->insert(p.writer_features->begin() + 1, std::string(f->name));
      return p;
    }
  }
  // A legacy feature on a legacy table raises the versions where nothing else would be gained by that.
  if (!p.writer_features && f->writer_version > 0) {
    Protocol raised = p;
    raised.min_writer_version = std::max(raised.min_writer_version, f->writer_version);
    raised.min_reader_version = std::max(raised.min_reader_version, f->reader_version);
    const auto before = FeaturesOf(p).size();
    if (FeaturesOf(raised).size() == before + 1) {
      return raised;
    }
  }
  const int old_writer = p.min_writer_version;
  const bool had_list = p.writer_features.has_value();
  std::vector<std::string> implied;
  if (!had_list) {
    for (const Feature& g : kFeatures) {
      if (g.writer_version > 0 && g.writer_version <= old_writer && g.reader_version <= p.min_reader_version) {
        implied.emplace_back(g.name);
      }
    }
  }
  MoveToFeatureList(p);
  if (!had_list) {
    // New features come first, then what the old versions implied: the order in which the reference lists them.
    std::reverse(implied.begin(), implied.end());
    p.writer_features = std::vector<std::string>{std::string(f->name)};
    p.writer_features->insert(p.writer_features->end(), implied.begin(), implied.end());
  } else {
    p.writer_features->push_back(std::string(f->name));
  }
  if (f->reader) {
    if (f->reader_version > 0 && p.min_reader_version < 3 && !p.reader_features) {
      p.min_reader_version = std::max(p.min_reader_version, f->reader_version);
    } else {
      if (!p.reader_features) {
        p.reader_features.emplace();
        if (p.min_reader_version == 2) {
          p.reader_features->push_back("columnMapping");
        }
      }
      p.min_reader_version = 3;
      p.reader_features->push_back(std::string(f->name));
    }
  }
  return p;
}

std::string_view FeatureName(std::string_view name) {
  const Feature* f = FindFeature(name);
  return f == nullptr ? std::string_view() : f->name;
}

Result<Protocol> WithoutFeature(const Protocol& protocol, std::string_view feature) {
  Protocol p = protocol;
  for (const Feature& f : kFeatures) {
    if (f.needs == feature && HasFeature(protocol, f.name)) {
      return Error(ErrorKind::kUnsupported, "DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
                   "Cannot drop the feature " + std::string(feature) + ": " + std::string(f.name) + " depends on it.")
          .With("feature", std::string(feature))
          .With("dependentFeatures", std::string(f.name));
    }
  }
  if (!p.writer_features) {
    p.writer_features = FeaturesOf(protocol);
    p.min_writer_version = 7;
  }
  std::erase(*p.writer_features, feature);
  if (p.reader_features) {
    std::erase(*p.reader_features, feature);
    if (p.reader_features->empty()) {
      p.reader_features.reset();
      p.min_reader_version = 1;
    } else if (*p.reader_features == std::vector<std::string>{"columnMapping"}) {
      p.reader_features.reset();
      p.min_reader_version = 2;
    }
  } else if (feature == "columnMapping") {
    p.min_reader_version = 1;
  }
  std::vector<std::string> left = *p.writer_features;
  std::sort(left.begin(), left.end());
  for (int writer = 1; writer <= 6 && !p.reader_features; ++writer) {
    const Protocol legacy{p.min_reader_version, writer, std::nullopt, std::nullopt};
    if (FeaturesOf(legacy) == left) {
      return legacy;
    }
  }
  return p;
}

Result<std::vector<std::string>> FeaturesNeeded(const Metadata& metadata, const types::Schema& schema) {
  if (const std::string* collation = types::CollationIn(schema)) {
    return Error::Unsupported("writing a Delta table with strings of the collation " + *collation);
  }
  std::vector<std::string> needed;
  const StringMap& conf = metadata.configuration;
  if (IsTrue(conf, "delta.enableDeletionVectors")) {
    needed.emplace_back("deletionVectors");
  }
  const std::string* mapping = FindIn(conf, "delta.columnMapping.mode");
  if (mapping != nullptr && !EqualsIgnoreAsciiCase(*mapping, "none")) {
    needed.emplace_back("columnMapping");
  }
  if (IsTrue(conf, "delta.enableChangeDataFeed")) {
    needed.emplace_back("changeDataFeed");
  }
  if (IsTrue(conf, "delta.enableInCommitTimestamps")) {
    needed.emplace_back("inCommitTimestamp");
  }
  if (IsTrue(conf, "delta.enableRowTracking")) {
    needed.emplace_back("rowTracking");
  }
  if (IsTrue(conf, "delta.enableTypeWidening")) {
    needed.emplace_back("typeWidening");
  }
  if (IsTrue(conf, "delta.enableVariantShredding")) {
    needed.emplace_back("variantShredding-preview");
  }
  if (IsTrue(conf, "delta.appendOnly")) {
    needed.emplace_back("appendOnly");
  }
  if (IsTrue(conf, "delta.enableIcebergCompatV1")) {
    needed.emplace_back("icebergCompatV1");
  }
  if (IsTrue(conf, "delta.enableIcebergCompatV2")) {
    needed.emplace_back("icebergCompatV2");
  }
  const std::string* policy = FindIn(conf, "delta.checkpointPolicy");
  if (policy != nullptr && EqualsIgnoreAsciiCase(*policy, "v2")) {
    needed.emplace_back("v2Checkpoint");
  }
  if (std::any_of(conf.begin(), conf.end(), [](const auto& e) { return e.first.starts_with("delta.constraints."); })) {
    needed.emplace_back("checkConstraints");
  }
  if (types::Holds(schema, types::TypeKind::kTimestampNtz)) {
    needed.emplace_back("timestampNtz");
  }
  if (types::Holds(schema, types::TypeKind::kVariant)) {
    needed.emplace_back("variantType");
  }
  const auto has_key = [&](std::string_view key) {
    return AnyField(schema, [&](const types::StructField& f) { return f.metadata.Find(key) != nullptr; });
  };
  if (has_key("delta.generationExpression")) {
    needed.emplace_back("generatedColumns");
  }
  if (has_key("delta.identity.start")) {
    needed.emplace_back("identityColumns");
  }
  if (has_key("CURRENT_DEFAULT")) {
    needed.emplace_back("allowColumnDefaults");
  }
  if (has_key("delta.invariants") || AnyField(schema, [](const types::StructField& f) { return !f.nullable; })) {
    needed.emplace_back("invariants");
  }
  return needed;
}

Result<Protocol> ProtocolFor(const Protocol* current, Metadata& metadata, const types::Schema& schema) {
  Protocol p;
  if (current != nullptr) {
    p = *current;
  }
  const auto version_property = [&](std::string_view key) -> Result<std::optional<int>> {
    const std::string* text = FindIn(metadata.configuration, key);
    if (text == nullptr) {
      return std::optional<int>();
    }
    int value = 0;
    try {
      value = std::stoi(*text);
    } catch (const std::exception&) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_PROTOCOL_PROPERTY_NOT_INT",
                   "The property " + std::string(key) + " must be a number, not '" + *text + "'.")
          .With("key", std::string(key))
          .With("value", *text);
    }
    return std::optional<int>(value);
  };
  FLEUVE_ASSIGN(const std::optional<int> reader, version_property("delta.minReaderVersion"));
  FLEUVE_ASSIGN(const std::optional<int> writer, version_property("delta.minWriterVersion"));
  if (current == nullptr && (reader || writer)) {
    // A new table may ask for less than the default.
    p.min_reader_version = reader.value_or(1);
    p.min_writer_version = writer.value_or(2);
  } else {
    if (reader && *reader > p.min_reader_version) {
      p.min_reader_version = *reader;
    }
    if (writer && *writer > p.min_writer_version) {
      if (*writer >= 7) {
        MoveToFeatureList(p);
      }
      p.min_writer_version = *writer;
    }
  }
  if (p.min_writer_version > 7 || p.min_reader_version > 3) {
    return InvalidVersion(p, "");
  }
  if (p.min_writer_version == 7 && !p.writer_features) {
    p.writer_features.emplace();
  }
  if (p.min_reader_version == 3 && !p.reader_features) {
    p.reader_features.emplace();
  }
  EraseFrom(metadata.configuration, "delta.minReaderVersion");
  EraseFrom(metadata.configuration, "delta.minWriterVersion");

  std::vector<std::string> wanted;
  StringMap kept;
  for (auto& [key, value] : metadata.configuration) {
    if (!key.starts_with("delta.feature.")) {
      kept.emplace_back(key, value);
      continue;
    }
    const std::string name = key.substr(14);
    if (!EqualsIgnoreAsciiCase(value, "supported") && !EqualsIgnoreAsciiCase(value, "enabled")) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_UNSUPPORTED_FEATURE_STATUS",
                   "The status of table feature " + name + " must be 'supported', not '" + value + "'.")
          .With("feature", name)
          .With("status", value);
    }
    if (FindFeature(name) == nullptr) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
                   "The table feature in property " + key + " is not known.")
          .With("configs", key)
          .With("deltaVersion", EngineInfo());
    }
    wanted.push_back(name);
  }
  metadata.configuration = std::move(kept);
  FLEUVE_ASSIGN(const std::vector<std::string> needed, FeaturesNeeded(metadata, schema));
  wanted.insert(wanted.end(), needed.begin(), needed.end());
  for (const std::string& name : needed) {
    // Readers of an existing table must not be shut out by a new column alone.
    const bool is_asked_for = std::any_of(wanted.begin(), wanted.end() - static_cast<std::ptrdiff_t>(needed.size()),
                                          [&](const auto& w) { return EqualsIgnoreAsciiCase(w, name); });
    if (current != nullptr && name == "timestampNtz" && !is_asked_for && !HasFeature(*current, name)) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
                   "The change needs the table feature " + name +
                       ", which must be enabled by hand: set the table "
                       "property 'delta.feature." +
                       name + "' = 'supported'.")
          .With("unsupportedFeatures", name)
          .With("supportedFeatures", Join(FeaturesOf(*current), ", "));
    }
  }
  // Several legacy features may be said by one version; by name otherwise.
  for (const std::string& name : wanted) {
    FLEUVE_ASSIGN(p, WithFeature(p, name));
  }
  if (current == nullptr && p.writer_features && p.writer_features->empty() &&
      (!p.reader_features || p.reader_features->empty())) {
    return Protocol{1, 1, std::nullopt, std::nullopt};  // feature lists without a feature say nothing more
  }
  return p;
}

}  // namespace fleuve::delta
