#include "avro/resolution.h"

#include <algorithm>
#include <map>
#include <utility>

#include "avro/binary.h"

namespace fleuve::avro {

namespace {

using Op = Action::Op;

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Names of types agree, the reader's aliases counted.
bool SameName(const Node& writer, const Node& reader) {
  return writer.full_name == reader.full_name || Contains(reader.aliases, writer.full_name);
}

bool IsPromotion(Kind from, Kind to) {
  switch (from) {
    case Kind::kInt:
      return to == Kind::kLong || to == Kind::kFloat || to == Kind::kDouble;
    case Kind::kLong:
      return to == Kind::kFloat || to == Kind::kDouble;
    case Kind::kFloat:
      return to == Kind::kDouble;
    case Kind::kString:
      return to == Kind::kBytes;
    case Kind::kBytes:
      return to == Kind::kString;
    default:
      return false;
  }
}

Op PlainOp(Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return Op::kNull;
    case Kind::kBoolean:
      return Op::kBoolean;
    case Kind::kInt:
      return Op::kInt;
    case Kind::kLong:
      return Op::kLong;
    case Kind::kFloat:
      return Op::kFloat;
    case Kind::kDouble:
      return Op::kDouble;
    default:
      return Op::kBytes;
  }
}

/// Characters of a JSON string are the bytes of a default value.
bool AppendLatin(const std::string& text, std::string* out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      out->push_back(text[i]);
    } else if ((byte == 0xC2 || byte == 0xC3) && i + 1 < text.size()) {
      out->push_back(static_cast<char>((byte & 3) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3F)));
    } else {
      return false;
    }
  }
  return true;
}

bool MayBe(Kind kind, const Json& value) {
  switch (kind) {
    case Kind::kFixed:
    case Kind::kString:
    case Kind::kBytes:
      return value.is_string();
    case Kind::kInt:
    case Kind::kLong:
    case Kind::kFloat:
    case Kind::kDouble:
      return value.is_number();
    case Kind::kBoolean:
      return value.is_bool();
    case Kind::kNull:
      return value.is_null();
    default:
      return true;
  }
}

/// A default value in binary form; false where it is none of the type.
bool EncodeDefault(const Node& type, const Json& value, int depth, std::string* out) {
  if (depth > 100 || !MayBe(type.kind, value)) {
    return false;
  }
  switch (type.kind) {
    case Kind::kNull:
      return true;
    case Kind::kBoolean:
      out->push_back(value.AsBool() ? 1 : 0);
      return true;
    case Kind::kInt:
    case Kind::kLong: {
      const bool fits = type.kind == Kind::kLong || value.AsInt() == static_cast<std::int32_t>(value.AsInt());
      AppendLong(*out, value.AsInt());
      return value.is_int() && fits;
    }
    case Kind::kFloat:
      AppendNumber(*out, static_cast<float>(value.AsDouble()));
      return true;
    case Kind::kDouble:
      AppendNumber(*out, value.AsDouble());
      return true;
    case Kind::kString:
      AppendBytes(*out, value.AsString());
      return true;
    case Kind::kBytes:
    case Kind::kFixed: {
      std::string bytes;
      if (!AppendLatin(value.AsString(), &bytes)) {
        return false;
      }
      if (type.kind == Kind::kBytes) {
        AppendBytes(*out, bytes);
      } else {
        bytes.resize(static_cast<std::size_t>(type.size), '\0');
        out->append(bytes);
      }
      return true;
    }
    case Kind::kEnum: {
      const auto at = std::find(type.symbols.begin(), type.symbols.end(), value.AsString());
      AppendLong(*out, at - type.symbols.begin());
      return at != type.symbols.end();
    }
    case Kind::kArray:
      if (!value.items().empty()) {
        AppendLong(*out, static_cast<std::int64_t>(value.items().size()));
      }
      for (const Json& item : value.items()) {
        if (!EncodeDefault(*type.children[0], item, depth + 1, out)) {
          return false;
        }
      }
      out->push_back(0);
      return value.is_array();
    case Kind::kMap:
      if (!value.fields().empty()) {
        AppendLong(*out, static_cast<std::int64_t>(value.fields().size()));
      }
      for (const auto& [key, item] : value.fields()) {
        AppendBytes(*out, key);
        if (!EncodeDefault(*type.children[0], item, depth + 1, out)) {
          return false;
        }
      }
      out->push_back(0);
      return value.is_object();
    case Kind::kRecord:
      for (const Field& field : type.fields) {
        const Json* own = value.Find(field.name);
        if (own == nullptr) {
          own = field.default_value ? &*field.default_value : nullptr;
        }
        if (own == nullptr || !EncodeDefault(*field.type, *own, depth + 1, out)) {
          return false;
        }
      }
      return value.is_object();
    case Kind::kUnion:
      for (std::size_t i = 0; i < type.children.size(); ++i) {
        if (MayBe(type.children[i]->kind, value)) {
          AppendLong(*out, static_cast<std::int64_t>(i));
          return EncodeDefault(*type.children[i], value, depth + 1, out);
        }
      }
      return false;
  }
  return false;
}

/// Types that lie deeper below each other are not read.
constexpr int kMaxDepth = 1000;

class Resolver {
 public:
  explicit Resolver(std::deque<Action>* actions) : actions_(*actions) {}

  const Action* Resolve(const Node& writer, const Node& reader) {
    const auto [known, fresh] = seen_.emplace(std::pair(&writer, &reader), nullptr);
    if (!fresh) {
      return known->second;
    }
    Action* action = &actions_.emplace_back();
    known->second = action;
    action->writer = &writer;
    action->reader = &reader;
    if (depth_ < kMaxDepth) {
      ++depth_;
      Fill(writer, reader, action);
      --depth_;
    }
    return action;
  }

