#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "plan/analyzer_internal.h"

namespace fleuve::plan {
namespace {

using types::DataType;
using types::TypeKind;

char LowerChar(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Number of edits between two names, as used to order suggestions.
std::size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

bool QualifierEndsWith(const std::vector<std::string>& qualifier, const std::vector<std::string>& parts,
                       std::size_t count, bool case_sensitive) {
  if (qualifier.size() < count) {
    return false;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!EqualNames(qualifier[qualifier.size() - count + i], parts[i], case_sensitive)) {
      return false;
    }
  }
  return true;
}

std::vector<std::string> FullName(const Attribute& attribute) {
  std::vector<std::string> parts = attribute.qualifier;
  parts.push_back(attribute.name);
  return parts;
}

bool IsLiteralFunction(const std::string& lower_name) {
  static const std::set<std::string> kNames = {"current_date", "current_timestamp", "current_user",
                                               "user",         "session_user",      "current_time"};
  return kNames.contains(lower_name);
}

}  // namespace

bool EqualNames(std::string_view a, std::string_view b, bool case_sensitive) {
  if (a.size() != b.size()) {
    return false;
  }
  if (case_sensitive) {
    return a == b;
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (LowerChar(a[i]) != LowerChar(b[i])) {
      return false;
    }
  }
  return true;
}

std::string LowerName(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), LowerChar);
  return out;
}

Result<std::vector<std::string>> SplitIdentifier(std::string_view text) {
  const auto wrong = [&text] {
    return Error(ErrorKind::kInvalidArgument, "INVALID_ATTRIBUTE_NAME_SYNTAX",
                 "Syntax error in the attribute name: " + std::string(text) +
                     ". Check that backticks appear in pairs, a quoted string is a complete name part and use a "
                     "backtick only inside quoted name parts.")
        .With("name", std::string(text));
  };
  std::vector<std::string> parts;
  std::string part;
  bool quoted = false;
  bool was_quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '`') {
        part += c;
      } else if (i + 1 < text.size() && text[i + 1] == '`') {
        part += '`';
        ++i;
      } else {
        quoted = false;
        was_quoted = true;
        if (i + 1 < text.size() && text[i + 1] != '.') {
          return wrong();
        }
      }
    } else if (c == '`') {
      if (!part.empty() || was_quoted) {
        return wrong();
      }
      quoted = true;
    } else if (c == '.') {
      if (part.empty() && !was_quoted) {
        return wrong();
      }
      parts.push_back(std::move(part));
      part.clear();
      was_quoted = false;
    } else {
      part += c;
    }
  }
  if (quoted || (part.empty() && !was_quoted && !parts.empty())) {
    return wrong();
  }
  parts.push_back(std::move(part));
  return parts;
}

std::string QuoteParts(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) {
    out += out.empty() ? "`" : ".`";
    for (const char c : part) {
      out += c == '`' ? "``" : std::string(1, c);
    }
    out += "`";
  }
  return out;
}

