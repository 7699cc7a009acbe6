#include <algorithm>
#include <map>
#include <set>

#include "base/bytes.h"
#include "columnar/ipc.h"
#include "columnar/numbers.h"
#include "delta/skipping.h"
#include "delta/table_source.h"
#include "engine/engine.h"
#include "plan/analyzer.h"
#include "plan/char_padding.h"
#include "tables/identity_internal.h"
#include "tables/insert_columns_internal.h"
#include "tables/merge_checks_internal.h"
#include "tables/modify_internal.h"
#include "tables/rewrite_internal.h"
#include "tables/schema_internal.h"
#include "tables/write_options_internal.h"

namespace fleuve::tables {

using plan::ExprPtr;
using plan::PlanPtr;
using types::DataType;
using types::StructField;
using types::Value;

namespace {

ExprPtr Flag(bool value) { return plan::MakeLiteral(Value(value), DataType::Boolean()); }

ExprPtr Number(std::int64_t value) { return plan::MakeLiteral(Value(value), DataType::Int()); }

plan::Attribute NewAttribute(std::string name, DataType type) {
  plan::Attribute attribute;
  attribute.id = plan::NewAttributeId();
  attribute.name = std::move(name);
  attribute.type = std::move(type);
  return attribute;
}

PlanPtr Join(plan::JoinType type, const PlanPtr& left, const PlanPtr& right, const ExprPtr& condition) {
  auto node = std::make_shared<plan::LogicalPlan>();
  node->kind = plan::PlanKind::kJoin;
  node->join_type = type;
  node->children = {left, right};
  node->condition = condition;
  node->output = left->output;
  if (type != plan::JoinType::kLeftSemi && type != plan::JoinType::kLeftAnti) {
    for (plan::Attribute attribute : right->output) {
      attribute.nullable = attribute.nullable || type == plan::JoinType::kLeft;
      node->output.push_back(std::move(attribute));
    }
  }
  return node;
}

PlanPtr Metrics(const PlanPtr& child, std::string name, std::vector<ExprPtr> exprs) {
  auto node = std::make_shared<plan::LogicalPlan>();
  node->kind = plan::PlanKind::kMetrics;
  node->children = {child};
  node->output = child->output;
  node->name = std::move(name);
  node->exprs = std::move(exprs);
  return node;
}

/// The child's columns and more behind them.
PlanPtr Extend(const PlanPtr& child, const std::vector<std::pair<plan::Attribute, ExprPtr>>& more) {
  std::vector<ExprPtr> exprs;
  std::vector<plan::Attribute> output = child->output;
  for (const plan::Attribute& attribute : child->output) {
    exprs.push_back(plan::MakeAttribute(attribute));
  }
  for (const auto& [attribute, expr] : more) {
    exprs.push_back(expr);
    plan::Attribute with = attribute;
    with.type = expr->type;
    with.nullable = expr->nullable;
    output.push_back(std::move(with));
  }
  return plan::MakeProject(child, std::move(exprs), std::move(output));
}

std::string ClauseList(const std::vector<MergeClause>& clauses) {
  Json::Array all;
  for (const MergeClause& clause : clauses) {
    Json one(Json::Object{});
    if (clause.condition != nullptr) {
      one.Set("predicate", Json(clause.condition->display));
    }
    one.Set("actionType", Json(AsciiLower(ActionOf(clause))));
    all.push_back(std::move(one));
  }
  return Json(std::move(all)).Dump();
}

/// Whether a column, or a field of a struct below it, has this path.
bool HasPath(const types::Schema& schema, const std::vector<std::string>& path) {
  const DataType* at = &schema;
  for (const std::string& part : path) {
    if (!at->Is(types::TypeKind::kStruct)) {
      return true;  // what lies below arrays and maps has errors of its own
    }
    const auto index = types::FieldIndex(*at, part);
    if (!index) {
      return false;
    }
    at = &at->fields()[*index].type;
  }
  return true;
}

/// The fields of the source that clauses give to the target and that may widen its schema: those whose very path is
/// assigned with all that is in them, structs on the way to an assigned path, and all others where a clause has a star.
std::vector<StructField> AssignedFields(const std::vector<StructField>& fields, const std::vector<std::string>& base,
                                        const std::vector<std::vector<std::string>>& assigned, bool star) {
  std::vector<StructField> out;
  for (const StructField& field : fields) {
    std::vector<std::string> path = base;
    path.push_back(field.name);
    bool exact = false;
    bool above = false;
    for (const std::vector<std::string>& one : assigned) {
      const bool prefix = one.size() >= path.size() &&
                          std::equal(path.begin(), path.end(), one.begin(),
                                     [](const auto& a, const auto& b) { return EqualsIgnoreAsciiCase(a, b); });
      exact = exact || (prefix && one.size() == path.size());
      above = above || prefix;
    }
    if (exact || (star && !field.type.Is(types::TypeKind::kStruct))) {
      out.push_back(field);
    } else if (field.type.Is(types::TypeKind::kStruct) && (above || star)) {
      StructField part = field;
      part.type = DataType::Struct(AssignedFields(field.type.fields(), path, assigned, star));
      out.push_back(std::move(part));
    }
  }
  return out;
}

/// Action codes of a row: 0 stays as it is; others name a clause.
constexpr std::int64_t kMatchedBase = 1;
constexpr std::int64_t kBySourceBase = 1001;

class Merger {
 public:
  Merger(const TableContext& context, const TableRef& table, const MergeSpec& spec)
      : context_(context), table_(table), spec_(spec) {}

