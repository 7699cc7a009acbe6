#include <proto/unpack.h>

#include <algorithm>
#include <regex>
#include <set>

#include "plan/analyzer_internal.h"
#include "plan/event_time.h"
#include "plan/variant_path_internal.h"

// Clients of Spark 4.0 still fill the fields that later protocols call deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fleuve::plan {
namespace {

using types::DataType;
using types::TypeKind;

/// The call in a select item that may be a generator: function name and arguments.
struct CallView {
  const std::string* name = nullptr;
  const google::protobuf::RepeatedPtrField<sc::Expression>* arguments = nullptr;
};

CallView CallOf(const sc::Expression& expression) {
  if (expression.has_unresolved_function()) {
    return {&expression.unresolved_function().function_name(), &expression.unresolved_function().arguments()};
  }
  if (expression.has_call_function()) {
    return {&expression.call_function().function_name(), &expression.call_function().arguments()};
  }
  return {};
}

bool IsReference(const std::string& display) {
  return display.starts_with(kAliasReference) || display.starts_with(kVariableReference);
}

/// The name that a colon path into a variant gives; empty where the expression is none.
std::string PathName(const sc::Expression& expression) {
  if (expression.has_cast()) {
    return PathName(expression.cast().expr());
  }
  if (!expression.has_extension()) {
    return "";
  }
  const auto extension = fleuve::pb::Unpack<fleuve::pb::ExpressionExtension>(expression.extension());
  return extension && extension->has_variant_path() ? LastNameOfPath(extension->variant_path().path()) : "";
}

/// Spark's name of a select item without an alias.
std::string ItemName(const sc::Expression& expression, const ExprPtr& expr) {
  if (std::string name = PathName(expression); !name.empty()) {
    return name;
  }
  if (expression.has_cast() && expression.cast().expr().has_unresolved_attribute()) {
    const ExprPtr& inner = expr->kind == ExprKind::kCast ? expr->children.front() : expr;
    if (inner->kind == ExprKind::kAttribute) {
      return inner->attribute.name;
    }
    return expr->display;
  }
  if (expression.has_unresolved_attribute()) {
    if (expr->kind == ExprKind::kAttribute && !expr->display.starts_with(kAliasReference)) {
      return expr->attribute.name;
    }
    const auto parts = SplitIdentifier(expression.unresolved_attribute().unparsed_identifier());
    if (parts.ok() && parts->size() == 1 && expr->display == LowerName(parts->back()) + "()") {
      return expr->display;  // current_date and its kin
    }
    if (parts.ok() && (expr->kind != ExprKind::kCall || parts->size() > 1 || IsReference(expr->display))) {
      return parts->back();
    }
  }
  return expr->display;
}

bool IsMetadata(const Attribute& attribute) { return attribute.hidden && attribute.name == "_metadata"; }

}  // namespace

ExprPtr Analyzer::AttributeExpr(const Attribute& attribute) {
  ExprPtr& cached = attribute_exprs_[attribute.id.value];
  if (cached == nullptr || cached->attribute.name != attribute.name || cached->nullable != attribute.nullable ||
      !(cached->type == attribute.type) || !(cached->attribute.metadata == attribute.metadata)) {
    cached = MakeAttribute(attribute);
  }
  return cached;
}

Attribute Analyzer::OutputAttribute(const SelectItem& item) {
  const Expr& expr = *item.expr;
  Attribute attribute;
  if (expr.kind == ExprKind::kAttribute && !expr.is_outer && !item.is_alias) {
    attribute = expr.attribute;
    attribute.name = item.name;
    attribute.hidden = false;
    return attribute;
  }
  attribute.id = NewAttributeId();
  attribute.name = item.name;
  attribute.type = expr.type;
  attribute.nullable = expr.nullable;
  attribute.metadata = item.metadata;
  if (attribute.metadata.is_null()) {
    if (expr.kind == ExprKind::kGetField) {
      attribute.metadata = expr.children.front()->type.fields()[static_cast<std::size_t>(expr.ordinal)].metadata;
    } else {
      attribute.metadata = EventTimeMetadata(expr);
    }
  }
  return attribute;
}

