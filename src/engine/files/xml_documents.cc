// XML files: each element named by rowTag is a record.

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include "base/bytes.h"
#include "base/json.h"
#include "engine/files/byte_stream_internal.h"
#include "engine/files/containers_internal.h"
#include "engine/files/date_pattern_internal.h"
#include "engine/files/text_value_internal.h"
#include "engine/infer.h"

namespace fleuve::engine {

namespace {

using types::DataType;
using types::StructField;
using types::TypeKind;

/// One element.
struct Element {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<Element> children;
  std::string text;
};

struct XmlOptions {
  std::string row_tag;
  std::string attribute_prefix = "_";
  std::string value_tag = "_VALUE";
  bool exclude_attributes = false;
  bool trim = true;
  std::optional<std::string> null_value;
  std::string encoding;
};

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool IsNameEnd(char c) { return IsSpace(c) || c == '>' || c == '/' || c == '='; }

void AppendCode(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (code >> 6)));
    out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else if (code < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (code >> 12)));
    out.push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else {
    out.push_back(static_cast<char>(0xF0 | (code >> 18)));
    out.push_back(static_cast<char>(0x80 | ((code >> 12) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
  }
}

/// Text with entities resolved; false for an unknown one.
bool Unescape(std::string_view text, std::string* out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '&') {
      out->push_back(text[i]);
      continue;
    }
    const std::size_t end = text.find(';', i);
    if (end == std::string_view::npos) {
      return false;
    }
    const std::string_view name = text.substr(i + 1, end - i - 1);
    if (name == "lt") {
      out->push_back('<');
    } else if (name == "gt") {
      out->push_back('>');
    } else if (name == "amp") {
      out->push_back('&');
    } else if (name == "quot") {
      out->push_back('"');
    } else if (name == "apos") {
      out->push_back('\'');
    } else if (name.size() > 1 && name[0] == '#') {
      const bool hex = name[1] == 'x' || name[1] == 'X';
      const std::string_view digits = name.substr(hex ? 2 : 1);
      std::uint32_t code = 0;
      const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
      if (error != std::errc() || stop != digits.data() + digits.size() || code > 0x10FFFF) {
        return false;
      }
      AppendCode(*out, code);
    } else {
      return false;
    }
    i = end;
  }
  return true;
}

/// Reads elements of one text.
class XmlParser {
 public:
  XmlParser(std::string_view text, const XmlOptions& options) : text_(text), options_(options) {}

  std::size_t position() const { return at_; }
  void set_position(std::size_t at) { at_ = at; }

  /// Moves to the next `<rowTag`; false where there is none.
  bool FindRow() {
    const std::string open = "<" + options_.row_tag;
    for (;;) {
      const std::size_t at = text_.find('<', at_);
      if (at == std::string_view::npos) {
        return false;
      }
      if (text_.substr(at, 4) == "<!--") {
        const std::size_t end = text_.find("-->", at);
        if (end == std::string_view::npos) {
          return false;
        }
        at_ = end + 3;
        continue;
      }
      if (text_.substr(at, open.size()) == open && at + open.size() < text_.size() &&
          IsNameEnd(text_[at + open.size()])) {
        at_ = at;
        return true;
      }
      at_ = at + 1;
    }
  }