  Result<RowsResult> Run() {
    start_ = context_.logs->context().clock->MonotonicNanos();
    FLEUVE_ASSIGN(snapshot_, SnapshotOf(spec_.target));
    log_ = context_.logs->Open(table_.location);
    FLEUVE_TRY(delta::CheckWritable(snapshot_->protocol(), table_.name));
    FLEUVE_TRY(CheckMerge(spec_, *snapshot_));
    DropQualifiers();
    delta::Transaction transaction(log_, snapshot_);
    std::vector<delta::Action> actions;
    FLEUVE_ASSIGN(const bool done, AddAppTransaction(context_, *snapshot_, &actions));
    if (done) {
      return Counts();
    }
    const std::size_t own_actions = actions.size();
    FLEUVE_TRY(ResolveSchema());
    FLEUVE_TRY(ResolveValues());
    FLEUVE_TRY(MaterializeSource());
    FLEUVE_ASSIGN(candidates_, snapshot_->Files(SplitAnd(spec_.condition), spec_.target->output));
    if (!spec_.not_matched_by_source.empty()) {
      candidates_ = snapshot_->AllFiles();
      transaction.ReadWholeTable();
    } else {
      // Whether a row of the source is inserted depends on every row of the target.
      transaction.ReadFiles(candidates_, SplitAnd(spec_.condition), spec_.target->output, spec_.not_matched.empty());
    }
    if (metadata_changed_) {
      FLEUVE_TRY(transaction.UpdateMetadata(metadata_));
      metadata_ = transaction.metadata();
    }
    marks_ = MarksRows(context_, *snapshot_, "merge");
    if (ChangesTarget()) {
      FLEUVE_TRY(FindTouchedFiles());
    }
    FLEUVE_TRY(WriteRows());
    if (!counted_.empty() && inserted_ > 0) {
      metadata_.schema_string = SchemaText(AdvanceIdentities(schema_, counted_, inserted_));
      FLEUVE_TRY(transaction.UpdateMetadata(metadata_));
    }
    for (const delta::AddFile& add : written_.adds) {
      actions.emplace_back(add);
    }
    if (marks_) {
      FLEUVE_ASSIGN(marked_, MarkRows(context_, snapshot_, touched_, touched_rows_, true));
      actions.insert(actions.end(), marked_.actions.begin(), marked_.actions.end());
    } else {
      const std::int64_t now = context_.logs->context().clock->NowMillis();
      for (const delta::AddFile& add : touched_) {
        actions.emplace_back(RemovalOf(add, now, true));
        ++marked_.removed_files;
        marked_.removed_bytes += add.size;
        marked_.vectors_removed += add.deletion_vector ? 1 : 0;
      }
    }
    for (const delta::AddFile& add : changes_.adds) {
      actions.emplace_back(delta::AddCdcFile{add.path, add.partition_values, add.size, std::nullopt});
    }
    if (actions.size() == own_actions && own_actions == 0 && !metadata_changed_) {
      return Counts();
    }
    std::vector<std::string> files = written_.files;
    files.insert(files.end(), changes_.files.begin(), changes_.files.end());
    std::vector<std::string> folders = written_.folders;
    folders.insert(folders.end(), changes_.folders.begin(), changes_.folders.end());
    if (!marked_.vector_file.empty()) {
      files.push_back(marked_.vector_file);
      folders.push_back(table_.location.path);
    }
    FLEUVE_TRY(transaction.Commit(std::move(actions), MakeOperation(), files, folders));
    log_->WaitForBackground();
    return Counts();
  }

 private:
  bool ChangesTarget() const { return !spec_.matched.empty() || !spec_.not_matched_by_source.empty(); }

  RowsResult Counts() const {
    return {DataType::Struct({{"num_affected_rows", DataType::Long(), true, Json()},
                              {"num_updated_rows", DataType::Long(), true, Json()},
                              {"num_deleted_rows", DataType::Long(), true, Json()},
                              {"num_inserted_rows", DataType::Long(), true, Json()}}),
            {{Value(updated() + deleted() + inserted_), Value(updated()), Value(deleted()), Value(inserted_)}}};
  }
  std::int64_t updated() const { return matched_updated_ + by_source_updated_; }
  std::int64_t deleted() const { return matched_deleted_ + by_source_deleted_; }

  bool Evolves() const {
    return spec_.schema_evolution ||
           ConfFlag(context_.config, "spark.databricks.delta.schema.autoMerge.enabled", false);
  }

  /// A column that the target lacks may be one of the source that an evolving merge adds: then the source's qualifier
  /// can stand before its name, never the target's.
  void DropQualifiers() {
    for (auto* clauses : {&spec_.matched, &spec_.not_matched, &spec_.not_matched_by_source}) {
      for (MergeClause& clause : *clauses) {
        for (Assignment& assignment : clause.assignments) {
          if (!DropQualifier(&assignment.path, spec_.target) && Evolves() &&
              types::FieldIndex(snapshot_->schema(), assignment.path[0]) == std::nullopt) {
            DropQualifier(&assignment.path, spec_.source);
          }
        }
      }
    }
  }

  std::vector<const plan::Attribute*> SourceColumns() const {
    std::vector<const plan::Attribute*> out;
    for (const plan::Attribute& attribute : spec_.source->output) {
      if (!attribute.hidden) {
        out.push_back(&attribute);
      }
    }
    return out;
  }