PlanPtr Analyzer::Restore(const PlanPtr& plan, const std::vector<Attribute>& output) {
  std::vector<ExprPtr> exprs;
  exprs.reserve(output.size());
  for (const Attribute& attribute : output) {
    exprs.push_back(AttributeExpr(attribute));
  }
  return MakeProject(plan, std::move(exprs), output);
}

PlanPtr Analyzer::WithoutHidden(const PlanPtr& plan) {
  std::vector<Attribute> output;
  for (const Attribute& attribute : plan->output) {
    if (!attribute.hidden) {
      output.push_back(attribute);
    }
  }
  return output.size() == plan->output.size() ? plan : Restore(plan, output);
}

Result<PlanPtr> Analyzer::Project(const sc::Project& project) {
  PlanPtr input;
  if (project.has_input()) {
    FLEUVE_ASSIGN(input, Relation(project.input()));
  } else {
    auto one = std::make_shared<LogicalPlan>();
    one->kind = PlanKind::kOneRow;
    input = std::move(one);
  }
  FLEUVE_ASSIGN(std::vector<SelectItem> items, SelectItems(project.expressions(), input, true));
  return MakeSelect(std::move(input), std::move(items));
}

Result<std::vector<SelectItem>> Analyzer::SelectItems(
    const google::protobuf::RepeatedPtrField<sc::Expression>& expressions, const PlanPtr& input, bool lateral_aliases) {
  std::vector<SelectItem> items;
  items.reserve(static_cast<std::size_t>(expressions.size()));
  Scope scope = ScopeOf(input);
  if (lateral_aliases) {
    scope.aliases = &items;
  }
  for (const sc::Expression& expression : expressions) {
    FLEUVE_TRY(AppendItem(expression, scope, input, items));
  }
  return items;
}

Result<std::vector<Attribute>> Analyzer::ExpandStar(const std::string& target, const Scope& scope, const PlanPtr& input,
                                                    std::optional<std::int64_t> plan_id,
                                                    std::vector<SelectItem>* struct_items) {
  std::vector<Attribute> columns;
  static const std::vector<Attribute> kNone;
  const std::vector<Attribute>& here = scope.tiers.empty() ? kNone : *scope.tiers.front();
  (void)input;
  if (plan_id) {
    const auto entry = plans_by_id_.find(*plan_id);
    if (entry != plans_by_id_.end()) {
      for (const auto& [plan, depth] : entry->second) {
        for (const Attribute& attribute : plan->output) {
          const bool is_here =
              std::any_of(here.begin(), here.end(), [&](const Attribute& other) { return other.id == attribute.id; });
          if (!attribute.hidden && is_here) {
            columns.push_back(attribute);
          }
        }
      }
    }
    if (columns.empty()) {
      return Error(ErrorKind::kInvalidArgument, "CANNOT_RESOLVE_DATAFRAME_COLUMN",
                   "Cannot resolve dataframe column \"*\".")
          .With("name", "\"*\"");
    }
    return columns;
  }
  std::string_view text = target;
  if (text == "*") {
    text = "";
  } else if (text.ends_with(".*")) {
    text.remove_suffix(2);
  }
  if (text.empty()) {
    for (const Attribute& attribute : here) {
      if (!attribute.hidden) {
        columns.push_back(attribute);
      }
    }
    return columns;
  }
  FLEUVE_ASSIGN(std::vector<std::string> parts, SplitIdentifier(text));
  for (const bool hidden : {true, false}) {
    for (const Attribute& attribute : here) {
      if (attribute.hidden != hidden || IsMetadata(attribute) || attribute.qualifier.size() < parts.size()) {
        continue;
      }
      bool matches = true;
      for (std::size_t i = 0; matches && i < parts.size(); ++i) {
        matches = EqualNames(attribute.qualifier[attribute.qualifier.size() - parts.size() + i], parts[i],
                             config_.case_sensitive);
      }
      if (matches) {
        columns.push_back(attribute);
        columns.back().hidden = false;
      }
    }
  }
  if (!columns.empty()) {
    return columns;
  }
  Result<std::optional<ExprPtr>> record = NameInTiers(parts, scope);
  if (record.ok() && *record && (**record)->type.Is(TypeKind::kStruct) && struct_items != nullptr) {
    for (std::size_t i = 0; i < (**record)->type.fields().size(); ++i) {
      SelectItem item;
      item.expr = MakeGetField(**record, static_cast<int>(i));
      item.name = (**record)->type.fields()[i].name;
      item.is_alias = true;
      struct_items->push_back(std::move(item));
    }
    return columns;
  }
  std::string names;
  for (const Attribute& attribute : here) {
    if (!attribute.hidden) {
      names += (names.empty() ? "" : ", ") + QuoteParts({attribute.name});
    }
  }
  return Error(ErrorKind::kInvalidArgument, "CANNOT_RESOLVE_STAR_EXPAND",
               "Cannot resolve " + QuoteParts(parts) + ".* given input columns " + names +
                   ". Please check that the specified table or struct exists and is accessible in the input columns.")
      .With("targetString", QuoteParts(parts))
      .With("columns", names);
}