Error UnresolvedColumn(const std::vector<std::string>& parts, const std::vector<const std::vector<Attribute>*>& tiers) {
  const std::string name = QuoteParts(parts);
  std::vector<std::pair<std::size_t, std::string>> candidates;
  std::string plain;
  for (const std::string& part : parts) {
    plain += (plain.empty() ? "" : ".") + LowerName(part);
  }
  if (!tiers.empty()) {
    for (const Attribute& attribute : *tiers.front()) {
      if (attribute.hidden) {
        continue;
      }
      std::vector<std::string> full = FullName(attribute);
      if (full.size() > parts.size()) {
        full.erase(full.begin(), full.end() - static_cast<std::ptrdiff_t>(parts.size()));
      }
      std::string text;
      for (const std::string& part : full) {
        text += (text.empty() ? "" : ".") + LowerName(part);
      }
      if (candidates.size() < 2000) {
        candidates.emplace_back(EditDistance(text, plain), QuoteParts(full));
      }
    }
  }
  const std::string start = "A column, variable, or function parameter with name " + name + " cannot be resolved.";
  if (candidates.empty()) {
    return Error(ErrorKind::kInvalidArgument, "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", start).With("objectName", name);
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string proposal;
  std::set<std::string> seen;
  for (const auto& [distance, text] : candidates) {
    if (seen.size() == 5) {
      break;
    }
    if (seen.insert(text).second) {
      proposal += (proposal.empty() ? "" : ", ") + text;
    }
  }
  return Error(ErrorKind::kInvalidArgument, "UNRESOLVED_COLUMN.WITH_SUGGESTION",
               start + " Did you mean one of the following? [" + proposal + "].")
      .With("objectName", name)
      .With("proposal", proposal);
}

bool IsUnresolvedColumn(const Error& error) {
  return error.condition().starts_with("UNRESOLVED_COLUMN.") || error.condition() == "CANNOT_RESOLVE_DATAFRAME_COLUMN";
}

Result<std::optional<ExprPtr>> Analyzer::NameInColumns(const std::vector<std::string>& parts,
                                                       const std::vector<Attribute>& columns) {
  const bool case_sensitive = config_.case_sensitive;
  std::vector<const Attribute*> found;
  std::size_t used = 0;
  const auto collect = [&](std::size_t qualifiers, bool hidden) {
    for (const Attribute& attribute : columns) {
      if (attribute.hidden == hidden && EqualNames(attribute.name, parts[qualifiers], case_sensitive) &&
          (qualifiers == 0 || QualifierEndsWith(attribute.qualifier, parts, qualifiers, case_sensitive))) {
        const bool known =
            std::any_of(found.begin(), found.end(), [&](const Attribute* other) { return other->id == attribute.id; });
        if (!known) {
          found.push_back(&attribute);
        }
      }
    }
    used = qualifiers + 1;
  };
  for (std::size_t qualifiers = std::min<std::size_t>(parts.size() - 1, 3); qualifiers > 0 && found.empty();
       --qualifiers) {
    collect(qualifiers, false);
    if (found.empty()) {
      collect(qualifiers, true);
    }
  }
  if (found.empty()) {
    collect(0, false);
  }
  if (found.empty()) {
    collect(0, true);
  }
  if (found.empty()) {
    return std::optional<ExprPtr>();
  }
  if (found.size() > 1) {
    std::vector<std::string> all;
    for (const Attribute* attribute : found) {
      all.push_back(QuoteParts(FullName(*attribute)));
    }
    std::sort(all.begin(), all.end());
    const std::string names = fleuve::Join(all, ", ");
    return Error(ErrorKind::kInvalidArgument, "AMBIGUOUS_REFERENCE",
                 "Reference " + QuoteParts(parts) + " is ambiguous, could be: [" + names + "].")
        .With("name", QuoteParts(parts))
        .With("referenceNames", "[" + names + "]");
  }
  ExprPtr expr;
  if (found.front()->name == parts[used - 1]) {
    expr = AttributeExpr(*found.front());
  } else {
    Attribute named = *found.front();
    named.name = parts[used - 1];
    expr = MakeAttribute(named);
  }
  for (std::size_t i = used; i < parts.size(); ++i) {
    FLEUVE_ASSIGN(expr, ExtractField(expr, parts[i]));
  }
  return std::optional<ExprPtr>(std::move(expr));
}

Result<std::optional<ExprPtr>> Analyzer::NameInTiers(const std::vector<std::string>& parts, const Scope& scope) {
  for (std::size_t i = scope.lambdas.size(); i > 0; --i) {
    for (const Attribute& parameter : scope.lambdas[i - 1]) {
      if (!EqualNames(parameter.name, parts.front(), config_.case_sensitive)) {
        continue;
      }
      auto variable = std::make_shared<Expr>();
      variable->kind = ExprKind::kLambdaVariable;
      variable->type = parameter.type;
      variable->nullable = parameter.nullable;
      variable->attribute = parameter;
      variable->display = "namedlambdavariable()";
      ExprPtr expr = variable;
      for (std::size_t j = 1; j < parts.size(); ++j) {
        FLEUVE_ASSIGN(expr, ExtractField(expr, parts[j]));
      }
      return std::optional<ExprPtr>(std::move(expr));
    }
  }
  for (const std::vector<Attribute>* tier : scope.tiers) {
    FLEUVE_ASSIGN(std::optional<ExprPtr> found, NameInColumns(parts, *tier));
    if (found) {
      return found;
    }
  }
  if (scope.aliases != nullptr) {
    const SelectItem* match = nullptr;
    for (const SelectItem& item : *scope.aliases) {
      if (item.is_alias && item.expr != nullptr && EqualNames(item.name, parts.front(), config_.case_sensitive)) {
        if (match != nullptr) {
          return Error(ErrorKind::kInvalidArgument, "AMBIGUOUS_LATERAL_COLUMN_ALIAS",
                       "Lateral column alias " + QuoteParts(parts) + " is ambiguous and has 2 matches.")
              .With("name", QuoteParts(parts))
              .With("n", "2");
        }
        match = &item;
      }
    }
    if (match != nullptr) {
      if (!match->expr->deterministic) {
        return Error::Unsupported("a lateral column alias of a non-deterministic expression");
      }
      ExprPtr expr = match->expr;
      std::string path = parts.front();
      for (std::size_t j = 1; j < parts.size(); ++j) {
        FLEUVE_ASSIGN(expr, ExtractField(expr, parts[j]));
        path += "." + parts[j];
      }
      return std::optional<ExprPtr>(WithDisplay(expr, std::string(kAliasReference) + path + ")"));
    }
  }
  if (scope.function_parameters != nullptr) {
    const std::string& name = parts.size() == 2 ? parts[1] : parts.front();
    for (const auto& [parameter, value] : *scope.function_parameters) {
      if (EqualNames(parameter, name, config_.case_sensitive)) {
        return std::optional<ExprPtr>(WithDisplay(value, name));
      }
    }
  }
  return std::optional<ExprPtr>();
}

Result<ExprPtr> Analyzer::Name(const std::vector<std::string>& parts, const Scope& scope) {
  FLEUVE_ASSIGN(std::optional<ExprPtr> found, NameInTiers(parts, scope));
  if (found) {
    return *found;
  }
  for (std::size_t i = outer_scopes_.size(); i > 0; --i) {
    Scope outer = *outer_scopes_[i - 1];
    if (outer.tiers.size() > 1) {
      outer.tiers.resize(1);
    }
    FLEUVE_ASSIGN(found, NameInTiers(parts, outer));
    if (found) {
      return RewriteExpr(*found, [](const ExprPtr& node) -> ExprPtr {
        if (node->kind != ExprKind::kAttribute || node->is_outer) {
          return nullptr;
        }
        auto copy = std::make_shared<Expr>(*node);
        copy->is_outer = true;
        return copy;
      });
    }
  }
  if (parts.size() == 1 && IsLiteralFunction(LowerName(parts.front()))) {
    FunctionCall call;
    call.name = LowerName(parts.front());
    call.config = &config_;
    return BuildFunction(call);
  }
  FLEUVE_ASSIGN(std::optional<SessionVariable> variable, resolver_.ResolveVariable(parts));
  if (variable) {
    ExprPtr literal = MakeLiteral(variable->value, variable->type);
    return WithDisplay(literal, std::string(kVariableReference) + "system.session." + LowerName(parts.back()) + "=" +
                                    LiteralSql(variable->value, variable->type, config_.session_zone) + ")");
  }
  return UnresolvedColumn(parts, scope.tiers);
}

Result<ExprPtr> Analyzer::DataFrameColumn(const std::vector<std::string>& parts, std::int64_t plan_id,
                                          const Scope& scope) {
  const auto entry = plans_by_id_.find(plan_id);
  const auto missing = [&] {
    return Error(ErrorKind::kInvalidArgument, "CANNOT_RESOLVE_DATAFRAME_COLUMN",
                 "Cannot resolve dataframe column " + QuoteParts(parts) +
                     ". It's probably because of illegal references like `df1.select(df2.col(\"a\"))`.")
        .With("name", QuoteParts(parts));
  };
  const auto search = [&](const std::vector<const std::vector<Attribute>*>& tiers,
                          std::size_t tier_count) -> Result<std::optional<ExprPtr>> {
    // A plan may stand in several places: the one nearest to the top is meant.
    std::vector<ExprPtr> candidates;
    int nearest = 0;
    bool resolved_somewhere = false;
    for (const auto& [plan, depth] : entry->second) {
      FLEUVE_ASSIGN(std::optional<ExprPtr> found, NameInColumns(parts, plan->output));
      if (!found) {
        continue;
      }
      resolved_somewhere = true;
      AttributeId id;
      VisitExpr(*found, [&id](const Expr& node) {
        if (node.kind == ExprKind::kAttribute) {
          id = node.attribute.id;
        }
      });
      for (std::size_t tier = 0; tier < std::min(tier_count, tiers.size()); ++tier) {
        const auto here = std::find_if(tiers[tier]->begin(), tiers[tier]->end(),
                                       [&id](const Attribute& attribute) { return attribute.id == id; });
        if (here == tiers[tier]->end()) {
          continue;
        }
        ExprPtr expr = *found;
        // Nullability may have changed on the way (outer joins).
        if (here->nullable != (*found)->nullable && (*found)->kind == ExprKind::kAttribute) {
          Attribute current = (*found)->attribute;
          current.nullable = here->nullable;
          current.type = here->type;
          expr = MakeAttribute(current);
        }
        const bool known = std::any_of(candidates.begin(), candidates.end(),
                                       [&expr](const ExprPtr& other) { return SameExpr(other, expr); });
        if (!candidates.empty() && depth < nearest && !known) {
          candidates.clear();
        }
        if (!known && (candidates.empty() || depth == nearest)) {
          candidates.push_back(std::move(expr));
          nearest = depth;
        } else if (known) {
          nearest = std::min(nearest, depth);
        }
        break;
      }
    }
    if (candidates.size() > 1) {
      return Error(ErrorKind::kInvalidArgument, "AMBIGUOUS_COLUMN_REFERENCE",
                   "Column " + QuoteParts(parts) +
                       " is ambiguous. It's because you joined several DataFrame together, and some of these "
                       "DataFrames are the same.")
          .With("name", QuoteParts(parts));
    }
    if (!candidates.empty()) {
      return std::optional<ExprPtr>(candidates.front());
    }
    if (!resolved_somewhere && !entry->second.empty()) {
      return UnresolvedColumn(parts, {&entry->second.front().plan->output});
    }
    return std::optional<ExprPtr>();
  };
  if (entry != plans_by_id_.end()) {
    FLEUVE_ASSIGN(std::optional<ExprPtr> found, search(scope.tiers, scope.tiers.size()));
    if (found) {
      return *found;
    }
    for (std::size_t i = outer_scopes_.size(); i > 0; --i) {
      FLEUVE_ASSIGN(found, search(outer_scopes_[i - 1]->tiers, 1));
      if (found) {
        return RewriteExpr(*found, [](const ExprPtr& node) -> ExprPtr {
          if (node->kind != ExprKind::kAttribute) {
            return nullptr;
          }
          auto copy = std::make_shared<Expr>(*node);
          copy->is_outer = true;
          return copy;
        });
      }
    }
    // The frame has it, but it did not come this far.
    return UnresolvedColumn(parts, scope.tiers);
  }
  return missing();
}

Result<ExprPtr> Analyzer::ExtractField(const ExprPtr& child, const std::string& name) {
  return ExtractValue(child, MakeLiteral(types::Value(name), DataType::String()));
}

Result<ExprPtr> Analyzer::ExtractValue(const ExprPtr& child, const ExprPtr& extraction) {
  const DataType& type = child->type;
  const bool is_name =
      extraction->kind == ExprKind::kLiteral && extraction->type.IsString() && !extraction->value.is_null();
  const bool on_struct = type.Is(TypeKind::kStruct);
  const bool on_structs = type.Is(TypeKind::kArray) && type.element().Is(TypeKind::kStruct);
  if (is_name && (on_struct || on_structs)) {
    const DataType& record = on_struct ? type : type.element();
    const std::string& name = extraction->value.text();
    std::optional<std::size_t> ordinal;
    std::string fields;
    for (std::size_t i = 0; i < record.fields().size(); ++i) {
      fields += (fields.empty() ? "" : ", ") + QuoteParts({record.fields()[i].name});
      if (EqualNames(record.fields()[i].name, name, config_.case_sensitive)) {
        if (ordinal) {
          return Error(ErrorKind::kInvalidArgument, "AMBIGUOUS_REFERENCE_TO_FIELDS",
                       "Ambiguous reference to the field " + QuoteParts({name}) + ". It appears 2 times in the schema.")
              .With("field", QuoteParts({name}))
              .With("count", "2");
        }
        ordinal = i;
      }
    }
    if (!ordinal) {
      return Error(ErrorKind::kInvalidArgument, "FIELD_NOT_FOUND",
                   "No such struct field " + QuoteParts({name}) + " in " + fields + ".")
          .With("fieldName", QuoteParts({name}))
          .With("fields", fields);
    }
    if (on_struct) {
      ExprPtr field = MakeGetField(child, static_cast<int>(*ordinal));
      return WithDisplay(field, child->display + "." + name);
    }
    FLEUVE_ASSIGN(ExprPtr fields_of,
                  Call("get_array_struct_fields",
                       {child, MakeLiteral(types::Value(static_cast<int>(*ordinal)), DataType::Int())}));
    return WithDisplay(fields_of, child->display + "." + name);
  }
  if (type.Is(TypeKind::kArray) || type.Is(TypeKind::kMap)) {
    FLEUVE_ASSIGN(ExprPtr item, Call("[]", {child, extraction}));
    return WithDisplay(item, child->display + "[" + extraction->display + "]");
  }
  if (on_struct) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_EXTRACT_FIELD_TYPE",
                 "Field name should be a non-null string literal, but it's \"" + extraction->display + "\".")
        .With("extraction", "\"" + extraction->display + "\"");
  }
  return Error(ErrorKind::kInvalidArgument, "INVALID_EXTRACT_BASE_FIELD_TYPE",
               "Can't extract a value from \"" + child->display +
                   "\". Need a complex type [STRUCT, ARRAY, MAP] but got \"" + type.Sql() + "\".")
      .With("base", "\"" + child->display + "\"")
      .With("other", "\"" + type.Sql() + "\"");
}

}  // namespace fleuve::plan