  /// The table's schema after the merge.
  fleuve::Result<void> ResolveSchema() {
    schema_ = snapshot_->schema();
    metadata_ = snapshot_->metadata();
    if (!Evolves()) {
      return {};
    }
    std::vector<std::vector<std::string>> assigned;
    bool star = false;
    for (const auto* clauses : {&spec_.matched, &spec_.not_matched}) {
      for (const MergeClause& clause : *clauses) {
        star = star || clause.star;
        for (const Assignment& assignment : clause.assignments) {
          assigned.push_back(assignment.path);
        }
      }
    }
    std::vector<StructField> columns;
    for (const plan::Attribute* attribute : SourceColumns()) {
      columns.push_back({attribute->name, attribute->type, true, Json(Json::Object{})});
    }
    std::vector<StructField> data = AssignedFields(columns, {}, assigned, star);
    for (const StructField& field : data) {
      if (field.type.Is(types::TypeKind::kVoid) && !types::FieldIndex(schema_, field.name)) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_MERGE_ADD_VOID_COLUMN",
                     "The column " + field.name + " has no type but VOID: MERGE cannot add it.")
            .With("newColumn", types::QuoteIdentifier(field.name));
      }
    }
    MergeRules rules;
    rules.add_columns = true;
    rules.allow_casts = true;
    rules.widen = snapshot_->BooleanProperty("delta.enableTypeWidening", false);
    FLEUVE_ASSIGN(types::Schema merged,
                  MergeSchemas(schema_, DataType::Struct(std::move(data)), rules, context_.config));
    if (!(merged == schema_)) {
      schema_ = RecordTypeChanges(schema_, StoredSchema(merged, false));
      FLEUVE_TRY(CheckColumns(schema_, delta::ColumnMappingMode(metadata_) != "none"));
      metadata_.schema_string = SchemaText(schema_);
      FLEUVE_TRY(AssignColumnMapping(metadata_, schema_, true));
      metadata_changed_ = true;
    }
    for (const auto* clauses : {&spec_.matched, &spec_.not_matched}) {
      for (const MergeClause& clause : *clauses) {
        for (const Assignment& assignment : clause.assignments) {
          if (!HasPath(schema_, assignment.path)) {
            return UnknownColumn(fleuve::Join(assignment.path, "."),
                                 clauses == &spec_.matched ? "UPDATE clause" : "INSERT clause");
          }
        }
      }
    }
    return {};
  }

  /// A column to be set that the table does not have; an evolving merge looked for it in the source too.
  Error UnknownColumn(const std::string& name, const char* where) const {
    return UnresolvedInMerge(name, where, Evolves() ? *spec_.source : *spec_.target);
  }

  fleuve::Result<std::vector<Assignment>> StarAssignments(const char* where) const {
    std::vector<Assignment> out;
    std::map<std::string, const plan::Attribute*> by_name;
    for (const plan::Attribute* attribute : SourceColumns()) {
      by_name.emplace(AsciiLower(attribute->name), attribute);
    }
    for (const StructField& field : schema_.fields()) {
      const auto at = by_name.find(AsciiLower(field.name));
      if (at == by_name.end()) {
        if (Evolves() || FieldText(field, "delta.generationExpression") != nullptr || IsIdentity(field)) {
          continue;
        }
        return UnresolvedInMerge(field.name, where, *spec_.source);
      }
      out.push_back({{field.name}, plan::MakeAttribute(*at->second)});
    }
    return out;
  }