Result<void> Analyzer::AppendItem(const sc::Expression& expression, const Scope& scope, const PlanPtr& input,
                                  std::vector<SelectItem>& items) {
  const auto add_columns = [&](const std::vector<Attribute>& columns) {
    for (const Attribute& column : columns) {
      SelectItem item;
      item.expr = AttributeExpr(column);
      item.name = column.name;
      items.push_back(std::move(item));
    }
  };
  switch (expression.expr_type_case()) {
    case sc::Expression::kUnresolvedStar: {
      const auto& star = expression.unresolved_star();
      std::vector<SelectItem> fields;
      FLEUVE_ASSIGN(
          std::vector<Attribute> columns,
          ExpandStar(star.unparsed_target(), scope, input,
                     star.has_plan_id() ? std::optional<std::int64_t>(star.plan_id()) : std::nullopt, &fields));
      add_columns(columns);
      std::move(fields.begin(), fields.end(), std::back_inserter(items));
      return {};
    }
    case sc::Expression::kUnresolvedAttribute: {
      const std::string& name = expression.unresolved_attribute().unparsed_identifier();
      if (!name.ends_with('`') || config_.conf("spark.sql.parser.quotedRegexColumnNames") != "true") {
        break;
      }
      sc::Expression pattern;
      pattern.mutable_unresolved_regex()->set_col_name(name);
      return AppendItem(pattern, scope, input, items);
    }
    case sc::Expression::kUnresolvedRegex: {
      FLEUVE_ASSIGN(std::vector<std::string> parts, SplitIdentifier(expression.unresolved_regex().col_name()));
      std::vector<Attribute> columns;
      try {
        const std::regex pattern(parts.back(), std::regex::ECMAScript | std::regex::icase);
        for (const Attribute& attribute : *scope.tiers.front()) {
          const bool qualified = parts.size() == 1 || (!attribute.qualifier.empty() &&
                                                       EqualNames(attribute.qualifier.back(), parts[parts.size() - 2],
                                                                  config_.case_sensitive));
          if (!attribute.hidden && qualified && std::regex_match(attribute.name, pattern)) {
            columns.push_back(attribute);
          }
        }
      } catch (const std::regex_error&) {
        return Error(ErrorKind::kInvalidArgument, "INVALID_ATTRIBUTE_NAME_SYNTAX",
                     "The name " + expression.unresolved_regex().col_name() + " is no regular expression.");
      }
      add_columns(columns);
      return {};
    }
    case sc::Expression::kExpressionString: {
      FLEUVE_ASSIGN(auto parsed, ParsedExpression(expression.expression_string().expression()));
      std::string text = expression.expression_string().expression();
      std::swap(text, sql_text_);
      Result<void> result = AppendItem(*parsed, scope, input, items);
      std::swap(text, sql_text_);
      return result;
    }
    case sc::Expression::kExtension: {
      const auto extension = fleuve::pb::Unpack<fleuve::pb::ExpressionExtension>(expression.extension());
      if (extension && extension->has_star_except()) {
        const fleuve::pb::StarExcept& star = extension->star_except();
        FLEUVE_ASSIGN(std::vector<Attribute> columns, ExpandStar(star.target(), scope, input, std::nullopt, nullptr));
        std::vector<SelectItem> kept;
        for (const Attribute& column : columns) {
          SelectItem item;
          item.expr = AttributeExpr(column);
          item.name = column.name;
          kept.push_back(std::move(item));
        }
        std::set<std::string> dropped;
        for (const std::string& name : star.names()) {
          FLEUVE_ASSIGN(std::vector<std::string> parts, SplitIdentifier(name));
          if (!dropped.insert(LowerName(name)).second) {
            return Error(ErrorKind::kInvalidArgument, "EXCEPT_OVERLAPPING_COLUMNS",
                         "Columns in an EXCEPT list must be distinct and non-overlapping, but got (" + name + ").");
          }
          FLEUVE_ASSIGN(std::optional<ExprPtr> found, NameInColumns(parts, columns));
          if (!found) {
            return UnresolvedColumn(parts, {&columns});
          }
          if ((*found)->kind == ExprKind::kAttribute) {
            std::erase_if(kept, [&](const SelectItem& item) {
              return item.expr->kind == ExprKind::kAttribute && item.expr->attribute.id == (*found)->attribute.id;
            });
            continue;
          }
          // A nested field: the column is rebuilt without it.
          std::size_t depth = 0;
          ExprPtr base = *found;
          while (base->kind == ExprKind::kGetField) {
            base = base->children.front();
            ++depth;
          }
          for (SelectItem& item : kept) {
            const ExprPtr* root = &item.expr;
            if (item.is_alias || (*root)->kind != ExprKind::kAttribute || (*root)->attribute.id != base->attribute.id) {
              continue;
            }
            sc::Expression_UpdateFields update;
            update.mutable_struct_expression()->mutable_unresolved_attribute()->set_unparsed_identifier(
                QuoteParts({item.name}));
            update.set_field_name(
                QuoteParts(std::vector<std::string>(parts.end() - static_cast<std::ptrdiff_t>(depth), parts.end())));
            Scope only;
            only.tiers.push_back(&columns);
            FLEUVE_ASSIGN(ExprPtr made, UpdateFields(update, only));
            // Spark rebuilds the struct even where it is NULL.
            while (made->kind == ExprKind::kCase) {
              made = made->children.back();
            }
            item.expr = std::move(made);
            item.is_alias = true;
          }
        }
        std::move(kept.begin(), kept.end(), std::back_inserter(items));
        return {};
      }
      break;
    }
    default:
      break;
  }
  const sc::Expression* source = &expression;
  SelectItem item;
  if (expression.has_alias()) {
    const auto& alias = expression.alias();
    source = &alias.expr();
    item.names.assign(alias.name().begin(), alias.name().end());
    item.is_alias = true;
    if (alias.has_metadata() && !alias.metadata().empty()) {
      FLEUVE_ASSIGN(item.metadata, Json::Parse(alias.metadata()));
    }
    if (source->has_expression_string()) {
      FLEUVE_ASSIGN(auto parsed, ParsedExpression(source->expression_string().expression()));
      source = parsed.get();
    }
  }
  const CallView call = CallOf(*source);
  if (call.name != nullptr && FindFunctionKind(*call.name) == FunctionKind::kGenerator) {
    for (const sc::Expression& argument : *call.arguments) {
      const CallView nested = CallOf(argument);
      if (nested.name != nullptr && FindFunctionKind(*nested.name) == FunctionKind::kGenerator) {
        return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_GENERATOR.NESTED_IN_EXPRESSIONS",
                     "The generator is not supported: nested in expressions \"" + *call.name + "\".")
            .With("expression", "\"" + *call.name + "\"");
      }
    }
    FLEUVE_ASSIGN(FunctionCall function,
                  MakeFunctionCall(*call.name, *call.arguments, FunctionOptions(), scope, ContextOf(*source)));
    FLEUVE_ASSIGN(item.generator, BuildGenerator(function));
    items.push_back(std::move(item));
    return {};
  }
  if (item.is_alias && item.names.size() != 1) {
    return Error(ErrorKind::kInvalidArgument, "MULTI_ALIAS_WITHOUT_GENERATOR",
                 "Multi part aliasing (" + std::to_string(item.names.size()) +
                     " names) is not supported with this expression as it is not a generator function.");
  }
  FLEUVE_ASSIGN(item.expr, Expression(*source, scope));
  FLEUVE_ASSIGN(item.expr, WithExistence(item.expr, false));
  item.name = item.is_alias ? item.names.front() : ItemName(*source, item.expr);
  if (!item.is_alias && source->has_alias()) {
    item.is_alias = true;
    item.name = source->alias().name(0);
  }
  items.push_back(std::move(item));
  return {};
}