  /// Parses the element that begins here; false where it is broken.
  bool Parse(Element* element, int depth = 0) {
    if (depth > 500 || at_ >= text_.size() || text_[at_] != '<') {
      return false;
    }
    ++at_;
    const std::size_t name = at_;
    while (at_ < text_.size() && !IsNameEnd(text_[at_])) {
      ++at_;
    }
    element->name = std::string(text_.substr(name, at_ - name));
    if (element->name.empty()) {
      return false;
    }
    for (;;) {
      SkipSpaces();
      if (at_ >= text_.size()) {
        return false;
      }
      if (text_[at_] == '>') {
        ++at_;
        break;
      }
      if (text_.substr(at_, 2) == "/>") {
        at_ += 2;
        return true;
      }
      const std::size_t key = at_;
      while (at_ < text_.size() && !IsNameEnd(text_[at_])) {
        ++at_;
      }
      std::string attribute(text_.substr(key, at_ - key));
      SkipSpaces();
      if (attribute.empty() || at_ >= text_.size() || text_[at_] != '=') {
        return false;
      }
      ++at_;
      SkipSpaces();
      if (at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) {
        return false;
      }
      const char quote = text_[at_++];
      const std::size_t end = text_.find(quote, at_);
      if (end == std::string_view::npos) {
        return false;
      }
      std::string value;
      if (!Unescape(text_.substr(at_, end - at_), &value)) {
        return false;
      }
      at_ = end + 1;
      if (!options_.exclude_attributes && attribute != "xmlns" && !attribute.starts_with("xmlns:")) {
        element->attributes.emplace_back(std::move(attribute), std::move(value));
      }
    }
    for (;;) {
      const std::size_t tag = text_.find('<', at_);
      if (tag == std::string_view::npos || !Unescape(text_.substr(at_, tag - at_), &element->text)) {
        return false;
      }
      at_ = tag;
      if (text_.substr(at_, 4) == "<!--") {
        const std::size_t end = text_.find("-->", at_);
        if (end == std::string_view::npos) {
          return false;
        }
        at_ = end + 3;
      } else if (text_.substr(at_, 9) == "<![CDATA[") {
        const std::size_t end = text_.find("]]>", at_);
        if (end == std::string_view::npos) {
          return false;
        }
        element->text += text_.substr(at_ + 9, end - at_ - 9);
        at_ = end + 3;
      } else if (text_.substr(at_, 2) == "<?") {
        const std::size_t end = text_.find("?>", at_);
        if (end == std::string_view::npos) {
          return false;
        }
        at_ = end + 2;
      } else if (text_.substr(at_, 2) == "</") {
        const std::size_t end = text_.find('>', at_);
        if (end == std::string_view::npos || TrimAscii(text_.substr(at_ + 2, end - at_ - 2)) != element->name) {
          return false;
        }
        at_ = end + 1;
        return true;
      } else {
        element->children.emplace_back();
        if (!Parse(&element->children.back(), depth + 1)) {
          return false;
        }
      }
    }
  }

 private:
  void SkipSpaces() {
    while (at_ < text_.size() && IsSpace(text_[at_])) {
      ++at_;
    }
  }

  const std::string_view text_;
  const XmlOptions& options_;
  std::size_t at_ = 0;
};

std::string_view ValueText(const Element& element, const XmlOptions& options) {
  std::string_view text = element.text;
  if (options.trim || !element.children.empty()) {
    text = TrimAscii(text);
  }
  return text;
}

Result<XmlOptions> MakeXmlOptions(const plan::Options& options) {
  XmlOptions out;
  const auto text = [&](const char* name, std::string* value) {
    if (const std::string* given = plan::FindOption(options, name)) {
      *value = *given;
    }
  };
  text("rowTag", &out.row_tag);
  if (out.row_tag.empty()) {
    return Error(ErrorKind::kInvalidArgument, "XML_ROW_TAG_MISSING",
                 "`rowTag` option is required for reading/writing "
                 "files in XML format.")
        .With("rowTag", "`rowTag`");
  }
  text("attributePrefix", &out.attribute_prefix);
  text("valueTag", &out.value_tag);
  text("encoding", &out.encoding);
  const auto flag = [&](const char* name, bool* value) -> Result<void> {
    if (const std::string* given = plan::FindOption(options, name)) {
      if (!EqualsIgnoreAsciiCase(*given, "true") && !EqualsIgnoreAsciiCase(*given, "false")) {
        return Error(ErrorKind::kInvalidArgument, "INVALID_OPTION_VALUE",
                     "Invalid value '" + *given + "' for option '" + name + "': must be true or false.");
      }
      *value = EqualsIgnoreAsciiCase(*given, "true");
    }
    return {};
  };
  FLEUVE_TRY(flag("excludeAttribute", &out.exclude_attributes));
  FLEUVE_TRY(flag("ignoreSurroundingSpaces", &out.trim));
  if (const std::string* null_value = plan::FindOption(options, "nullValue")) {
    out.null_value = *null_value;
  }
  for (const char* name : {"rowValidationXSDPath", "ignoreNamespace", "wildcardColName", "singleVariantColumn"}) {
    if (plan::FindOption(options, name) != nullptr) {
      return Error::Unsupported(std::string("option ") + name + " of XML files");
    }
  }
  return out;
}

class XmlDocuments final : public DocumentSource {
 public:
  XmlDocuments(std::string text, XmlOptions options, types::Schema schema)
      : text_(std::move(text)), options_(std::move(options)), schema_(std::move(schema)), parser_(text_, options_) {}

  Result<bool> Next(std::string_view* json, std::string_view* raw) override {
    if (!parser_.FindRow()) {
      return false;
    }
    const std::size_t begin = parser_.position();
    Element row;
    if (!parser_.Parse(&row)) {
      // The rest of the document cannot be trusted.
      *raw = std::string_view(text_).substr(begin);
      *json = *raw;
      parser_.set_position(text_.size());
      return true;
    }
    *raw = std::string_view(text_).substr(begin, parser_.position() - begin);
    out_.clear();
    AppendStruct(row, schema_);
    *json = out_;
    return true;
  }

