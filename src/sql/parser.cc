#include "sql/parser.h"

#include <functional>

#include "base/big_stack.h"
#include "sql/parser_internal.h"

namespace fleuve::sql {
namespace {

using ArenaPtr = std::shared_ptr<google::protobuf::Arena>;

/// Runs `parse` over the tokens of `text` where the stack is deep enough.
template <typename T>
Result<T> RunParser(std::string_view text, const ParserOptions& options, const ArenaPtr& arena,
                    const std::function<Result<T>(Parser&)>& parse) {
  std::optional<Result<T>> result;
  RunOnBigStack([&] {
    Parser parser(text, options, arena.get());
    auto tokens = parser.Tokenize();
    if (!tokens.ok()) {
      result.emplace(std::move(tokens).error());
      return;
    }
    result.emplace(parse(parser));
  });
  return *std::move(result);
}

template <typename T>
std::shared_ptr<const T> Keep(const ArenaPtr& arena, const T* message) {
  return message == nullptr ? nullptr : std::shared_ptr<const T>(arena, message);
}

Statement ToStatement(const ArenaPtr& arena, const Parser::AnyStatement& any) {
  Statement statement;
  statement.query = Keep<sc::Relation>(arena, any.query);
  statement.command = Keep<pb::Command>(arena, any.command);
  statement.text = any.text;
  return statement;
}

}  // namespace

Result<Statement> ParseStatement(std::string_view text, const ParserOptions& options) {
  auto arena = std::make_shared<google::protobuf::Arena>();
  return RunParser<Statement>(text, options, arena, [&](Parser& parser) -> Result<Statement> {
    FLEUVE_ASSIGN(const Parser::AnyStatement any, parser.ParseAnyStatement());
    FLEUVE_TRY(parser.ExpectEnd());
    if (any.query != nullptr) {
      parser.AttachText(any.query);
    }
    return ToStatement(arena, any);
  });
}

Result<std::vector<Statement>> ParseStatements(std::string_view text, const ParserOptions& options) {
  auto arena = std::make_shared<google::protobuf::Arena>();
  return RunParser<std::vector<Statement>>(text, options, arena, [&](Parser& parser) -> Result<std::vector<Statement>> {
    std::vector<Statement> statements;
    while (true) {
      while (parser.AcceptSymbol(";")) {
      }
      if (parser.AtEnd()) {
        return statements;
      }
      FLEUVE_ASSIGN(const Parser::AnyStatement any, parser.ParseAnyStatement());
      if (!parser.AtEnd() && !parser.AcceptSymbol(";")) {
        FLEUVE_TRY(parser.ExpectEnd());
      }
      if (any.query != nullptr) {
        parser.AttachText(any.query);
      }
      statements.push_back(ToStatement(arena, any));
    }
  });
}

Result<std::shared_ptr<const sc::Relation>> ParseQuery(std::string_view text, const ParserOptions& options) {
  auto arena = std::make_shared<google::protobuf::Arena>();
  using Pointer = std::shared_ptr<const sc::Relation>;
  return RunParser<Pointer>(text, options, arena, [&](Parser& parser) -> Result<Pointer> {
    FLEUVE_ASSIGN(sc::Relation * query, parser.ParseQuery());
    FLEUVE_TRY(parser.ExpectEnd());
    parser.AttachText(query);
    return Keep<sc::Relation>(arena, query);
  });
}

Result<std::shared_ptr<const sc::Expression>> ParseExpression(std::string_view text, const ParserOptions& options) {
  auto arena = std::make_shared<google::protobuf::Arena>();
  using Pointer = std::shared_ptr<const sc::Expression>;
  return RunParser<Pointer>(text, options, arena, [&](Parser& parser) -> Result<Pointer> {
    FLEUVE_ASSIGN(sc::Expression * expression, parser.ParseNamedExpression());
    FLEUVE_TRY(parser.ExpectEnd());
    parser.AttachText(expression);
    return Keep<sc::Expression>(arena, expression);
  });
}

Result<types::DataType> ParseDataType(std::string_view text, const ParserOptions& options) {
  auto arena = std::make_shared<google::protobuf::Arena>();
  return RunParser<types::DataType>(text, options, arena, [&](Parser& parser) -> Result<types::DataType> {
    auto type = parser.ParseType();
    // What does not end behind the type is no type at all, whatever its name.
    if (type.ok() || type.error().condition() == "UNSUPPORTED_DATATYPE") {
      FLEUVE_TRY(parser.ExpectEnd());
    }
    return type;
  });
}

Result<types::DataType> ParseColumnList(std::string_view text, const ParserOptions& options) {
  auto arena = std::make_shared<google::protobuf::Arena>();
  return RunParser<types::DataType>(text, options, arena, [&](Parser& parser) -> Result<types::DataType> {
    if (parser.AtEnd()) {
      return types::DataType::Struct({});
    }
    FLEUVE_ASSIGN(types::DataType type, parser.ParseColumnListType());
    FLEUVE_TRY(parser.ExpectEnd());
    return type;
  });
}

Result<types::DataType> ParseSchema(std::string_view text, const ParserOptions& options) {
  auto type = ParseDataType(text, options);
  return type.ok() ? std::move(type) : ParseColumnList(text, options);
}

Result<std::vector<std::string>> ParseMultipartName(std::string_view text) {
  ParserOptions options;
  auto arena = std::make_shared<google::protobuf::Arena>();
  Parser parser(text, options, arena.get());
  FLEUVE_TRY(parser.Tokenize());
  FLEUVE_ASSIGN(std::vector<std::string> parts, parser.ParseNameParts());
  FLEUVE_TRY(parser.ExpectEnd());
  return parts;
}

}  // namespace fleuve::sql