Result<PlanPtr> Analyzer::AddGenerator(PlanPtr input, std::vector<SelectItem>& items) {
  std::size_t position = items.size();
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].generator) {
      position = i;
      break;
    }
  }
  if (position == items.size()) {
    return input;
  }
  SelectItem generator = std::move(items[position]);
  items[position].generator.reset();
  bool needs_select = false;
  for (const ExprPtr& argument : generator.generator->spec.arguments) {
    needs_select = needs_select || HasAggregate(argument) || HasWindow(argument);
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    needs_select = needs_select || (items[i].expr != nullptr && HasAggregate(items[i].expr));
  }
  if (needs_select) {
    // The arguments and the other items are computed first, then the generator runs over their columns.
    for (const SelectItem& item : items) {
      if (item.generator) {
        return Error::Unsupported("several generators beside aggregate or window functions");
      }
    }
    std::vector<SelectItem> below;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i != position) {
        below.push_back(std::move(items[i]));
      }
    }
    const std::size_t others = below.size();
    for (const ExprPtr& argument : generator.generator->spec.arguments) {
      SelectItem item;
      item.expr = argument;
      item.name = argument->display;
      item.is_alias = true;
      below.push_back(std::move(item));
    }
    FLEUVE_ASSIGN(input, MakeSelect(std::move(input), std::move(below)));
    items.clear();
    for (std::size_t i = 0; i < others; ++i) {
      SelectItem item;
      item.expr = AttributeExpr(input->output[i]);
      item.name = input->output[i].name;
      items.push_back(std::move(item));
    }
    for (std::size_t i = 0; i < generator.generator->spec.arguments.size(); ++i) {
      ExprPtr& argument = generator.generator->spec.arguments[i];
      if (argument->kind != ExprKind::kLiteral) {
        argument = AttributeExpr(input->output[others + i]);
      }
    }
    items.insert(items.begin() + static_cast<std::ptrdiff_t>(position), SelectItem());
  }
  const std::vector<types::StructField>& columns = generator.generator->columns;
  if (!generator.names.empty() && generator.names.size() != columns.size()) {
    return Error(ErrorKind::kInvalidArgument, "UDTF_ALIAS_NUMBER_MISMATCH",
                 "The number of aliases supplied in the AS clause does not match the number of columns output by the "
                 "UDTF. Expected " +
                     std::to_string(columns.size()) + " aliases, but got " + std::to_string(generator.names.size()) +
                     ".")
        .With("aliasesSize", std::to_string(columns.size()))
        .With("aliasesNames", std::to_string(generator.names.size()));
  }
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kGenerate;
  plan->is_streaming = input->is_streaming;
  plan->generator = generator.generator->spec;
  plan->output = input->output;
  std::vector<SelectItem> made;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Attribute attribute;
    attribute.id = NewAttributeId();
    attribute.name = generator.names.empty() ? columns[i].name : generator.names[i];
    attribute.type = columns[i].type;
    attribute.nullable = columns[i].nullable || plan->generator.outer;
    plan->output.push_back(attribute);
    SelectItem item;
    item.expr = AttributeExpr(attribute);
    item.name = attribute.name;
    made.push_back(std::move(item));
  }
  plan->children.push_back(std::move(input));
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(position));
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(position), std::make_move_iterator(made.begin()),
               std::make_move_iterator(made.end()));
  // Further generators multiply the rows.
  return AddGenerator(std::move(plan), items);
}