 private:
  bool IsNullText(std::string_view text) const { return options_.null_value && text == *options_.null_value; }

  void AppendText(std::string_view text) {
    if (IsNullText(text)) {
      out_ += "null";
    } else {
      AppendJsonString(out_, text);
    }
  }

  void AppendStruct(const Element& element, const DataType& type) {
    out_.push_back('{');
    bool first = true;
    const auto begin_member = [&](const std::string& name) {
      if (!first) {
        out_.push_back(',');
      }
      first = false;
      AppendJsonString(out_, name);
      out_.push_back(':');
    };
    for (const auto& [name, value] : element.attributes) {
      begin_member(options_.attribute_prefix + name);
      AppendText(value);
    }
    std::vector<std::string> order;
    std::map<std::string, std::vector<const Element*>> groups;
    for (const Element& child : element.children) {
      auto& group = groups[child.name];
      if (group.empty()) {
        order.push_back(child.name);
      }
      group.push_back(&child);
    }
    for (const std::string& name : order) {
      const auto& group = groups[name];
      const auto at = types::FieldIndex(type, name, true);
      const DataType child_type = at ? type.fields()[*at].type : DataType();
      begin_member(name);
      if (child_type.Is(TypeKind::kArray) || (!at && group.size() > 1)) {
        out_.push_back('[');
        for (std::size_t i = 0; i < group.size(); ++i) {
          if (i > 0) {
            out_.push_back(',');
          }
          AppendValue(*group[i], at ? child_type.element() : DataType());
        }
        out_.push_back(']');
      } else {
        AppendValue(*group.back(), child_type);
      }
    }
    const std::string_view text = ValueText(element, options_);
    if (!text.empty() && (types::FieldIndex(type, options_.value_tag, true) || element.children.empty())) {
      begin_member(options_.value_tag);
      AppendText(text);
    }
    out_.push_back('}');
  }

  void AppendValue(const Element& element, const DataType& type) {
    const bool plain = element.children.empty() && (element.attributes.empty() || type.IsString());
    if (type.Is(TypeKind::kStruct) || (!plain && !type.IsString())) {
      AppendStruct(element, type);
      return;
    }
    const std::string_view text = ValueText(element, options_);
    if (text.empty() && !type.IsString()) {
      out_ += "null";
      return;
    }
    AppendText(text);
  }

  const std::string text_;
  const XmlOptions options_;
  const types::Schema schema_;
  XmlParser parser_;
  std::string out_;
};

/// Types of XML values.
class XmlInference {
 public:
  XmlInference(const XmlOptions& options, const TimeText& times, bool infer_types)
      : options_(options), times_(times), infer_types_(infer_types) {}

  DataType Struct(const Element& element) const {
    std::map<std::string, DataType> fields;
    std::map<std::string, int> counts;
    for (const auto& [name, value] : element.attributes) {
      Merge(fields[options_.attribute_prefix + name], Leaf(value));
    }
    for (const Element& child : element.children) {
      Merge(fields[child.name], Value(child));
      ++counts[child.name];
    }
    for (const auto& [name, count] : counts) {
      if (count > 1) {
        fields[name] = DataType::Array(fields[name]);
      }
    }
    const std::string_view text = ValueText(element, options_);
    if (!text.empty()) {
      Merge(fields[options_.value_tag], Leaf(text));
    }
    std::vector<StructField> out;
    for (auto& [name, type] : fields) {
      out.push_back({name, type, true, {}});
    }
    return DataType::Struct(std::move(out));
  }

