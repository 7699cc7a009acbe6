#pragma once

/// \file
/// The recursive descent parser behind "sql/parser.h". One object parses one text.

#include <google/protobuf/arena.h>

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "fleuve/plan.pb.h"
#include "spark/connect/expressions.pb.h"
#include "spark/connect/relations.pb.h"
#include "sql/lexer_internal.h"
#include "sql/parser.h"
#include "types/data_type.h"

namespace fleuve::sql {

namespace sc = spark::connect;

/// `a`, `` `a b` ``: a part of a name as UnresolvedAttribute and friends take it.
std::string QuotePart(std::string_view part);
std::string QuoteParts(const std::vector<std::string>& parts);
/// Upper case of ASCII letters.
std::string Upper(std::string_view text);
std::string Lower(std::string_view text);

/// Parses over a token list. Every message is made on the arena, so that a deep tree is freed flat.
/// Every Parse... leaves the cursor behind what it read, or gives an error.
class Parser {
 public:
  using Expr = sc::Expression*;
  using Rel = sc::Relation*;

  Parser(std::string_view text, const ParserOptions& options, google::protobuf::Arena* arena);

  /// Makes the tokens; must be called first.
  Result<void> Tokenize();

  // What one statement is. Exactly one is not null.
  struct AnyStatement {
    Rel query = nullptr;
    pb::Command* command = nullptr;
    std::string text;
  };
  Result<AnyStatement> ParseAnyStatement();
  Result<Rel> ParseQuery();
  Result<Expr> ParseExpression();
  Result<Expr> ParseNamedExpression();
  Result<types::DataType> ParseType();
  Result<types::DataType> ParseColumnListType();
  Result<std::vector<std::string>> ParseNameParts();

  bool AtEnd() const { return Current().kind == TokenKind::kEnd; }
  bool AcceptSymbol(std::string_view symbol);
  Result<void> ExpectEnd();
  std::string_view text() const { return text_; }
  /// Puts the whole text into the origin, so that errors can show a fragment of it.
  void AttachText(Rel relation);
  void AttachText(Expr expression);

 private:
  // ---- tokens
  const Token& Current() const { return tokens_[at_]; }
  const Token& Ahead(std::size_t n) const { return tokens_[at_ + n < tokens_.size() ? at_ + n : tokens_.size() - 1]; }
  const Token& Previous() const { return tokens_[at_ == 0 ? 0 : at_ - 1]; }
  void Advance() {
    if (at_ + 1 < tokens_.size()) {
      ++at_;
    }
  }
  bool IsWord(std::string_view upper, std::size_t ahead = 0) const;
  bool IsAnyWord(std::initializer_list<std::string_view> words, std::size_t ahead = 0) const;
  bool IsSymbol(std::string_view symbol, std::size_t ahead = 0) const;
  /// True where the token is `;` or the end of the text.
  bool EndsStatement(std::size_t ahead) const { return Ahead(ahead).kind == TokenKind::kEnd || IsSymbol(";", ahead); }
  /// The words one after the other.
  bool AreWords(std::initializer_list<std::string_view> words) const;
  bool AcceptWord(std::string_view upper);
  bool AcceptWords(std::initializer_list<std::string_view> words);
  Result<void> ExpectWord(std::string_view upper);
  Result<void> ExpectWords(std::initializer_list<std::string_view> words);
  Result<void> ExpectSymbol(std::string_view symbol);
  /// One closing `>`, also out of `>>` and `>>>`.
  Result<void> ExpectTypeClose();
  bool IsIdentifier(std::size_t ahead = 0) const;
  bool IsStrictIdentifier(std::size_t ahead = 0) const;
  Result<std::string> ParseIdentifier();
  Result<std::string> ParseString();
  Result<std::int64_t> ParseIntegerToken();

  // ---- errors and positions
  Error SyntaxError() const;
  Error SyntaxErrorAt(std::size_t token, std::string hint = "") const;
  /// `condition` about the text from token `first` to the token before the cursor.
  Error ErrorFrom(std::size_t first, std::string condition, std::string message) const;
  Error Refused(std::string_view what) const;
  std::string TextFrom(std::size_t first_token) const;
  std::string TextBetween(std::size_t first_token, std::size_t last_token) const;
  void SetOrigin(sc::Origin* origin, std::size_t first_token) const;
  Expr Spanned(Expr expression, std::size_t first_token) const;
  Rel SpannedRel(Rel relation, std::size_t first_token) const;
  void FillSpan(pb::SourceSpan* span, std::size_t first_token) const;