Result<PlanPtr> Analyzer::ExtractWindows(PlanPtr input, std::vector<ExprPtr>& exprs) {
  while (std::any_of(exprs.begin(), exprs.end(), HasWindow)) {
    std::vector<ExprPtr> windows;
    std::vector<Attribute> attributes;
    // The innermost windows first: one over another is computed from its column.
    const std::function<ExprPtr(const ExprPtr&)> extract = [&](const ExprPtr& expr) -> ExprPtr {
      std::vector<ExprPtr> operands = OperandsOf(*expr);
      const bool inner = std::any_of(operands.begin(), operands.end(), HasWindow);
      if (expr->kind == ExprKind::kWindow && !inner) {
        std::size_t i = 0;
        while (i < windows.size() && !SameExpr(windows[i], expr)) {
          ++i;
        }
        if (i == windows.size()) {
          Attribute attribute;
          attribute.id = NewAttributeId();
          attribute.name = expr->display;
          attribute.type = expr->type;
          attribute.nullable = expr->nullable;
          windows.push_back(expr);
          attributes.push_back(std::move(attribute));
        }
        return WithDisplay(MakeAttribute(attributes[i]), expr->display);
      }
      if (!inner) {
        return expr;
      }
      for (ExprPtr& operand : operands) {
        operand = extract(operand);
      }
      return WithOperands(expr, operands);
    };
    for (ExprPtr& expr : exprs) {
      expr = extract(expr);
    }
    auto plan = std::make_shared<LogicalPlan>();
    plan->kind = PlanKind::kWindow;
    plan->is_streaming = input->is_streaming;
    plan->output = input->output;
    plan->output.insert(plan->output.end(), attributes.begin(), attributes.end());
    plan->exprs = std::move(windows);
    plan->children.push_back(std::move(input));
    input = std::move(plan);
  }
  return input;
}