 private:
  void Fill(const Node& writer, const Node& reader, Action* action) {
    if (writer.kind == Kind::kUnion) {
      action->op = Op::kWriterUnion;
      for (const Node* branch : writer.children) {
        action->children.push_back(Resolve(*branch, reader));
      }
      return;
    }
    if (reader.kind == Kind::kUnion) {
      action->branch = Branch(writer, reader);
      if (action->branch >= 0) {
        action->op = Op::kReaderUnion;
        action->children.push_back(Resolve(writer, *reader.children[static_cast<std::size_t>(action->branch)]));
      }
      return;
    }
    if (writer.kind != reader.kind) {
      action->op = IsPromotion(writer.kind, reader.kind) ? PlainOp(writer.kind) : Op::kError;
      return;
    }
    switch (writer.kind) {
      case Kind::kFixed:
        action->op = SameName(writer, reader) && writer.size == reader.size ? Op::kFixed : Op::kError;
        return;
      case Kind::kEnum:
        Enum(writer, reader, action);
        return;
      case Kind::kArray:
      case Kind::kMap:
        action->op = writer.kind == Kind::kArray ? Op::kArray : Op::kMap;
        action->children.push_back(Resolve(*writer.children[0], *reader.children[0]));
        return;
      case Kind::kRecord:
        Record(writer, reader, action);
        return;
      default:
        action->op = PlainOp(writer.kind);
    }
  }

  static void Enum(const Node& writer, const Node& reader, Action* action) {
    if (!SameName(writer, reader)) {
      return;
    }
    action->op = Op::kEnum;
    const auto place = [&](const std::string& symbol) {
      const auto at = std::find(reader.symbols.begin(), reader.symbols.end(), symbol);
      return at == reader.symbols.end() ? -1 : static_cast<int>(at - reader.symbols.begin());
    };
    for (const std::string& symbol : writer.symbols) {
      const int own = place(symbol);
      action->symbols.push_back(own < 0 && reader.enum_default ? place(*reader.enum_default) : own);
    }
  }

  /// The reader's field for one of the writer's; aliases of fields count only in records of one name, as in Java.
  static int FieldOf(const Node& writer, const Node& reader, const std::string& name) {
    for (std::size_t i = 0; i < reader.fields.size(); ++i) {
      if (reader.fields[i].name == name) {
        return static_cast<int>(i);
      }
    }
    if (SameName(writer, reader)) {
      for (std::size_t i = 0; i < reader.fields.size(); ++i) {
        if (Contains(reader.fields[i].aliases, name)) {
          return static_cast<int>(i);
        }
      }
    }
    return -1;
  }

  void Record(const Node& writer, const Node& reader, Action* action) {
    std::vector<bool> found(reader.fields.size(), false);
    for (const Field& field : writer.fields) {
      int place = FieldOf(writer, reader, field.name);
      if (place >= 0 && found[static_cast<std::size_t>(place)]) {
        place = -1;
      }
      action->fields.push_back(place);
      if (place >= 0) {
        found[static_cast<std::size_t>(place)] = true;
      }
    }
    for (std::size_t i = 0; i < reader.fields.size(); ++i) {
      if (found[i]) {
        continue;
      }
      const Field& field = reader.fields[i];
      Action::Default value;
      value.field = i;
      if (!field.default_value || !EncodeDefault(*field.type, *field.default_value, 0, &value.bytes)) {
        return;  // an error, whatever the writer's fields are
      }
      value.action = Resolve(*field.type, *field.type);
      action->defaults.push_back(std::move(value));
    }
    for (std::size_t i = 0; i < writer.fields.size(); ++i) {
      const int place = action->fields[i];
      action->children.push_back(
          place < 0 ? nullptr : Resolve(*writer.fields[i].type, *reader.fields[static_cast<std::size_t>(place)].type));
    }
    action->op = Op::kRecord;
  }

  static bool CanRead(const Node& writer, const Node& reader) {
    return std::all_of(reader.fields.begin(), reader.fields.end(), [&](const Field& field) {
      return field.default_value || std::any_of(writer.fields.begin(), writer.fields.end(), [&](const Field& own) {
               return own.name == field.name || (SameName(writer, reader) && Contains(field.aliases, own.name));
             });
    });
  }

  /// The branch of the reader's union that takes the writer's values; -1: none.
  static int Branch(const Node& writer, const Node& reader) {
    int alike = -1;
    for (std::size_t i = 0; i < reader.children.size(); ++i) {
      const Node& branch = *reader.children[i];
      if (branch.kind != writer.kind) {
        continue;
      }
      if (!writer.IsNamed() || SameName(writer, branch)) {
        return static_cast<int>(i);
      }
      if (writer.kind == Kind::kRecord && CanRead(writer, branch) && (alike < 0 || writer.name == branch.name)) {
        alike = static_cast<int>(i);
      }
    }
    for (std::size_t i = 0; alike < 0 && i < reader.children.size(); ++i) {
      alike = IsPromotion(writer.kind, reader.children[i]->kind) ? static_cast<int>(i) : -1;
    }
    return alike;
  }

  std::deque<Action>& actions_;
  int depth_ = 0;
  std::map<std::pair<const Node*, const Node*>, const Action*> seen_;
};

}  // namespace

Resolution::Resolution(Schema writer, Schema reader) : writer_(std::move(writer)), reader_(std::move(reader)) {
  auto actions = std::make_shared<std::deque<Action>>();
  root_ = Resolver(actions.get()).Resolve(writer_.root(), reader_.root());
  actions_ = std::move(actions);
}

}  // namespace fleuve::avro
