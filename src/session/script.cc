#include <optional>
#include <set>

#include "base/bytes.h"
#include "fleuve/plan.pb.h"
#include "plan/analyzer.h"
#include "plan/coercion.h"
#include "plan/proto_types.h"
#include "session/script_internal.h"
#include "session/session_state_internal.h"
#include "session/statement_internal.h"

namespace fleuve::session {

namespace sc = spark::connect;
using types::DataType;
using types::Value;

namespace {

/// How a statement ended.
struct Flow {
  enum class Kind { kNext, kLeave, kIterate } kind = Kind::kNext;
  std::string label;  ///< lower case

  bool Concerns(const std::string& loop) const { return !loop.empty() && label == loop; }
};

class ScriptRunner {
 public:
  ScriptRunner(Executor& executor, SessionState& state, SessionResolver& resolver)
      : executor_(executor), state_(state), resolver_(resolver) {}

  Result<RowsResult> Run(const pb::Script& script) {
    FLEUVE_ASSIGN(const Flow flow, Block(script));
    if (flow.kind != Flow::Kind::kNext) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_LABEL_USAGE.DOES_NOT_EXIST",
                   "The usage of the label " + flow.label +
                       " is invalid. Label was used in a statement, but it does not "
                       "belong to any surrounding block.")
          .With("labelName", flow.label);
    }
    return result_ ? *std::move(result_) : Nothing();
  }

 private:
  /// Puts the session's variables back as they were when the block ends.
  class Locals {
   public:
    explicit Locals(SessionState& state) : state_(state) {}
    ~Locals() {
      for (auto entry = hidden_.rbegin(); entry != hidden_.rend(); ++entry) {
        state_.DropVariable(entry->name);
        if (entry->variable) {
          state_.PutVariableDefault(entry->name, entry->value);
          state_.PutVariable(entry->name, *std::move(entry->variable));
        }
      }
    }
    Locals(const Locals&) = delete;
    Locals& operator=(const Locals&) = delete;

    /// Makes room for a variable of this block; false where the block has it already.
    bool Hide(const std::string& name) {
      if (!names_.insert(name).second) {
        return false;
      }
      hidden_.push_back({name, state_.FindVariable(name), state_.VariableDefault(name)});
      state_.DropVariable(name);
      return true;
    }

   private:
    struct Hidden {
      std::string name;
      std::optional<plan::SessionVariable> variable;
      Value value;
    };
    SessionState& state_;
    std::vector<Hidden> hidden_;
    std::set<std::string> names_;
  };

  Result<Flow> Block(const pb::Script& script) {
    Locals locals(state_);
    const std::string label = AsciiLower(script.label());
    FLEUVE_ASSIGN(Flow flow, Statements(script, locals));
    if (flow.kind == Flow::Kind::kLeave && flow.Concerns(label)) {
      return Flow{};
    }
    return flow;
  }

  Result<Flow> Statements(const pb::Script& script, Locals& locals) {
    for (const pb::ScriptStatement& statement : script.statements()) {
      auto flow = Statement(statement, locals);
      if (!flow.ok()) {
        const pb::Script::Handler* handler = HandlerFor(script, flow.error());
        if (handler == nullptr) {
          return flow;
        }
        pb::Script body;
        *body.add_statements() = handler->body();
        FLEUVE_ASSIGN(const Flow handled, Block(body));
        if (handled.kind != Flow::Kind::kNext) {
          return handled;
        }
        if (handler->exit()) {
          return Flow{};
        }
        continue;
      }
      if (flow->kind != Flow::Kind::kNext) {
        return flow;
      }
    }
    return Flow{};
  }

  /// The handler of this block for an error: its condition, its SQLSTATE, then the general ones.
  static const pb::Script::Handler* HandlerFor(const pb::Script& script, const Error& error) {
    if (error.kind() == ErrorKind::kCancelled) {
      return nullptr;
    }
    const std::string main = error.condition().substr(0, error.condition().find('.'));
    const auto matches = [&](const std::string& condition, int round) {
      if (round == 0) {
        return EqualsIgnoreAsciiCase(condition, error.condition()) || EqualsIgnoreAsciiCase(condition, main);
      }
      if (round == 1) {
        for (const std::string& declared : script.condition_names()) {
          const std::size_t at = declared.find('=');
          if (at != std::string::npos && EqualsIgnoreAsciiCase(declared.substr(0, at), condition) &&
              declared.substr(at + 1) == error.sql_state()) {
            return true;
          }
        }
        return condition == "SQLSTATE " + error.sql_state();
      }
      return condition == "SQLEXCEPTION" || (condition == "NOT FOUND" && error.sql_state().starts_with("02"));
    };
    for (int round = 0; round < 3; ++round) {
      for (const pb::Script::Handler& handler : script.handlers()) {
        for (const std::string& condition : handler.conditions()) {
          if (matches(condition, round)) {
            return &handler;
          }
        }
      }
    }
    return nullptr;
  }

