#include "sql/parser_internal.h"

namespace fleuve::sql {

namespace {

/// Condition and message where the label behind an END is none that may stand there.
std::optional<std::pair<std::string, std::string>> EndLabelFault(const std::string& begin, const std::string& end) {
  if (begin.empty()) {
    return std::pair<std::string, std::string>("END_LABEL_WITHOUT_BEGIN_LABEL",
                                               "End label `" + end + "` can not exist without begin label.");
  }
  if (Upper(begin) != Upper(end)) {
    return std::pair<std::string, std::string>(
        "LABELS_MISMATCH", "Begin label `" + begin + "` does not match the end label `" + end + "`.");
  }
  return std::nullopt;
}

}  // namespace

Result<pb::Command*> Parser::ParseScript() {
  pb::Command* command = NewCommand();
  FLEUVE_TRY(ParseScriptBlock(command->mutable_script()));
  return command;
}

Result<void> Parser::ParseScriptBlock(pb::Script* script) {
  Depth depth(&depth_);
  FLEUVE_TRY(CheckDepth());
  FLEUVE_TRY(ExpectWord("BEGIN"));
  if (AcceptWords({"NOT", "ATOMIC"})) {
  } else if (AcceptWord("ATOMIC")) {
    script->set_atomic(true);
  }
  while (IsWord("DECLARE")) {
    if (!IsWord("HANDLER", 2) && !(IsIdentifier(1) && IsWord("CONDITION", 2))) {
      FLEUVE_TRY(ParseScriptStatement(script));
      FLEUVE_TRY(ExpectSymbol(";"));
      continue;
    }
    Advance();
    if (!IsWord("HANDLER", 1)) {
      FLEUVE_ASSIGN(std::string name, ParseIdentifier());
      Advance();
      if (AcceptWord("FOR")) {
        AcceptWord("SQLSTATE");
        AcceptWord("VALUE");
        FLEUVE_ASSIGN(const std::string state, ParseString());
        name += "=" + state;
      }
      script->add_condition_names(std::move(name));
      FLEUVE_TRY(ExpectSymbol(";"));
      continue;
    }
    auto* handler = script->add_handlers();
    if (!IsAnyWord({"EXIT", "CONTINUE"})) {
      return SyntaxError();
    }
    if (IsWord("CONTINUE")) {
      return ErrorFrom(at_, "UNSUPPORTED_FEATURE.CONTINUE_EXCEPTION_HANDLER",
                       "The feature is not supported: CONTINUE exception handler is not supported. Use EXIT handler.");
    }
    handler->set_exit(IsWord("EXIT"));
    Advance();
    FLEUVE_TRY(ExpectWord("HANDLER"));
    FLEUVE_TRY(ExpectWord("FOR"));
    do {
      if (AcceptWord("SQLSTATE")) {
        AcceptWord("VALUE");
        FLEUVE_ASSIGN(const std::string state, ParseString());
        handler->add_conditions("SQLSTATE " + Upper(state));
      } else if (AcceptWords({"NOT", "FOUND"})) {
        handler->add_conditions("NOT FOUND");
      } else {
        FLEUVE_ASSIGN(const std::vector<std::string> parts, ParseNameParts());
        std::string name;
        for (const std::string& part : parts) {
          name += (name.empty() ? "" : ".") + Upper(part);
        }
        handler->add_conditions(std::move(name));
      }
    } while (AcceptSymbol(","));
    pb::Script body;
    if (IsWord("BEGIN")) {
      FLEUVE_TRY(ParseScriptBlock(handler->mutable_body()->mutable_block()));
    } else {
      FLEUVE_TRY(ParseScriptStatement(&body));
      *handler->mutable_body() = body.statements(0);
    }
    FLEUVE_TRY(ExpectSymbol(";"));
  }
  FLEUVE_TRY(ParseScriptBody(script, {"END"}));
  FLEUVE_TRY(ExpectWord("END"));
  if (IsIdentifier()) {
    if (const auto fault = EndLabelFault(script->label(), Current().text)) {
      return ErrorFrom(at_, fault->first, fault->second);
    }
    Advance();
  }
  return {};
}

Result<void> Parser::ParseScriptBody(pb::Script* script, std::initializer_list<std::string_view> ends) {
  while (true) {
    while (AcceptSymbol(";")) {
    }
    if (IsAnyWord(ends)) {
      return {};
    }
    if (AtEnd()) {
      return SyntaxError();
    }
    if (IsWord("DECLARE")) {
      const std::size_t at = at_;
      FLEUVE_TRY(ParseScriptStatement(script));
      return ErrorFrom(
          at, "INVALID_VARIABLE_DECLARATION.ONLY_AT_BEGINNING",
          "Invalid variable declaration. Variables can only be declared at the beginning of the compound.");
    }
    if (IsWord("SET") && IsAnyWord({"VAR", "VARIABLE"}, 1)) {
      Advance();
      return SyntaxError();
    }
    FLEUVE_TRY(ParseScriptStatement(script));
    FLEUVE_TRY(ExpectSymbol(";"));
  }
}

Result<void> Parser::ParseScriptStatement(pb::Script* script) {
  Depth depth(&depth_);
  FLEUVE_TRY(CheckDepth());
  auto* statement = script->add_statements();
  const std::size_t first = at_;
  std::string label;
  if (IsIdentifier() && IsSymbol(":", 1) && IsAnyWord({"BEGIN", "WHILE", "REPEAT", "LOOP", "FOR"}, 2)) {
    label = Current().text;
    Advance();
    Advance();
  }
  const auto end_label = [&]() -> Result<void> {
    if (IsIdentifier()) {
      if (const auto fault = EndLabelFault(label, Current().text)) {
        return ErrorFrom(at_, fault->first, fault->second);
      }
      Advance();
    }
    return {};
  };
  if (IsWord("BEGIN")) {
    auto* block = statement->mutable_block();
    if (!label.empty()) {
      block->set_label(label);
    }
    return ParseScriptBlock(block);
  }
  if (IsWord("IF") && !IsSymbol("(", 1) ? true : IsWord("IF")) {
    auto* branch_owner = statement->mutable_if_();
    Advance();
    do {
      auto* branch = branch_owner->add_branches();
      FLEUVE_ASSIGN(Expr condition, ParseExpression());
      AttachText(condition);
      branch->mutable_condition()->CopyFrom(*condition);
      FLEUVE_TRY(ExpectWord("THEN"));
      FLEUVE_TRY(ParseScriptBody(branch->mutable_body(), {"ELSE", "ELSEIF", "END"}));
    } while (AcceptWord("ELSEIF"));
    if (AcceptWord("ELSE")) {
      FLEUVE_TRY(ParseScriptBody(branch_owner->mutable_otherwise(), {"END"}));
    }
    return ExpectWords({"END", "IF"});
  }
  if (IsWord("CASE")) {
    auto* choice = statement->mutable_case_();
    Advance();
    if (!IsWord("WHEN")) {
      FLEUVE_ASSIGN(Expr operand, ParseExpression());
      AttachText(operand);
      choice->mutable_operand()->CopyFrom(*operand);
    }
    while (AcceptWord("WHEN")) {
      auto* branch = choice->add_branches();
      FLEUVE_ASSIGN(Expr condition, ParseExpression());
      AttachText(condition);
      branch->mutable_condition()->CopyFrom(*condition);
      FLEUVE_TRY(ExpectWord("THEN"));
      FLEUVE_TRY(ParseScriptBody(branch->mutable_body(), {"WHEN", "ELSE", "END"}));
    }
    if (AcceptWord("ELSE")) {
      FLEUVE_TRY(ParseScriptBody(choice->mutable_otherwise(), {"END"}));
    }
    return ExpectWords({"END", "CASE"});
  }
  if (AcceptWord("WHILE")) {
    auto* loop = statement->mutable_while_();
    if (!label.empty()) {
      loop->mutable_body()->set_label(label);
    }
    FLEUVE_ASSIGN(Expr condition, ParseExpression());
    AttachText(condition);
    loop->mutable_condition()->CopyFrom(*condition);
    FLEUVE_TRY(ExpectWord("DO"));
    FLEUVE_TRY(ParseScriptBody(loop->mutable_body(), {"END"}));
    FLEUVE_TRY(ExpectWords({"END", "WHILE"}));
    return end_label();
  }
  if (AcceptWord("REPEAT")) {
    auto* loop = statement->mutable_repeat();
    if (!label.empty()) {
      loop->mutable_body()->set_label(label);
    }
    FLEUVE_TRY(ParseScriptBody(loop->mutable_body(), {"UNTIL"}));
    FLEUVE_TRY(ExpectWord("UNTIL"));
    FLEUVE_ASSIGN(Expr until, ParseExpression());
    AttachText(until);
    loop->mutable_until()->CopyFrom(*until);
    FLEUVE_TRY(ExpectWords({"END", "REPEAT"}));
    return end_label();
  }
  if (AcceptWord("LOOP")) {
    if (!label.empty()) {
      statement->mutable_loop()->set_label(label);
    }
    FLEUVE_TRY(ParseScriptBody(statement->mutable_loop(), {"END"}));
    FLEUVE_TRY(ExpectWords({"END", "LOOP"}));
    return end_label();
  }
  if (AcceptWord("FOR")) {
    auto* loop = statement->mutable_for_();
    if (!label.empty()) {
      loop->mutable_body()->set_label(label);
    }
    if (IsIdentifier() && IsWord("AS", 1)) {
      FLEUVE_ASSIGN(std::string variable, ParseIdentifier());
      loop->set_variable(std::move(variable));
      Advance();
    }
    FLEUVE_ASSIGN(Rel query, ParseQuery());
    AttachText(query);
    loop->mutable_query()->CopyFrom(*query);
    FLEUVE_TRY(ExpectWord("DO"));
    FLEUVE_TRY(ParseScriptBody(loop->mutable_body(), {"END"}));
    FLEUVE_TRY(ExpectWords({"END", "FOR"}));
    return end_label();
  }
  if (IsAnyWord({"LEAVE", "ITERATE"}) && IsIdentifier(1)) {
    const bool leave = IsWord("LEAVE");
    Advance();
    FLEUVE_ASSIGN(std::string target, ParseIdentifier());
    if (leave) {
      statement->set_leave(std::move(target));
    } else {
      statement->set_iterate(std::move(target));
    }
    return {};
  }
  if (IsWord("SET") && !AreWords({"SET", "TIME", "ZONE"}) && !AreWords({"SET", "CATALOG"})) {
    // In a script SET assigns variables.
    Advance();
    if (!AcceptWord("VAR")) {
      AcceptWord("VARIABLE");
    }
    FLEUVE_ASSIGN(pb::Command * command, ParseSetVariable());
    command->set_sql_text(TextFrom(first));
    statement->mutable_command()->CopyFrom(*command);
    statement->set_text(TextFrom(first));
    return {};
  }
  FLEUVE_ASSIGN(const AnyStatement any, ParseAnyStatement());
  if (any.query == nullptr && any.command->has_drop_variable()) {
    return ErrorFrom(first, "UNSUPPORTED_FEATURE.SQL_SCRIPTING_DROP_TEMPORARY_VARIABLE",
                     "The feature is not supported: DROP TEMPORARY VARIABLE is not supported within SQL scripts. To "
                     "bypass this, use `EXECUTE IMMEDIATE 'DROP TEMPORARY VARIABLE ...'`.");
  }
  statement->set_text(any.text);
  if (any.query != nullptr) {
    AttachText(any.query);
    statement->mutable_query()->CopyFrom(*any.query);
  } else {
    statement->mutable_command()->CopyFrom(*any.command);
  }
  return {};
}

}  // namespace fleuve::sql