Result<PlanPtr> Analyzer::MakeSelect(PlanPtr input, std::vector<SelectItem> items) {
  FLEUVE_ASSIGN(input, AddGenerator(std::move(input), items));
  for (const SelectItem& item : items) {
    if (HasAggregate(item.expr)) {
      return MakeAggregate(std::move(input), AggregateParts(), std::move(items));
    }
  }
  std::vector<ExprPtr> exprs;
  std::vector<Attribute> output;
  exprs.reserve(items.size());
  output.reserve(items.size() + 1);
  for (const SelectItem& item : items) {
    output.push_back(OutputAttribute(item));
    exprs.push_back(item.expr);
  }
  for (const Attribute& attribute : input->output) {
    if (!IsMetadata(attribute)) {
      continue;
    }
    const bool known =
        std::any_of(output.begin(), output.end(), [&](const Attribute& other) { return other.id == attribute.id; });
    if (!known) {
      output.push_back(attribute);
      exprs.push_back(AttributeExpr(attribute));
    }
  }
  FLEUVE_ASSIGN(input, ExtractWindows(std::move(input), exprs));
  return MakeProject(std::move(input), std::move(exprs), std::move(output));
}

Result<PlanPtr> Analyzer::WithColumns(const sc::WithColumns& with_columns) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(with_columns.input()));
  const Scope scope = ScopeOf(input);
  std::vector<SelectItem> added;
  for (const sc::Expression_Alias& alias : with_columns.aliases()) {
    sc::Expression expression;
    // The message is lent, not copied.
    expression.unsafe_arena_set_allocated_alias(const_cast<sc::Expression_Alias*>(&alias));
    Result<void> status = AppendItem(expression, scope, input, added);
    (void)expression.unsafe_arena_release_alias();
    FLEUVE_TRY(std::move(status));
  }
  bool plain = true;
  std::set<std::string> names;
  for (const SelectItem& item : added) {
    plain = plain && !item.generator && !HasAggregate(item.expr) && !HasWindow(item.expr);
    const std::string& name = item.generator && !item.names.empty() ? item.names.front() : item.name;
    if (!names.insert(config_.case_sensitive ? name : LowerName(name)).second) {
      return Error(ErrorKind::kInvalidArgument, "COLUMN_ALREADY_EXISTS",
                   "The column " + QuoteParts({name}) +
                       " already exists. Choose another name or rename the existing column.")
          .With("columnName", QuoteParts({name}));
    }
  }
  if (plain) {
    std::vector<Attribute> output = input->output;
    std::vector<ExprPtr> exprs;
    exprs.reserve(output.size() + added.size());
    for (const Attribute& attribute : output) {
      exprs.push_back(AttributeExpr(attribute));
    }
    for (SelectItem& item : added) {
      bool replaced = false;
      for (std::size_t i = 0; i < input->output.size(); ++i) {
        if (!input->output[i].hidden && EqualNames(input->output[i].name, item.name, config_.case_sensitive)) {
          output[i] = OutputAttribute(item);
          exprs[i] = item.expr;
          replaced = true;
        }
      }
      if (!replaced) {
        output.push_back(OutputAttribute(item));
        exprs.push_back(item.expr);
      }
    }
    return MakeProject(std::move(input), std::move(exprs), std::move(output));
  }
  std::vector<SelectItem> items;
  std::vector<bool> used(added.size(), false);
  for (const Attribute& attribute : input->output) {
    if (attribute.hidden) {
      continue;
    }
    SelectItem item;
    item.expr = AttributeExpr(attribute);
    item.name = attribute.name;
    for (std::size_t i = 0; i < added.size(); ++i) {
      const std::string& name = added[i].generator ? added[i].names.front() : added[i].name;
      if (EqualNames(name, attribute.name, config_.case_sensitive)) {
        item = added[i];
        used[i] = true;
      }
    }
    items.push_back(std::move(item));
  }
  for (std::size_t i = 0; i < added.size(); ++i) {
    if (!used[i]) {
      items.push_back(std::move(added[i]));
    }
  }
  return MakeSelect(std::move(input), std::move(items));
}