  // ---- making messages
  template <typename T>
  T* New() const {
    return google::protobuf::Arena::CreateMessage<T>(arena_);
  }
  Expr Attribute(const std::vector<std::string>& parts) const;
  Expr Call(std::string name, std::initializer_list<Expr> arguments) const;
  Expr CallOf(std::string name, const std::vector<Expr>& arguments) const;
  Expr StringLiteral(std::string value) const;
  Expr IntLiteral(std::int32_t value) const;
  Expr BoolLiteral(bool value) const;
  Expr NullLiteral() const;
  Expr Extended(const pb::ExpressionExtension& extension) const;
  Rel ExtendedRel(const pb::RelationExtension& extension) const;
  Expr Negate(Expr expression, bool negate) const;
  Expr Copy(Expr expression) const;
  pb::Command* NewCommand() const { return New<pb::Command>(); }

  // ---- expressions (expression_parser.cc)
  Result<Expr> ParseBoolean();
  Result<Expr> ParseAnd();
  Result<Expr> ParseNot();
  Result<Expr> ParsePredicated();
  Result<Expr> ParsePredicate(Expr value, std::size_t first, bool negated);
  Result<Expr> ParseQuantifiedLike(Expr value, const std::string& function, bool negated);
  Result<Expr> ParseValue(int min_precedence);
  Result<Expr> ParseUnary();
  Result<Expr> ParsePostfix();
  Result<Expr> ParsePrimary();
  Result<Expr> ParseParenthesized();
  Result<Expr> ParseWordExpression();
  Result<Expr> ParseCase();
  Result<Expr> ParseCast(sc::Expression::Cast::EvalMode mode);
  Result<Expr> ParseTrim();
  Result<Expr> ParseSubstring();
  Result<Expr> ParsePosition();
  Result<Expr> ParseOverlay();
  Result<Expr> ParseExtract();
  Result<Expr> ParseStructCall();
  Result<Expr> ParseTimestampUnitCall(const std::string& function);
  Result<Expr> ParseIdentifierClause();
  Result<Expr> ParseFunctionCall(const std::vector<std::string>& name, std::size_t first);
  Result<Expr> ParseFunctionTail(sc::Expression::UnresolvedFunction* function, Expr call, std::size_t first);
  Result<Expr> ParseFunctionArgument();
  Result<Expr> ParseLambda();
  bool IsLambdaAhead() const;
  Result<Expr> ParseStar(const std::vector<std::string>& target, std::size_t first);
  Result<Expr> ParseWindowOver(Expr function, std::size_t first);
  Result<void> ParseWindowSpec(sc::Expression::Window* window);
  Result<void> ParseFrameBound(sc::Expression::Window::WindowFrame::FrameBoundary* bound);
  Result<sc::Expression::SortOrder*> ParseSortItem();
  Result<Expr> ParseParameter();
  Result<Expr> BalancedChain(const std::string& function, const std::vector<Expr>& terms, std::size_t first);
  Result<Expr> MakeSubquery(pb::Subquery::Kind kind, Rel relation, const std::vector<Expr>& values);
  bool IsExpressionStart() const;
  /// A query starts here, perhaps behind parentheses.
  bool IsQueryAhead(std::size_t ahead) const;
  bool IsQueryWord(std::size_t ahead) const;
  /// IDENTIFIER(constant): its text, or nullopt where it cannot be known here.
  static std::optional<std::string> ConstantText(const sc::Expression& expression);

  // ---- literals (literal_parser.cc)
  Result<Expr> ParseNumber(bool negative);
  Result<Expr> ParseTypedLiteral(const std::string& type, std::size_t first);
  Result<Expr> ParseIntervalLiteral(std::size_t first);
  bool IsIntervalLiteralAhead() const;
  Result<Expr> IntervalFromText(const std::string& text, std::size_t first);