  Result<Flow> Statement(const pb::ScriptStatement& statement, Locals& locals) {
    FLEUVE_TRY(executor_.CheckCancelled());
    switch (statement.kind_case()) {
      case pb::ScriptStatement::kQuery: {
        FLEUVE_ASSIGN(const plan::PlanPtr plan, executor_.AnalyzeWith(resolver_, statement.query()));
        RowsResult rows;
        rows.schema = plan::SchemaOf(*plan);
        FLEUVE_ASSIGN(rows.rows, executor_.CollectRows(plan));
        result_ = std::move(rows);
        return Flow{};
      }
      case pb::ScriptStatement::kCommand:
        return Command(statement.command(), locals);
      case pb::ScriptStatement::kBlock:
        return Block(statement.block());
      case pb::ScriptStatement::kIf: {
        for (const auto& branch : statement.if_().branches()) {
          FLEUVE_ASSIGN(const bool holds, Holds(branch.condition()));
          if (holds) {
            return Block(branch.body());
          }
        }
        return Block(statement.if_().otherwise());
      }
      case pb::ScriptStatement::kCase:
        return Case(statement.case_());
      case pb::ScriptStatement::kWhile: {
        const std::string label = AsciiLower(statement.while_().body().label());
        while (true) {
          FLEUVE_TRY(executor_.CheckCancelled());
          FLEUVE_ASSIGN(const bool holds, Holds(statement.while_().condition()));
          if (!holds) {
            return Flow{};
          }
          FLEUVE_ASSIGN(const std::optional<Flow> out, Round(statement.while_().body(), label));
          if (out) {
            return *out;
          }
        }
      }
      case pb::ScriptStatement::kRepeat: {
        const std::string label = AsciiLower(statement.repeat().body().label());
        while (true) {
          FLEUVE_TRY(executor_.CheckCancelled());
          FLEUVE_ASSIGN(const std::optional<Flow> out, Round(statement.repeat().body(), label));
          if (out) {
            return *out;
          }
          FLEUVE_ASSIGN(const bool done, Holds(statement.repeat().until()));
          if (done) {
            return Flow{};
          }
        }
      }
      case pb::ScriptStatement::kLoop: {
        const std::string label = AsciiLower(statement.loop().label());
        while (true) {
          FLEUVE_TRY(executor_.CheckCancelled());
          FLEUVE_ASSIGN(const std::optional<Flow> out, Round(statement.loop(), label));
          if (out) {
            return *out;
          }
        }
      }
      case pb::ScriptStatement::kFor:
        return For(statement.for_());
      case pb::ScriptStatement::kLeave:
        return Flow{Flow::Kind::kLeave, AsciiLower(statement.leave())};
      case pb::ScriptStatement::kIterate:
        return Flow{Flow::Kind::kIterate, AsciiLower(statement.iterate())};
      case pb::ScriptStatement::KIND_NOT_SET:
        break;
    }
    return Error::Internal("a script statement of no kind");
  }

  /// One round of a loop: how the loop ends, or nullopt where it goes on.
  Result<std::optional<Flow>> Round(const pb::Script& body, const std::string& label) {
    Locals locals(state_);
    FLEUVE_ASSIGN(const Flow flow, Statements(body, locals));
    if (flow.kind == Flow::Kind::kNext || (flow.kind == Flow::Kind::kIterate && flow.Concerns(label))) {
      return std::optional<Flow>();
    }
    return std::optional<Flow>(flow.Concerns(label) ? Flow{} : flow);
  }

  Result<Flow> Command(const pb::Command& command, Locals& locals) {
    if (command.has_declare_variable()) {
      for (const pb::Name& name : command.declare_variable().names()) {
        const std::string last = AsciiLower(name.parts(name.parts_size() - 1));
        if (!locals.Hide(last) && !command.declare_variable().or_replace()) {
          return Error(ErrorKind::kAlreadyExists, "VARIABLE_ALREADY_EXISTS",
                       "Cannot create the variable `" + last +
                           "` because it already exists. Choose a different name, or drop or replace the existing "
                           "variable.")
              .With("variableName", "`" + last + "`");
        }
      }
    }
    if (command.has_script()) {
      return Block(command.script());
    }
    FLEUVE_ASSIGN(RowsResult rows, executor_.RunStatement(command, resolver_));
    if (!rows.schema.fields().empty() || command.has_execute_immediate()) {
      result_ = std::move(rows);
    }
    return Flow{};
  }