Result<PlanPtr> Analyzer::WithColumnsRenamed(const sc::WithColumnsRenamed& renamed) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(renamed.input()));
  std::vector<std::pair<std::string, std::string>> renames;
  for (const auto& rename : renamed.renames()) {
    renames.emplace_back(rename.col_name(), rename.new_col_name());
  }
  if (renames.empty()) {
    std::map<std::string, std::string> sorted(renamed.rename_columns_map().begin(), renamed.rename_columns_map().end());
    renames.assign(sorted.begin(), sorted.end());
  }
  std::vector<Attribute> output = input->output;
  std::vector<ExprPtr> exprs;
  for (const Attribute& attribute : output) {
    exprs.push_back(AttributeExpr(attribute));
  }
  bool changed = false;
  for (const auto& [from, to] : renames) {
    for (Attribute& attribute : output) {
      if (!attribute.hidden && EqualNames(attribute.name, from, config_.case_sensitive)) {
        attribute.name = to;
        attribute.id = NewAttributeId();
        attribute.qualifier.clear();
        changed = true;
      }
    }
  }
  if (!changed) {
    return input;
  }
  return MakeProject(std::move(input), std::move(exprs), std::move(output));
}

Result<PlanPtr> Analyzer::Drop(const sc::Drop& drop) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(drop.input()));
  std::set<std::int64_t> dropped;
  for (const std::string& name : drop.column_names()) {
    for (const Attribute& attribute : input->output) {
      if (!attribute.hidden && EqualNames(attribute.name, name, config_.case_sensitive)) {
        dropped.insert(attribute.id.value);
      }
    }
  }
  const Scope scope = ScopeOf(input);
  for (const sc::Expression& column : drop.columns()) {
    Result<ExprPtr> expr = Expression(column, scope);
    if (!expr.ok()) {
      if (IsUnresolvedColumn(expr.error())) {
        continue;
      }
      return std::move(expr).error();
    }
    if ((*expr)->kind == ExprKind::kAttribute) {
      dropped.insert((*expr)->attribute.id.value);
    }
  }
  std::vector<Attribute> output;
  for (const Attribute& attribute : input->output) {
    if (!dropped.contains(attribute.id.value)) {
      output.push_back(attribute);
    }
  }
  return output.size() == input->output.size() ? input : Restore(input, output);
}