  static DataType MergeTypes(const DataType& a, const DataType& b) {
    if (a.Is(TypeKind::kArray) != b.Is(TypeKind::kArray) && !a.Is(TypeKind::kVoid) && !b.Is(TypeKind::kVoid)) {
      return DataType::Array(a.Is(TypeKind::kArray) ? MergeTypes(a.element(), b) : MergeTypes(a, b.element()));
    }
    if (a.Is(TypeKind::kArray) && b.Is(TypeKind::kArray)) {
      return DataType::Array(MergeTypes(a.element(), b.element()));
    }
    if (a.Is(TypeKind::kStruct) != b.Is(TypeKind::kStruct) && !a.Is(TypeKind::kVoid) && !b.Is(TypeKind::kVoid)) {
      const DataType& structure = a.Is(TypeKind::kStruct) ? a : b;
      const DataType& leaf = a.Is(TypeKind::kStruct) ? b : a;
      std::map<std::string, DataType> fields;
      for (const StructField& field : structure.fields()) {
        fields[field.name] = field.type;
      }
      Merge(fields["_VALUE"], leaf);
      std::vector<StructField> out;
      for (auto& [name, type] : fields) {
        out.push_back({name, type, true, {}});
      }
      return DataType::Struct(std::move(out));
    }
    if (a.Is(TypeKind::kStruct) && b.Is(TypeKind::kStruct)) {
      std::map<std::string, DataType> fields;
      for (const StructField& field : a.fields()) {
        fields[field.name] = field.type;
      }
      for (const StructField& field : b.fields()) {
        Merge(fields[field.name], field.type);
      }
      std::vector<StructField> out;
      for (auto& [name, type] : fields) {
        out.push_back({name, type, true, {}});
      }
      return DataType::Struct(std::move(out));
    }
    return MergeJsonTypes(a, b);
  }

 private:
  static void Merge(DataType& into, const DataType& type) { into = MergeTypes(into, type); }

  DataType Value(const Element& element) const {
    if (element.children.empty() && element.attributes.empty()) {
      return Leaf(ValueText(element, options_));
    }
    return Struct(element);
  }

  DataType Leaf(std::string_view text) const {
    if (text.empty() || (options_.null_value && text == *options_.null_value)) {
      return DataType::Void();
    }
    if (!infer_types_) {
      return DataType::String();
    }
    std::int64_t whole = 0;
    if (ParseJavaInteger(text, &whole)) {
      return DataType::Long();
    }
    double real = 0;
    const char last = text.back();
    if (last != 'd' && last != 'D' && last != 'f' && last != 'F' && ParseJavaDouble(text, &real)) {
      return DataType::Double();
    }
    if (EqualsIgnoreAsciiCase(text, "true") || EqualsIgnoreAsciiCase(text, "false")) {
      return DataType::Boolean();
    }
    if (text.size() >= 8 && text.find('-') != std::string_view::npos) {
      if (text.find_first_of("T :") == std::string_view::npos && times_.ParseDate(text)) {
        return DataType::Date();
      }
      if (times_.ParseTimestamp(text)) {
        return DataType::Timestamp();
      }
    }
    return DataType::String();
  }

  const XmlOptions& options_;
  const TimeText& times_;
  const bool infer_types_;
};

DataType Canonical(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kVoid:
      return DataType::String();
    case TypeKind::kArray:
      return DataType::Array(Canonical(type.element()));
    case TypeKind::kStruct: {
      std::vector<StructField> fields = type.fields();
      for (StructField& field : fields) {
        field.type = Canonical(field.type);
      }
      return DataType::Struct(std::move(fields));
    }
    default:
      return type;
  }
}

}  // namespace

Result<void> CheckXmlOptions(const plan::Options& options) {
  FLEUVE_TRY(MakeXmlOptions(options));
  return {};
}

Result<std::unique_ptr<DocumentSource>> OpenXml(const std::string& path, const plan::Options& options,
                                                const types::Schema& schema) {
  FLEUVE_ASSIGN(XmlOptions xml, MakeXmlOptions(options));
  FLEUVE_ASSIGN(std::string text, ReadWholeFile(path, xml.encoding));
  return std::unique_ptr<DocumentSource>(std::make_unique<XmlDocuments>(std::move(text), std::move(xml), schema));
}

Result<types::Schema> InferXmlFiles(const std::vector<plan::ScanFile>& files, const plan::Options& options,
                                    const std::string& zone, bool infer_types) {
  FLEUVE_ASSIGN(const XmlOptions xml, MakeXmlOptions(options));
  const auto text_of = [&](const char* name) {
    const std::string* value = plan::FindOption(options, name);
    return value == nullptr ? std::string() : *value;
  };
  FLEUVE_ASSIGN(const TimeText times, TimeText::Make(text_of("dateFormat"), text_of("timestampFormat"), "", zone));
  const XmlInference inference(xml, times, infer_types);
  DataType merged = DataType::Struct({});
  for (const plan::ScanFile& file : files) {
    auto text = ReadWholeFile(file.path, xml.encoding);
    if (!text.ok()) {
      return FailedReadFile(file.uri, text.error());
    }
    XmlParser parser(*text, xml);
    while (parser.FindRow()) {
      Element row;
      if (!parser.Parse(&row)) {
        break;
      }
      merged = XmlInference::MergeTypes(merged, inference.Struct(row));
    }
  }
  return Canonical(merged);
}

}  // namespace fleuve::engine
