#include <memory>

#include "base/json.h"
#include "engine/files/json_scanner_internal.h"
#include "engine/functions/elements_internal.h"
#include "engine/functions/json_path_internal.h"
#include "engine/functions/tables_internal.h"

namespace fleuve::engine {

namespace {

using duckdb::DataChunk;
using duckdb::FlatVector;
using duckdb::idx_t;
using duckdb::Vector;
using duckdb::VectorType;

/// A document as read: numbers keep their text, names that come twice stay.
struct Node {
  struct Member;
  JsonToken kind = JsonToken::kNull;
  std::string text;
  std::vector<Member> members;  ///< of an object; of an array with empty names
};
struct Node::Member {
  std::string name;
  Node value;
};

JsonOptions LenientOptions() {
  JsonOptions options;
  options.allow_single_quotes = true;
  options.allow_control_characters = true;
  options.allow_non_numeric = false;
  return options;
}

bool ReadNode(JsonScanner& scanner, Node& node, int depth) {
  if (depth > JsonScanner::kMaxDepth) {
    return false;
  }
  node.kind = scanner.Begin();
  switch (node.kind) {
    case JsonToken::kError:
      return false;
    case JsonToken::kString: {
      std::string_view text;
      if (!scanner.String(&text)) {
        return false;
      }
      node.text = text;
      return true;
    }
    case JsonToken::kInteger:
    case JsonToken::kFraction:
      node.text = scanner.number();
      return true;
    case JsonToken::kObject: {
      scanner.Open();
      bool first = true;
      while (true) {
        std::string_view name;
        const int next = scanner.NextName(first, &name);
        if (next <= 0) {
          return next == 0;
        }
        first = false;
        node.members.push_back({std::string(name), Node()});
        if (!ReadNode(scanner, node.members.back().value, depth + 1)) {
          return false;
        }
      }
    }
    case JsonToken::kArray: {
      scanner.Open();
      bool first = true;
      while (true) {
        const int next = scanner.NextElement(first);
        if (next <= 0) {
          return next == 0;
        }
        first = false;
        node.members.push_back({});
        if (!ReadNode(scanner, node.members.back().value, depth + 1)) {
          return false;
        }
      }
    }
    default:
      return true;
  }
}

/// One JSON text. False where it is none.
bool ParseDocument(std::string_view text, const JsonOptions& options, Node& root) {
  JsonScanner scanner(options);
  scanner.Reset(text);
  return ReadNode(scanner, root, 0);
}

void Write(const Node& node, std::string& out) {
  switch (node.kind) {
    case JsonToken::kString:
      AppendJsonString(out, node.text);
      return;
    case JsonToken::kInteger:
      out += node.text;
      return;
    case JsonToken::kFraction:
      out += JavaDoubleToString(std::strtod(node.text.c_str(), nullptr));
      return;
    case JsonToken::kTrue:
      out += "true";
      return;
    case JsonToken::kFalse:
      out += "false";
      return;
    case JsonToken::kObject:
      out.push_back('{');
      for (std::size_t i = 0; i < node.members.size(); ++i) {
        if (i > 0) {
          out.push_back(',');
        }
        AppendJsonString(out, node.members[i].name);
        out.push_back(':');
        Write(node.members[i].value, out);
      }
      out.push_back('}');
      return;
    case JsonToken::kArray:
      out.push_back('[');
      for (std::size_t i = 0; i < node.members.size(); ++i) {
        if (i > 0) {
          out.push_back(',');
        }
        Write(node.members[i].value, out);
      }
      out.push_back(']');
      return;
    default:
      out += "null";
  }
}

// ------------------------------------------------------------------------------------------------------------- paths

enum class StepKind { kKey, kAnyKey, kIndex, kAnyIndex };
struct Step {
  StepKind kind;
  std::string name;
  std::size_t index = 0;
};
using Path = std::vector<Step>;

/// `$.a['b c'][0][*].*`. Nullopt where it is no path.
std::optional<Path> ParsePath(std::string_view text) {
  if (text.empty() || text[0] != '$') {
    return std::nullopt;
  }
  Path path;
  std::size_t i = 1;
  while (i < text.size()) {
    if (text[i] == '.') {
      ++i;
      if (i < text.size() && text[i] == '*') {
        path.push_back({StepKind::kAnyKey, "", 0});
        ++i;
        continue;
      }
      const std::size_t end = std::min(text.find_first_of(".[", i), text.size());
      if (end == i) {
        return std::nullopt;
      }
      path.push_back({StepKind::kKey, std::string(text.substr(i, end - i)), 0});
      i = end;
      continue;
    }
    if (text[i] != '[' || i + 1 >= text.size()) {
      return std::nullopt;
    }
    ++i;
    if (text[i] == '\'') {
      const std::size_t end = text.find('\'', i + 1);
      if (end == std::string_view::npos || end + 1 >= text.size() || text[end + 1] != ']') {
        return std::nullopt;
      }
      std::string name(text.substr(i + 1, end - i - 1));
      if (name == "*") {
        path.push_back({StepKind::kAnyKey, "", 0});
      } else {
        path.push_back({StepKind::kKey, std::move(name), 0});
      }
      i = end + 2;
      continue;
    }
    if (text[i] == '*') {
      if (i + 1 >= text.size() || text[i + 1] != ']') {
        return std::nullopt;
      }
      path.push_back({StepKind::kAnyIndex, "", 0});
      i += 2;
      continue;
    }
    std::size_t index = 0;
    const std::size_t begin = i;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9' && i - begin < 10) {
      index = index * 10 + static_cast<std::size_t>(text[i++] - '0');
    }
    if (i == begin || i >= text.size() || text[i] != ']') {
      return std::nullopt;
    }
    path.push_back({StepKind::kIndex, "", index});
    ++i;
  }
  return path;
}

enum class Style { kRaw, kQuoted, kFlatten };

/// Collects the values that an enclosing array will hold.
struct Output {
  std::string text;
  bool in_array = false;
  bool any = false;