  // ---- queries (query_parser.cc)
  /// Windows by upper-case name.
  using WindowScope = std::map<std::string, const sc::Expression::Window*>;
  Result<Rel> ParseQueryTerm(int min_precedence);
  Result<Rel> ParseQueryPrimary();
  /// \param from  the rows of a FROM that stood before SELECT, or null. \param first  where the query begins.
  Result<Rel> ParseSelect(Rel from, std::size_t first);
  Result<Rel> ParseFromFirst();
  Result<Rel> ParseSelectTail(Rel input, bool from_seen, std::size_t first);
  Result<Rel> ParseFromClause();
  Result<Rel> ParseRelation();
  Result<Rel> ParseRelationPrimary();
  Result<Rel> ParseJoins(Rel left);
  Result<Rel> ParseTableReference();
  Result<Rel> ParseTableFunction(const std::vector<std::string>& name, std::size_t first);
  Result<Rel> ParseTimeTravel(Rel input);
  Result<Rel> ParseSample(Rel input);
  /// `WATERMARK column DELAY OF INTERVAL ...`; gives `input` where there is none.
  Result<Rel> ParseWatermark(Rel input);
  Result<Rel> ParseTableAlias(Rel input, bool is_inline_table = false);
  Result<Rel> ParseInlineTable();
  Result<Rel> ParseLateralViews(Rel input);
  Result<Rel> ParsePivot(Rel input);
  Result<Rel> ParseUnpivot(Rel input);
  Result<Rel> ParseOrganization(Rel input);
  Result<Rel> ParseGroupBy(Rel input, const std::vector<Expr>& select);
  Result<void> ParseWindowClause();
  Result<Rel> ParsePipe(Rel input);
  Result<Rel> ParseHints(Rel input, const std::vector<std::pair<std::string, std::vector<Expr>>>& hints);
  Result<Rel> MakeSetOperation(Rel left, Rel right, sc::SetOperation::SetOpType type, bool all, bool by_name);
  void CloseWindowScope(bool pass_on);
  Result<void> ReadWindowsAhead();
  Rel MakeProject(Rel input, const std::vector<Expr>& expressions) const;
  bool IsImplicitAlias() const;
  bool IsImplicitStreamTarget() const;
  Result<std::vector<std::string>> ParseIdentifierList();
  Result<Rel> ParseWith();
  Result<void> ParseCommonTables(pb::With* with);
  struct GroupingState {
    std::vector<Expr> expressions;
    std::map<std::string, int> index_of;
  };
  using Sets = std::vector<std::vector<int>>;
  Result<int> AddGrouping(GroupingState* state, Expr expression, std::size_t first);
  Result<Sets> ParseGroupingElement(GroupingState* state, bool* plain);
  Result<std::vector<int>> ParseGroupingTuple(GroupingState* state);