  /// The value of an expression without columns.
  Result<std::pair<Value, DataType>> Evaluate(const sc::Expression& expression) {
    sc::Relation relation;
    *relation.mutable_project()->add_expressions() = expression;
    *relation.mutable_common()->mutable_origin() = expression.common().origin();
    FLEUVE_ASSIGN(const plan::PlanPtr plan, executor_.AnalyzeWith(resolver_, relation));
    const types::Schema schema = plan::SchemaOf(*plan);
    FLEUVE_ASSIGN(const auto rows, executor_.CollectRows(plan));
    if (rows.size() != 1 || rows[0].size() != 1) {
      return Error::Internal("an expression of a script gives no single value");
    }
    return std::pair(rows[0][0], schema.fields()[0].type);
  }

  Result<bool> Holds(const sc::Expression& condition) {
    FLEUVE_ASSIGN(const auto value, Evaluate(condition));
    if (!value.second.Is(types::TypeKind::kBoolean) && !value.second.Is(types::TypeKind::kVoid)) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_BOOLEAN_STATEMENT",
                   "Boolean statement is expected in the condition, but its type is " + value.second.Sql() + ".");
    }
    if (value.second.Is(types::TypeKind::kVoid)) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_BOOLEAN_STATEMENT",
                   "Boolean statement is expected in the condition, but NULL was found.")
          .With("invalidStatement", "NULL");
    }
    // A NULL of the type BOOLEAN holds no more than false does.
    return !value.first.is_null() && value.first.boolean();
  }

  Result<Flow> Case(const pb::ScriptStatement::Case& choice) {
    std::optional<sc::Expression> operand;
    if (choice.has_operand()) {
      // Evaluated once.
      FLEUVE_ASSIGN(const auto value, Evaluate(choice.operand()));
      operand.emplace();
      FLEUVE_TRY(plan::LiteralToProto(value.first, value.second, operand->mutable_literal()));
    }
    for (const auto& branch : choice.branches()) {
      sc::Expression condition = branch.condition();
      if (operand) {
        sc::Expression equal;
        equal.mutable_unresolved_function()->set_function_name("==");
        *equal.mutable_unresolved_function()->add_arguments() = *operand;
        *equal.mutable_unresolved_function()->add_arguments() = condition;
        condition = std::move(equal);
      }
      FLEUVE_ASSIGN(const bool holds, Holds(condition));
      if (holds) {
        return Block(branch.body());
      }
    }
    return Block(choice.otherwise());
  }

  /// The columns of each row are variables, under their names and under `variable.name`.
  Result<Flow> For(const pb::ScriptStatement::For& loop) {
    const std::string label = AsciiLower(loop.body().label());
    FLEUVE_ASSIGN(const plan::PlanPtr plan, executor_.AnalyzeWith(resolver_, loop.query()));
    const types::Schema schema = plan::SchemaOf(*plan);
    FLEUVE_ASSIGN(const auto rows, executor_.CollectRows(plan));
    for (const Value::List& row : rows) {
      FLEUVE_TRY(executor_.CheckCancelled());
      Locals locals(state_);
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string column = AsciiLower(schema.fields()[i].name);
        for (const std::string& name :
             {column, loop.variable().empty() ? std::string() : AsciiLower(loop.variable()) + "." + column}) {
          if (name.empty() || !locals.Hide(name)) {
            continue;
          }
          state_.PutVariable(name, plan::SessionVariable{name, row[i], schema.fields()[i].type});
        }
      }
      FLEUVE_ASSIGN(const std::optional<Flow> out, Round(loop.body(), label));
      if (out) {
        return *out;
      }
    }
    return Flow{};
  }

  Executor& executor_;
  SessionState& state_;
  SessionResolver& resolver_;
  std::optional<RowsResult> result_;
};

}  // namespace

Result<RowsResult> RunScript(const pb::Script& script, Executor& executor, SessionState& state,
                             SessionResolver& resolver) {
  return ScriptRunner(executor, state, resolver).Run(script);
}

}  // namespace fleuve::session