Result<PlanPtr> Analyzer::ToDf(const sc::ToDF& to_df) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(to_df.input()));
  std::vector<ExprPtr> exprs;
  std::vector<Attribute> output;
  for (const Attribute& attribute : input->output) {
    exprs.push_back(AttributeExpr(attribute));
    output.push_back(attribute);
    if (attribute.hidden) {
      continue;
    }
    const std::size_t position = static_cast<std::size_t>(
        std::count_if(output.begin(), output.end(), [](const Attribute& a) { return !a.hidden; }));
    if (position > static_cast<std::size_t>(to_df.column_names_size())) {
      return Error(ErrorKind::kInvalidArgument, "ASSIGNMENT_ARITY_MISMATCH",
                   "The number of given names (" + std::to_string(to_df.column_names_size()) +
                       ") does not match the number of columns (" + std::to_string(SchemaOf(*input).fields().size()) +
                       ").");
    }
    const std::string& name = to_df.column_names(static_cast<int>(position - 1));
    if (name != attribute.name) {
      output.back().name = name;
      output.back().id = NewAttributeId();
      output.back().qualifier.clear();
    }
  }
  const std::size_t visible = static_cast<std::size_t>(
      std::count_if(output.begin(), output.end(), [](const Attribute& a) { return !a.hidden; }));
  if (visible != static_cast<std::size_t>(to_df.column_names_size())) {
    return Error(ErrorKind::kInvalidArgument, "ASSIGNMENT_ARITY_MISMATCH",
                 "The number of given names (" + std::to_string(to_df.column_names_size()) +
                     ") does not match the number of columns (" + std::to_string(visible) + ").");
  }
  return MakeProject(std::move(input), std::move(exprs), std::move(output));
}

Result<PlanPtr> Analyzer::LateralView(const fleuve::pb::LateralView& view) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(view.input()));
  const CallView call = CallOf(view.generator());
  if (call.name == nullptr) {
    return Error::Unsupported("LATERAL VIEW over something that is no function");
  }
  if (!FindFunctionKind(*call.name)) {
    const std::string name = QuoteParts({config_.current_database, *call.name});
    return Error(ErrorKind::kNotFound, "ROUTINE_NOT_FOUND",
                 "The routine " + name +
                     " cannot be found. Verify the spelling and correctness of the schema and catalog.")
        .With("routineName", name);
  }
  if (FindFunctionKind(*call.name) != FunctionKind::kGenerator) {
    return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_GENERATOR.NOT_GENERATOR",
                 "The generator is not supported: " + QuoteParts({*call.name}) +
                     " is expected to be a generator. However, its class is a scalar function, which is not a "
                     "generator.")
        .With("functionName", QuoteParts({*call.name}));
  }
  const Scope scope = ScopeOf(input);
  FLEUVE_ASSIGN(FunctionCall function,
                MakeFunctionCall(*call.name, *call.arguments, FunctionOptions(), scope, ContextOf(view.generator())));
  FLEUVE_ASSIGN(GeneratorResult generator, BuildGenerator(function));
  if (view.column_names_size() != 0 && static_cast<std::size_t>(view.column_names_size()) != generator.columns.size()) {
    return Error(ErrorKind::kInvalidArgument, "UDTF_ALIAS_NUMBER_MISMATCH",
                 "The number of aliases supplied in the AS clause does not match the number of columns output by the "
                 "UDTF. Expected " +
                     std::to_string(generator.columns.size()) + " aliases, but got " +
                     std::to_string(view.column_names_size()) + ".");
  }
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kGenerate;
  plan->is_streaming = input->is_streaming;
  plan->generator = generator.spec;
  plan->generator.outer = plan->generator.outer || view.outer();
  plan->output = input->output;
  for (std::size_t i = 0; i < generator.columns.size(); ++i) {
    Attribute attribute;
    attribute.id = NewAttributeId();
    attribute.name = view.column_names_size() == 0 ? generator.columns[i].name : view.column_names(static_cast<int>(i));
    attribute.type = generator.columns[i].type;
    attribute.nullable = generator.columns[i].nullable || plan->generator.outer;
    attribute.qualifier = {view.alias()};
    plan->output.push_back(std::move(attribute));
  }
  plan->children.push_back(std::move(input));
  return PlanPtr(std::move(plan));
}

}  // namespace fleuve::plan