  // ---- statements (ddl_parser.cc, dml_parser.cc, show_parser.cc, script_parser.cc)
  Result<pb::Command*> ParseCommand();
  Result<void> ParseName(pb::Name* name);
  Result<void> ParseNameOrPath(pb::Name* name, std::string* path, bool* has_path);
  Result<void> ParseColumnPath(pb::Name* name);
  Result<void> ParseProperties(google::protobuf::RepeatedPtrField<pb::Property>* properties);
  Result<pb::Property> ParseProperty();
  /// Keys that have a clause of their own cannot be table properties.
  Result<void> CheckTableProperties(const google::protobuf::RepeatedPtrField<pb::Property>& properties) const;
  using Constraints = google::protobuf::RepeatedPtrField<pb::Constraint>;
  /// \param constraints  where constraints behind the column go; null: they are refused.
  Result<void> ParseColumnDefinition(pb::ColumnDefinition* column, bool nested_names, bool with_position,
                                     Constraints* constraints = nullptr);
  Result<void> ParseColumnOptions(pb::ColumnDefinition* column, bool with_position, Constraints* constraints);
  Result<void> ParseTableElements(pb::CreateTable* create);
  /// \param column  the column that the constraint stands behind; empty: it has columns of its own.
  Result<void> ParseConstraint(pb::Constraint* constraint, const std::string& column = "");
  bool IsConstraintAhead() const;
  Result<void> ParseTransforms(pb::CreateTable* create);
  Result<void> ParseClusterBy(google::protobuf::RepeatedPtrField<pb::Name>* columns, bool* is_auto, bool* is_none);
  Result<void> ParsePartitionSpec(pb::PartitionSpec* spec);
  Result<pb::Command*> ParseCreate();
  Result<pb::Command*> ParseCreateTable(bool or_replace, bool replace_only, bool external, bool temporary);
  Result<void> ParseCreateTableClauses(pb::CreateTable* create);
  Result<pb::Command*> ParseCreateView(bool or_replace, bool temporary, bool global);
  Result<pb::Command*> ParseCreateDatabase();
  Result<pb::Command*> ParseCreateFunction(bool or_replace, bool temporary);
  Result<pb::Command*> ParseCreateDataset(bool or_refresh, bool or_replace);
  Result<void> ParseDatasetElements(pb::CreatePipelineDataset* dataset);
  Result<void> ParseDatasetSource(pb::CreatePipelineDataset* dataset);
  bool IsExpectationAhead() const;
  Result<void> ParseExpectation(pb::Expectation* expectation);
  Result<void> ParseAutoCdc(pb::AutoCdc* cdc);
  Result<void> ParseAutoCdcColumns(pb::AutoCdc::Columns* columns);
  Result<pb::Command*> ParseApplyChanges();
  Result<pb::Command*> ParseRefreshDataset();
  Result<pb::Command*> ParseCreateFlow();
  Result<pb::Command*> ParseDrop();
  Result<pb::Command*> ParseAlter();
  Result<void> ParseAlterTable(pb::AlterTable* alter);
  Result<void> ParseAlterColumn(pb::AlterTable* alter);
  Result<void> ParseClone(pb::Command* command, const pb::Name& table, bool replace, bool or_create,
                          bool if_not_exists);
  Result<pb::Command*> ParseShow();
  Result<pb::Command*> ParseDescribe();
  Result<pb::Command*> ParseSet();
  Result<pb::Command*> ParseReset();
  Result<pb::Command*> ParseUse();
  Result<pb::Command*> ParseInsert();
  /// BY NAME, or the columns in parentheses.
  Result<void> ParseInsertColumns(pb::Insert* insert);
  Result<pb::Command*> ParseDelete();
  Result<pb::Command*> ParseUpdate();
  Result<pb::Command*> ParseMerge();
  Result<void> RefuseColumnAliases(const char* statement);
  Result<void> ParseAssignment(pb::Assignment* assignment);
  Result<pb::Command*> ParseTruncate();
  Result<pb::Command*> ParseCache();
  Result<pb::Command*> ParseUncache();
  Result<pb::Command*> ParseRefresh();
  Result<pb::Command*> ParseExplain();
  Result<pb::Command*> ParseOptimize();
  Result<pb::Command*> ParseVacuum();
  Result<pb::Command*> ParseRestore();
  Result<pb::Command*> ParseComment();
  Result<pb::Command*> ParseAnalyze();
  Result<pb::Command*> ParseConvert();
  Result<pb::Command*> ParseGenerate();
  Result<pb::Command*> ParseReorg();
  Result<pb::Command*> ParseIndex(const std::string& verb);
  Result<pb::Command*> ParseLoadData();
  Result<pb::Command*> ParseRepair();
  Result<pb::Command*> ParseDeclare();
  Result<pb::Command*> ParseSetVariable();
  Result<pb::Command*> ParseExecuteImmediate();
  Result<pb::Command*> ParseScript();
  Result<void> ParseScriptBody(pb::Script* script, std::initializer_list<std::string_view> ends);
  Result<void> ParseScriptStatement(pb::Script* script);
  Result<void> ParseScriptBlock(pb::Script* script);
  Result<AnyStatement> ParseWithStatement();
  Result<Expr> ParseConditionText(std::string* sql);

  static constexpr int kDepthMax = 10'000;
  struct Depth {
    explicit Depth(int* depth) : depth_(depth) { ++*depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    ~Depth() { --*depth_; }
    int* depth_;
  };
  Result<void> CheckDepth() const;

  std::string_view text_;
  const ParserOptions& options_;
  google::protobuf::Arena* arena_;
  std::vector<Token> tokens_;
  /// For each token the first one at or behind it that is no opening parenthesis.
  std::vector<std::size_t> behind_parentheses_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<std::vector<std::string>> lambda_scopes_;
  std::vector<WindowScope> window_scopes_;
  /// Elements of `(a, b)`, for IN and VALUES.
  std::unordered_map<const sc::Expression*, std::vector<Expr>> rows_;
  std::size_t positional_next_ = 0;
  /// DEFAULT stands for a column's default here.
  bool default_allowed_ = false;
};

}  // namespace fleuve::sql