  void Separate() {
    if (in_array && any) {
      text.push_back(',');
    }
    any = true;
  }
};

/// Spark's get_json_object, after Hive's: what it writes and whether it matched.
bool Evaluate(const Node& node, const Path& path, std::size_t at, Style style, Output& out) {
  if (at == path.size()) {
    if (node.kind == JsonToken::kString && style == Style::kRaw) {
      out.Separate();
      out.text += node.text;
      return true;
    }
    if (node.kind == JsonToken::kArray && style == Style::kFlatten) {
      bool any = false;
      for (const auto& [name, item] : node.members) {
        any = Evaluate(item, path, at, style, out) || any;
      }
      return any;
    }
    out.Separate();
    Write(node, out.text);
    return true;
  }
  const Step& step = path[at];
  if (node.kind == JsonToken::kObject) {
    for (const auto& [name, value] : node.members) {
      if (step.kind == StepKind::kKey && name == step.name) {
        if (value.kind != JsonToken::kNull && Evaluate(value, path, at + 1, style, out)) {
          return true;
        }
      } else if (step.kind == StepKind::kAnyKey) {
        if (Evaluate(value, path, at + 1, style, out)) {
          return true;
        }
      }
    }
    return false;
  }
  if (node.kind != JsonToken::kArray) {
    return false;
  }
  if (step.kind == StepKind::kIndex) {
    if (step.index >= node.members.size()) {
      return false;
    }
    const bool wildcard_next = at + 1 < path.size() && path[at + 1].kind == StepKind::kAnyIndex;
    const Node& item = node.members[step.index].value;
    if (item.kind == JsonToken::kNull && at + 1 == path.size() && style == Style::kRaw) {
      return false;
    }
    return Evaluate(item, path, at + 1, wildcard_next ? Style::kQuoted : style, out);
  }
  if (step.kind != StepKind::kAnyIndex) {
    return false;
  }
  const bool twice = at + 1 < path.size() && path[at + 1].kind == StepKind::kAnyIndex;
  Output inner;
  inner.in_array = true;
  if (twice) {
    bool any = false;
    for (const auto& [name, item] : node.members) {
      any = Evaluate(item, path, at + 2, Style::kFlatten, inner) || any;
    }
    out.Separate();
    out.text += "[" + inner.text + "]";
    return any;
  }
  if (style == Style::kQuoted) {
    bool any = false;
    for (const auto& [name, item] : node.members) {
      any = Evaluate(item, path, at + 1, Style::kQuoted, inner) || any;
    }
    out.Separate();
    out.text += "[" + inner.text + "]";
    return any;
  }
  int matches = 0;
  for (const auto& [name, item] : node.members) {
    matches += Evaluate(item, path, at + 1, style == Style::kRaw ? Style::kQuoted : Style::kFlatten, inner) ? 1 : 0;
  }
  if (matches == 0) {
    return false;
  }
  out.Separate();
  out.text += matches > 1 ? "[" + inner.text + "]" : inner.text;
  return true;
}

Result<Kernel> MakeGetObject(const ScalarSite&) {
  return Kernel([](DataChunk& args, Vector& result) {
    const JsonOptions options = LenientOptions();
    Column documents(args.data[0], args.size());
    Column paths(args.data[1], args.size());
    result.SetVectorType(VectorType::FLAT_VECTOR);
    auto* out = FlatVector::GetData<duckdb::string_t>(result);
    std::string path_text;
    std::optional<Path> path;
    for (idx_t row = 0; row < args.size(); ++row) {
      bool found = false;
      if (!documents.IsNull(row) && !paths.IsNull(row)) {
        const Str wanted = paths.Get<Str>(row);
        if (!path || path_text != wanted) {
          path_text = wanted;
          path = ParsePath(wanted);
        }
        Node root;
        Output output;
        if (path && ParseDocument(documents.Get<Str>(row), options, root) && root.kind != JsonToken::kNull &&
            Evaluate(root, *path, 0, Style::kRaw, output)) {
          out[row] = Physical<Str>::Write(result, output.text);
          found = true;
        }
        if (!path) {
          path_text.clear();
        }
      }
      if (!found) {
        FlatVector::SetNull(result, row, true);
      }
    }
  });
}

Result<Kernel> MakeArrayLength(const ScalarSite&) {
  return MapRows<std::int32_t, Str>([](Str text) -> std::optional<std::int32_t> {
    Node root;
    if (!ParseDocument(text, LenientOptions(), root) || root.kind != JsonToken::kArray) {
      return std::nullopt;
    }
    return static_cast<std::int32_t>(root.members.size());
  });
}

void AddText(Vector& list, idx_t at, std::string_view text) {
  auto& child = duckdb::ListVector::GetEntry(list);
  FlatVector::GetData<duckdb::string_t>(child)[at] =
      duckdb::StringVector::AddStringOrBlob(child, text.data(), text.size());
}

Result<Kernel> MakeObjectKeys(const ScalarSite&) {
  return Kernel([](DataChunk& args, Vector& result) {
    const JsonOptions options = LenientOptions();
    Column documents(args.data[0], args.size());
    result.SetVectorType(VectorType::FLAT_VECTOR);
    auto* entries = FlatVector::GetData<duckdb::list_entry_t>(result);
    idx_t total = 0;
    for (idx_t row = 0; row < args.size(); ++row) {
      entries[row] = duckdb::list_entry_t(total, 0);
      Node root;
      if (documents.IsNull(row) || !ParseDocument(documents.Get<Str>(row), options, root) ||
          root.kind != JsonToken::kObject) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      duckdb::ListVector::Reserve(result, total + root.members.size());
      for (const auto& [name, value] : root.members) {
        AddText(result, total++, name);
      }
      entries[row].length = root.members.size();
    }
    duckdb::ListVector::SetListSize(result, total);
  });
}

/// json_tuple(document, name, ...): one row of texts, as array<struct<...>> for the generator.
Result<Kernel> MakeTuple(const ScalarSite& site) {
  const std::size_t width = site.size() - 1;
  return Kernel([width](DataChunk& args, Vector& result) {
    const JsonOptions options = LenientOptions();
    Column documents(args.data[0], args.size());
    std::vector<Column> names;
    for (std::size_t i = 0; i < width; ++i) {
      names.emplace_back(args.data[i + 1], args.size());
    }
    result.SetVectorType(VectorType::FLAT_VECTOR);
    auto* entries = FlatVector::GetData<duckdb::list_entry_t>(result);
    duckdb::ListVector::Reserve(result, args.size());
    auto& fields = duckdb::StructVector::GetEntries(duckdb::ListVector::GetEntry(result));
    for (idx_t row = 0; row < args.size(); ++row) {
      entries[row] = duckdb::list_entry_t(row, 1);
      Node root;
      const bool object = !documents.IsNull(row) && ParseDocument(documents.Get<Str>(row), options, root) &&
                          root.kind == JsonToken::kObject;
      for (std::size_t i = 0; i < width; ++i) {
        const Node* found = nullptr;
        for (const auto& [name, value] : root.members) {
          if (object && !names[i].IsNull(row) && name == names[i].Get<Str>(row)) {
            found = &value;
          }
        }
        if (found == nullptr || found->kind == JsonToken::kNull) {
          FlatVector::SetNull(*fields[i], row, true);
          continue;
        }
        std::string text;
        if (found->kind == JsonToken::kString) {
          text = found->text;
        } else {
          Write(*found, text);
        }
        FlatVector::GetData<duckdb::string_t>(*fields[i])[row] =
            duckdb::StringVector::AddStringOrBlob(*fields[i], text.data(), text.size());
      }
    }
    duckdb::ListVector::SetListSize(result, args.size());
  });
}

}  // namespace

std::string RewriteJson(std::string_view raw) {
  Node root;
  if (!ParseDocument(raw, LenientOptions(), root)) {
    return std::string(raw);
  }
  std::string out;
  Write(root, out);
  return out;
}

const ScalarTable& JsonPathKernels() {
  static const ScalarTable table = {
      {"spark_get_json_object", Nulls::kOwn, MakeGetObject},
      {"spark_json_array_length", Nulls::kPropagate, MakeArrayLength},
      {"spark_json_object_keys", Nulls::kOwn, MakeObjectKeys},
      {"spark_json_tuple", Nulls::kOwn, MakeTuple},
  };
  return table;
}

}  // namespace fleuve::engine