  fleuve::Result<void> ResolveValues() {
    for (std::size_t i = 0; i < schema_.fields().size(); ++i) {
      const StructField& field = schema_.fields()[i];
      if (i < spec_.target->output.size()) {
        FLEUVE_ASSIGN(ExprPtr value,
                      AlignExpr(plan::MakeAttribute(spec_.target->output[i]), field.type, true, context_.config));
        old_values_.push_back(std::move(value));
      } else {
        old_values_.push_back(plan::MakeNull(field.type));
      }
    }
    const auto update = [&](const MergeClause& clause) -> fleuve::Result<std::vector<ExprPtr>> {
      std::vector<Assignment> assignments = clause.assignments;
      if (clause.star) {
        FLEUVE_ASSIGN(assignments, StarAssignments("UPDATE clause"));
      }
      for (const Assignment& assignment : assignments) {
        const auto at = types::FieldIndex(schema_, assignment.path[0]);
        if (at && IsIdentity(schema_.fields()[*at])) {
          return Error(ErrorKind::kInvalidArgument, "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
                       "Identity columns cannot be updated.");
        }
      }
      // Fields that the source's struct lacks stay as they are only where the struct was not named in so many words.
      const MissingFields missing = !Evolves()    ? MissingFields::kRefused
                                    : clause.star ? MissingFields::kKept
                                                  : MissingFields::kNull;
      return ApplyAssignments(schema_, old_values_, assignments, missing, context_.config,
                              [&](const std::string& name) { return UnknownColumn(name, "UPDATE clause"); });
    };
    for (const MergeClause& clause : spec_.matched) {
      std::vector<ExprPtr> values;
      if (clause.kind == MergeClause::Kind::kUpdate) {
        FLEUVE_ASSIGN(values, update(clause));
      }
      matched_values_.push_back(std::move(values));
    }
    for (const MergeClause& clause : spec_.not_matched_by_source) {
      std::vector<ExprPtr> values;
      if (clause.kind == MergeClause::Kind::kUpdate) {
        FLEUVE_ASSIGN(values, update(clause));
      }
      by_source_values_.push_back(std::move(values));
    }
    for (const MergeClause& clause : spec_.not_matched) {
      std::vector<Assignment> assignments = clause.assignments;
      if (clause.star) {
        FLEUVE_ASSIGN(assignments, StarAssignments("INSERT clause"));
      }
      std::vector<NamedColumn> columns;
      std::set<std::string> seen;
      for (const Assignment& assignment : assignments) {
        const auto at = types::FieldIndex(schema_, assignment.path[0]);
        if (!at) {
          return UnknownColumn(fleuve::Join(assignment.path, "."), "INSERT clause");
        }
        if (assignment.path.size() != 1) {
          const std::string name = "`" + fleuve::Join(assignment.path, "`.`") + "`";
          return Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
                       "The nested field " + name + " cannot be set in an INSERT clause of MERGE.")
              .With("operation", "INSERT clause of MERGE operation")
              .With("fieldName", name);
        }
        FLEUVE_TRY(CheckStructs(assignment.value->type, schema_.fields()[*at].type, Evolves()));
        if (!seen.insert(AsciiLower(assignment.path[0])).second) {
          return Error(ErrorKind::kInvalidArgument, "DELTA_DUPLICATE_COLUMNS_ON_INSERT",
                       "The column " + assignment.path[0] + " stands more than once in an INSERT clause.");
        }
        columns.push_back({schema_.fields()[*at].name, assignment.value});
      }
      FLEUVE_ASSIGN(std::vector<std::size_t> counted, GeneratedIdentities(columns, schema_));
      if (!insert_columns_.empty() && counted != counted_) {
        return Error::Unsupported("MERGE whose INSERT clauses give values to an identity column here and none there");
      }
      counted_ = std::move(counted);
      insert_columns_.push_back(std::move(columns));
    }
    return {};
  }

  /// The source is computed once: a second run might see other rows.
  fleuve::Result<void> MaterializeSource() {
    std::vector<ExprPtr> exprs;
    std::vector<plan::Attribute> output;
    for (const plan::Attribute* attribute : SourceColumns()) {
      exprs.push_back(plan::MakeAttribute(*attribute));
      output.push_back(*attribute);
    }
    // Numbers tell later which rows found a partner.
    number_ = NewAttribute("__number", DataType::Long());
    number_.nullable = false;
    exprs.push_back(plan::MakeCall("spark_monotonically_increasing_id", {}, DataType::Long(), false, false, false));
    output.push_back(number_);
    const PlanPtr visible = plan::MakeProject(spec_.source, exprs, output);
    FLEUVE_ASSIGN(const PlanPtr prepared, plan::Prepare(visible, context_.config));
    engine::ExecuteOptions options;
    options.token = context_.token;
    options.observer = context_.observer;
    FLEUVE_ASSIGN(auto reader, context_.engine->Execute(prepared, options));
    auto rows = std::make_shared<plan::RowScan>();
    FLEUVE_ASSIGN(rows->batches, engine::ReadAll(*reader));
    for (const auto& batch : rows->batches) {
      source_rows_ += batch.row_count();
    }
    auto leaf = std::make_shared<plan::LogicalPlan>();
    leaf->kind = plan::PlanKind::kRows;
    leaf->output = output;
    leaf->rows = std::move(rows);
    source_ = leaf;
    return {};
  }

  /// Several source rows may match one row where the only matched clause is a plain DELETE.
  bool OnlyDeletes() const {
    return spec_.matched.size() == 1 && spec_.matched[0].kind == MergeClause::Kind::kDelete &&
           spec_.matched[0].condition == nullptr;
  }

  /// Which files have rows that change, and that no row matches twice.
  fleuve::Result<void> FindTouchedFiles() {
    if (candidates_.empty()) {
      return {};
    }
    FLEUVE_ASSIGN(const FileRows target, ScanFiles(snapshot_, candidates_, spec_.target->output, {.positions = true}));
    const Side side = spec_.not_matched_by_source.empty() ? Side::kMatched
                      : spec_.matched.empty()             ? Side::kAlone
                                                          : Side::kBoth;
    plan::Attribute action;
    plan::Attribute matched;
    PlanPtr rows = Pairs(target.plan, side, &matched, &action);
    if (side != Side::kMatched) {
      // Of the rows that stand alone only those that change are of interest.
      const ExprPtr changes = Not(Is(action, 0));
      rows = plan::MakeFilter(rows, side == Side::kAlone
                                        ? changes
                                        : plan::MakeCall("or", {IsTrue(plan::MakeAttribute(matched)), changes},
                                                         DataType::Boolean(), false, changes->can_fail));
    }
    std::vector<plan::Attribute> wanted{target.file, target.row, action};
    // Every pair is seen here unless joins leave out the source's columns.
    knows_matched_ = !spec_.matched.empty() && !OnlyDeletes();
    if (knows_matched_ && !spec_.not_matched.empty()) {
      wanted.push_back(number_);
    }
    std::vector<ExprPtr> columns;
    for (const plan::Attribute& attribute : wanted) {
      columns.push_back(plan::MakeAttribute(attribute));
    }
    FLEUVE_ASSIGN(FoundRows found,
                  CollectRows(context_, plan::MakeProject(rows, std::move(columns), wanted), candidates_.size()));
    matched_numbers_.assign(found.numbers.begin(), found.numbers.end());
    if (!spec_.matched.empty() && !OnlyDeletes()) {
      for (const RowNumbers& numbers : found.rows) {
        if (std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end()) {
          return Error(
                     ErrorKind::kInvalidArgument, "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
                     "Cannot perform MERGE: several source rows match one row of the target table, and what becomes of "
                     "it would be arbitrary.")
              .With("usageReference", "");
        }
      }
    }
    std::int64_t changed = 0;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      RowNumbers& numbers = found.changed[i];
      if (numbers.empty()) {
        continue;
      }
      numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
      changed += static_cast<std::int64_t>(numbers.size());
      marks_ = marks_ && delta::NumRecords(candidates_[i]) >= 0;
      touched_.push_back(candidates_[i]);
      touched_rows_.push_back(std::move(numbers));
    }
    const auto count = [&](bool of_matched, MergeClause::Kind kind) {
      std::int64_t sum = 0;
      for (const std::int64_t code : Codes(of_matched, kind)) {
        const auto at = found.codes.find(static_cast<std::int32_t>(code));
        sum += at == found.codes.end() ? 0 : at->second;
      }
      return sum;
    };
    by_source_updated_ = count(false, MergeClause::Kind::kUpdate);
    by_source_deleted_ = count(false, MergeClause::Kind::kDelete);
    matched_updated_ = count(true, MergeClause::Kind::kUpdate);
    matched_deleted_ = changed - by_source_updated_ - by_source_deleted_ - matched_updated_;
    return {};
  }

  /// Which rows of the target a join gives.
  enum class Side { kMatched, kAlone, kBoth };

  /// Rows of `target` with `__matched` and `__action` behind them.
  PlanPtr Pairs(const PlanPtr& target, Side side, plan::Attribute* matched_out, plan::Attribute* action) {
    const plan::Attribute there = NewAttribute("__matched", DataType::Boolean());
    *matched_out = there;
    PlanPtr joined;
    if (side == Side::kAlone) {
      joined = Extend(Join(plan::JoinType::kLeftAnti, target, source_, spec_.condition), {{there, Flag(false)}});
    } else if (side == Side::kBoth && OnlyDeletes()) {
      // Semi and anti join keep rows single that several source rows match.
      const auto half = [&](plan::JoinType type, bool is_matched) {
        return Extend(Join(type, target, source_, spec_.condition),
                      {{NewAttribute("m", DataType::Boolean()), Flag(is_matched)}});
      };
      auto both = std::make_shared<plan::LogicalPlan>();
      both->kind = plan::PlanKind::kUnion;
      both->children = {half(plan::JoinType::kLeftSemi, true), half(plan::JoinType::kLeftAnti, false)};
      // The union's columns stand for the target's: clause expressions see them under the same ids.
      both->output = target->output;
      both->output.push_back(there);
      joined = both;
    } else if (OnlyDeletes()) {
      joined = Extend(Join(plan::JoinType::kLeftSemi, target, source_, spec_.condition), {{there, Flag(true)}});
    } else {
      const PlanPtr marked = Extend(source_, {{there, Flag(true)}});
      joined = Join(side == Side::kMatched ? plan::JoinType::kInner : plan::JoinType::kLeft, target, marked,
                    spec_.condition);
    }
    const ExprPtr matched = IsTrue(plan::MakeAttribute(there));
    std::vector<ExprPtr> cases;
    const auto add = [&](const std::vector<MergeClause>& clauses, bool of_matched, std::int64_t base) {
      for (std::size_t i = 0; i < clauses.size(); ++i) {
        ExprPtr when = of_matched ? matched : Not(matched);
        if (clauses[i].condition != nullptr) {
          when = plan::MakeAnd(when, IsTrue(clauses[i].condition));
        }
        cases.push_back(std::move(when));
        cases.push_back(Number(base + static_cast<std::int64_t>(i)));
      }
    };
    if (side != Side::kAlone) {
      add(spec_.matched, true, kMatchedBase);
    }
    if (side != Side::kMatched) {
      add(spec_.not_matched_by_source, false, kBySourceBase);
    }
    cases.push_back(Number(0));
    *action = NewAttribute("__action", DataType::Int());
    return Extend(joined, {{*action, plan::MakeCase(std::move(cases), true, DataType::Int())}});
  }

  /// Rows of the touched files with their action.
  struct Acted {
    PlanPtr plan;
    plan::Attribute action;
    std::vector<plan::Attribute> row_ids;
  };
  fleuve::Result<Acted> ActionRows(Side side, bool row_ids) {
    FLEUVE_ASSIGN(const FileRows target, ScanFiles(snapshot_, touched_, spec_.target->output, {.row_ids = row_ids}));
    Acted out;
    plan::Attribute matched;
    out.plan = Pairs(target.plan, side, &matched, &out.action);
    out.row_ids = target.row_ids;
    return out;
  }

  ExprPtr Is(const plan::Attribute& action, std::int64_t code) const {
    return plan::MakeCall("eq", {plan::MakeAttribute(action), Number(code)}, DataType::Boolean(), false);
  }

  /// The codes of all clauses of one kind.
  std::vector<std::int64_t> Codes(bool matched, MergeClause::Kind kind) const {
    std::vector<std::int64_t> codes;
    const auto& clauses = matched ? spec_.matched : spec_.not_matched_by_source;
    for (std::size_t i = 0; i < clauses.size(); ++i) {
      if (clauses[i].kind == kind) {
        codes.push_back((matched ? kMatchedBase : kBySourceBase) + static_cast<std::int64_t>(i));
      }
    }
    return codes;
  }

  ExprPtr IsOneOf(const plan::Attribute& action, const std::vector<std::int64_t>& codes) const {
    ExprPtr any = Flag(false);
    for (const std::int64_t code : codes) {
      any = plan::MakeCall("or", {any, Is(action, code)}, DataType::Boolean(), false);
    }
    return any;
  }

  /// Column values of changed rows by their action.
  /// \param side  which rows there are: values of other clauses may name columns that are not in sight.
  std::vector<ExprPtr> NewValues(const plan::Attribute& action, Side side) const {
    std::vector<ExprPtr> values;
    for (std::size_t c = 0; c < schema_.fields().size(); ++c) {
      std::vector<ExprPtr> cases;
      const auto add = [&](const std::vector<std::vector<ExprPtr>>& clauses, std::int64_t base) {
        for (std::size_t i = 0; i < clauses.size(); ++i) {
          if (!clauses[i].empty() && clauses[i][c] != old_values_[c]) {
            cases.push_back(Is(action, base + static_cast<std::int64_t>(i)));
            cases.push_back(clauses[i][c]);
          }
        }
      };
      if (side != Side::kAlone) {
        add(matched_values_, kMatchedBase);
      }
      if (side != Side::kMatched) {
        add(by_source_values_, kBySourceBase);
      }
      if (cases.empty()) {
        values.push_back(old_values_[c]);
        continue;
      }
      cases.push_back(old_values_[c]);
      values.push_back(plan::MakeCase(std::move(cases), true, schema_.fields()[c].type));
    }
    return values;
  }

  std::vector<std::string> AssignedColumns() const {
    std::vector<std::string> names;
    for (const auto* clauses : {&spec_.matched, &spec_.not_matched_by_source}) {
      for (const MergeClause& clause : *clauses) {
        for (const Assignment& assignment : clause.assignments) {
          names.push_back(assignment.path[0]);
        }
        if (clause.star) {
          for (const plan::Attribute* attribute : SourceColumns()) {
            names.push_back(attribute->name);
          }
        }
      }
    }
    return names;
  }

  /// Rows to insert, as the table's columns.
  fleuve::Result<PlanPtr> InsertRows(plan::Attribute* action_out) {
    PlanPtr alone = source_;
    if (knows_matched_) {
      auto matched = std::make_shared<plan::LogicalPlan>();
      matched->kind = plan::PlanKind::kRows;
      const plan::Attribute number = NewAttribute("__matched_number", DataType::Long());
      matched->output = {number};
      auto rows = std::make_shared<plan::RowScan>();
      rows->batches = {columnar::BatchOfNumbers(number.name, matched_numbers_)};
      matched->rows = std::move(rows);
      if (!matched_numbers_.empty()) {
        alone = Join(plan::JoinType::kLeftAnti, source_, matched,
                     plan::MakeCall("eq", {plan::MakeAttribute(number_), plan::MakeAttribute(number)},
                                    DataType::Boolean(), false));
      }
    } else if (!candidates_.empty()) {
      FLEUVE_ASSIGN(const FileRows target, ScanFiles(snapshot_, candidates_, spec_.target->output));
      alone = Join(plan::JoinType::kLeftAnti, source_, target.plan, spec_.condition);
    }
    std::vector<ExprPtr> cases;
    for (std::size_t i = 0; i < spec_.not_matched.size(); ++i) {
      const MergeClause& clause = spec_.not_matched[i];
      cases.push_back(clause.condition == nullptr ? Flag(true) : IsTrue(clause.condition));
      cases.push_back(Number(static_cast<std::int64_t>(i) + 1));
    }
    cases.push_back(Number(0));
    const plan::Attribute action = NewAttribute("__insert", DataType::Int());
    *action_out = action;
    const PlanPtr coded = Extend(alone, {{action, plan::MakeCase(std::move(cases), true, DataType::Int())}});
    PlanPtr all;
    for (std::size_t i = 0; i < insert_columns_.size(); ++i) {
      const PlanPtr mine = plan::MakeFilter(coded, Is(action, static_cast<std::int64_t>(i) + 1));
      FLEUVE_ASSIGN(const PlanPtr rows, FillColumns(mine, insert_columns_[i], schema_, context_.config, false));
      if (all == nullptr) {
        all = rows;
        continue;
      }
      auto both = std::make_shared<plan::LogicalPlan>();
      both->kind = plan::PlanKind::kUnion;
      both->children = {all, rows};
      both->output = plan::AttributesOf(schema_);
      all = both;
    }
    return FillIdentities(all, schema_, counted_);
  }

  std::vector<std::int64_t> Codes(MergeClause::Kind kind) const {
    std::vector<std::int64_t> codes = Codes(true, kind);
    const std::vector<std::int64_t> more = Codes(false, kind);
    codes.insert(codes.end(), more.begin(), more.end());
    return codes;
  }

  /// Rows with their new values, as they are written: the table's columns, then their ids where it tracks rows.
  fleuve::Result<PlanPtr> NewRows(const Acted& rows, Side side, const PlanPtr& kept) {
    std::vector<ExprPtr> values = NewValues(rows.action, side);
    types::Schema with_ids = schema_;
    if (!rows.row_ids.empty()) {
      const ExprPtr version = plan::MakeCase({IsOneOf(rows.action, Codes(MergeClause::Kind::kUpdate)),
                                              plan::MakeNull(DataType::Long()), plan::MakeAttribute(rows.row_ids[1])},
                                             true, DataType::Long());
      AppendRowIds(metadata_, {plan::MakeAttribute(rows.row_ids[0]), version}, &values, &with_ids);
    }
    return RecomputeGenerated(ProjectTo(kept, std::move(values), with_ids), schema_, AssignedColumns(),
                              context_.config);
  }

  fleuve::Result<void> WriteRows() {
    std::vector<PlanPtr> parts;
    if (!touched_.empty() && marks_) {
      for (const bool of_matched : {true, false}) {
        const std::vector<std::int64_t> codes = Codes(of_matched, MergeClause::Kind::kUpdate);
        if (codes.empty()) {
          continue;
        }
        const Side side = of_matched ? Side::kMatched : Side::kAlone;
        FLEUVE_ASSIGN(const Acted rows, ActionRows(side, true));
        FLEUVE_ASSIGN(PlanPtr part, NewRows(rows, side, plan::MakeFilter(rows.plan, IsOneOf(rows.action, codes))));
        parts.push_back(std::move(part));
      }
    } else if (!touched_.empty()) {
      FLEUVE_ASSIGN(const Acted rows, ActionRows(Side::kBoth, true));
      FLEUVE_ASSIGN(ExprPtr count, CountIf(Is(rows.action, 0), context_.config));
      const PlanPtr counted = Metrics(rows.plan, "fleuve.merge.target", {std::move(count)});
      const std::vector<std::int64_t> gone = Codes(MergeClause::Kind::kDelete);
      const PlanPtr kept = gone.empty() ? counted : plan::MakeFilter(counted, Not(IsOneOf(rows.action, gone)));
      FLEUVE_ASSIGN(PlanPtr part, NewRows(rows, Side::kBoth, kept));
      parts.push_back(std::move(part));
    }
    if (!spec_.not_matched.empty()) {
      plan::Attribute action;
      FLEUVE_ASSIGN(const PlanPtr rows, InsertRows(&action));
      FLEUVE_ASSIGN(ExprPtr count, CountIf(Flag(true), context_.config));
      PlanPtr part = Metrics(rows, "fleuve.merge.inserts", {std::move(count)});
      if (!parts.empty() && parts[0]->output.size() > part->output.size()) {
        part = Extend(part, {{NewAttribute("__row_id", DataType::Long()), plan::MakeNull(DataType::Long())},
                             {NewAttribute("__row_version", DataType::Long()), plan::MakeNull(DataType::Long())}});
      }
      parts.push_back(std::move(part));
    }
    if (parts.empty()) {
      return KeepsChanges(*snapshot_) ? WriteChanges() : fleuve::Result<void>();
    }
    const PlanPtr result = UnionOf(std::move(parts));
    TableContext own = context_;
    own.observer = std::make_shared<engine::RunObserver>();
    FLEUVE_ASSIGN(const auto constraints, ConstraintsOf(metadata_, schema_, result, context_.config));
    auto run = WriteDataFiles(own, table_.location, metadata_, schema_, result, constraints, {});
    if (!run.ok()) {
      return WriteError(std::move(run).error());
    }
    written_ = *std::move(run);
    for (const engine::ObservedMetrics& metrics : own.observer->metrics()) {
      const auto at = [&](std::size_t i) { return metrics.row[i].is_null() ? 0 : metrics.row[i].integer(); };
      if (metrics.name == "fleuve.merge.target") {
        copied_ = at(0);
      } else if (metrics.name == "fleuve.merge.inserts") {
        inserted_ = at(0);
      }
    }
    return KeepsChanges(*snapshot_) ? WriteChanges() : fleuve::Result<void>();
  }

  fleuve::Result<void> WriteChanges() {
    std::vector<StructField> fields = schema_.fields();
    fields.push_back({"_change_type", DataType::String(), true, Json()});
    const types::Schema change_schema = DataType::Struct(fields);
    std::vector<PlanPtr> parts;
    const auto add = [&](const PlanPtr& from, std::vector<ExprPtr> values, const char* type) {
      values.push_back(plan::MakeLiteral(Value(type), DataType::String()));
      parts.push_back(ProjectTo(from, std::move(values), change_schema));
    };
    const auto columns_of = [](const PlanPtr& plan) {
      std::vector<ExprPtr> out;
      for (const plan::Attribute& attribute : plan->output) {
        out.push_back(plan::MakeAttribute(attribute));
      }
      return out;
    };
    if (updated() + deleted() > 0) {
      FLEUVE_ASSIGN(const Acted rows, ActionRows(Side::kBoth, false));
      const auto filtered = [&](MergeClause::Kind kind) {
        return plan::MakeFilter(rows.plan, IsOneOf(rows.action, Codes(kind)));
      };
      if (updated() > 0) {
        const PlanPtr changed = filtered(MergeClause::Kind::kUpdate);
        add(changed, old_values_, "update_preimage");
        FLEUVE_ASSIGN(const PlanPtr after,
                      RecomputeGenerated(ProjectTo(changed, NewValues(rows.action, Side::kBoth), schema_), schema_,
                                         AssignedColumns(), context_.config));
        add(after, columns_of(after), "update_postimage");
      }
      if (deleted() > 0) {
        add(filtered(MergeClause::Kind::kDelete), old_values_, "delete");
      }
    }
    if (inserted_ > 0 && !parts.empty()) {
      if (!counted_.empty()) {
        return Error::Unsupported("MERGE that both changes rows and counts identity columns, with a change data feed");
      }
      plan::Attribute action;
      FLEUVE_ASSIGN(const PlanPtr rows, InsertRows(&action));
      add(rows, columns_of(rows), "insert");
    }
    if (parts.empty()) {
      return {};  // only new files: the feed reads them as inserts
    }
    PlanPtr all = parts[0];
    if (parts.size() > 1) {
      auto node = std::make_shared<plan::LogicalPlan>();
      node->kind = plan::PlanKind::kUnion;
      node->children = parts;
      node->output = plan::AttributesOf(change_schema);
      all = node;
    }
    TableContext own = context_;
    own.observer = nullptr;
    DataFileOptions options;
    options.subfolder = "_change_data";
    options.statistics = false;
    FLEUVE_ASSIGN(changes_, WriteDataFiles(own, table_.location, metadata_, schema_, all, {}, options));
    return {};
  }

  delta::Operation MakeOperation() const {
    delta::Operation operation = NamedOperation(context_, "MERGE");
    Json predicates(Json::Array{Json(spec_.condition->display)});
    Json parameters(Json::Object{});
    parameters.Set("predicate", Json(predicates.Dump()));
    parameters.Set("matchedPredicates", Json(ClauseList(spec_.matched)));
    parameters.Set("notMatchedPredicates", Json(ClauseList(spec_.not_matched)));
    parameters.Set("notMatchedBySourcePredicates", Json(ClauseList(spec_.not_matched_by_source)));
    operation.parameters = std::move(parameters);
    operation.tags = RowTrackingTags(*snapshot_);
    const auto number = [](std::int64_t n) { return std::to_string(n); };
    const std::string elapsed = Millis(start_, context_.logs->context().clock->MonotonicNanos());
    operation.metrics = {{"numTargetRowsCopied", number(copied_)},
                         {"numTargetRowsDeleted", number(deleted())},
                         {"numTargetBytesRemoved", number(marked_.removed_bytes)},
                         {"numTargetDeletionVectorsAdded", number(marked_.vectors_added)},
                         {"numTargetRowsMatchedUpdated", number(matched_updated_)},
                         {"numTargetRowsMatchedDeleted", number(matched_deleted_)},
                         {"numTargetRowsUpdated", number(updated())},
                         {"numTargetChangeFilesAdded", number(static_cast<std::int64_t>(changes_.adds.size()))},
                         {"numTargetRowsNotMatchedBySourceDeleted", number(by_source_deleted_)},
                         {"rewriteTimeMs", elapsed},
                         {"numTargetFilesAdded", number(static_cast<std::int64_t>(written_.adds.size()))},
                         {"numTargetBytesAdded", number(written_.bytes)},
                         {"executionTimeMs", elapsed},
                         {"materializeSourceTimeMs", "0"},
                         {"numTargetRowsInserted", number(inserted_)},
                         {"numTargetDeletionVectorsUpdated", number(marked_.vectors_updated)},
                         {"scanTimeMs", "0"},
                         {"numOutputRows", number(copied_ + updated() + inserted_)},
                         {"numTargetDeletionVectorsRemoved", number(marked_.vectors_removed)},
                         {"numTargetRowsNotMatchedBySourceUpdated", number(by_source_updated_)},
                         {"numSourceRows", number(source_rows_)},
                         {"numTargetFilesRemoved", number(marked_.removed_files)}};
    return operation;
  }

  const TableContext& context_;
  const TableRef& table_;
  MergeSpec spec_;
  std::int64_t start_ = 0;
  delta::DeltaLogPtr log_;
  delta::SnapshotPtr snapshot_;
  delta::Metadata metadata_;
  types::Schema schema_;
  bool metadata_changed_ = false;
  std::vector<ExprPtr> old_values_;
  std::vector<std::vector<ExprPtr>> matched_values_;
  std::vector<std::vector<ExprPtr>> by_source_values_;
  std::vector<std::vector<NamedColumn>> insert_columns_;
  /// Identity columns that inserts leave to be counted.
  std::vector<std::size_t> counted_;
  PlanPtr source_;
  /// The number of a source row, behind its columns.
  plan::Attribute number_;
  /// True: `matched_numbers_` are the source rows that match some row of the target.
  bool knows_matched_ = false;
  std::vector<std::int64_t> matched_numbers_;
  std::int64_t source_rows_ = 0;
  std::vector<delta::AddFile> candidates_;
  std::vector<delta::AddFile> touched_;
  std::vector<RowNumbers> touched_rows_;
  /// Changed rows are taken out by deletion vectors; else their files are written anew.
  bool marks_ = false;
  MarkedRows marked_;
  DataFiles written_;
  DataFiles changes_;
  std::int64_t matched_updated_ = 0;
  std::int64_t matched_deleted_ = 0;
  std::int64_t by_source_updated_ = 0;
  std::int64_t by_source_deleted_ = 0;
  std::int64_t copied_ = 0;
  std::int64_t inserted_ = 0;
};

}  // namespace

Result<RowsResult> MergeInto(const TableContext& context, const TableRef& table, const MergeSpec& spec) {
  MergeSpec padded = spec;
  FLEUVE_ASSIGN(padded.condition, plan::PadCharAttributes(spec.condition, context.config));
  for (auto* clauses : {&padded.matched, &padded.not_matched, &padded.not_matched_by_source}) {
    for (MergeClause& clause : *clauses) {
      FLEUVE_ASSIGN(clause.condition, plan::PadCharAttributes(clause.condition, context.config));
      for (Assignment& assignment : clause.assignments) {
        FLEUVE_ASSIGN(assignment.value, plan::PadCharAttributes(assignment.value, context.config));
      }
    }
  }
  Merger merger(context, table, padded);
  return merger.Run();
}

}  // namespace fleuve::tables
