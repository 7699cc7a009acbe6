#include "python/external_runtime.h"

#include <deque>
#include <utility>

#include "columnar/ipc.h"

namespace fleuve::python {
namespace {

using plan::ExternalEvent;
using plan::ExternalKind;
using types::DataType;
using types::TypeKind;

const char* KindName(ExternalKind kind) {
  switch (kind) {
    case ExternalKind::kEvaluate:
      return "evaluate";
    case ExternalKind::kMap:
      return "map";
    case ExternalKind::kGroupMap:
      return "group_map";
    case ExternalKind::kCoGroupMap:
      return "cogroup_map";
    case ExternalKind::kAggregate:
      return "aggregate";
    case ExternalKind::kTable:
      return "table";
    case ExternalKind::kTableOfRows:
      return "table_of_rows";
    case ExternalKind::kGroupState:
      return "group_state";
    case ExternalKind::kWindow:
      return "window";
  }
  return "";
}

bool IsText(const DataType& type) {
  return type.Is(TypeKind::kString) || type.Is(TypeKind::kChar) || type.Is(TypeKind::kVarchar);
}

/// True where values of both types have one form in Arrow.
bool SameForm(const DataType& a, const DataType& b) {
  if (IsText(a) && IsText(b)) {
    return true;
  }
  if (a.Is(TypeKind::kVariant) || b.Is(TypeKind::kVariant)) {
    const DataType& other = a.Is(TypeKind::kVariant) ? b : a;
    return other.Is(TypeKind::kVariant) || (other.Is(TypeKind::kStruct) && other.fields().size() == 2);
  }
  if (a.kind() != b.kind()) {
    return false;
  }
  switch (a.kind()) {
    case TypeKind::kArray:
      return SameForm(a.element(), b.element());
    case TypeKind::kMap:
      return SameForm(a.key(), b.key()) && SameForm(a.value(), b.value());
    case TypeKind::kStruct: {
      if (a.fields().size() != b.fields().size()) {
        return false;
      }
      for (std::size_t i = 0; i < a.fields().size(); i++) {
        if (!SameForm(a.fields()[i].type, b.fields()[i].type)) {
          return false;
        }
      }
      return true;
    }
    case TypeKind::kDecimal:
      return a == b;
    default:
      return true;
  }
}

/// A value that Spark refuses comes back as an exception of the worker module's own class.
Result<Event> WithConditions(Result<Event> next) {
  if (next.ok() || next.error().condition() != "PYTHON_EXCEPTION") {
    return next;
  }
  const auto find = [&next](std::string_view name) -> std::string {
    for (const auto& [key, value] : next.error().parameters()) {
      if (key == name) {
        return value;
      }
    }
    return "";
  };
  const std::string condition = find("condition");
  if (!find("class").ends_with("functions.job.Refused") || condition.empty()) {
    return next;
  }
  return Error(ErrorKind::kInvalidArgument, condition, find("text"));
}

/// Spark reads the columns that mapInArrow gives by the declared type, whatever they are.
Error WrongRows(const types::DataType& got, const types::DataType& expected, bool map) {
  if (map && got.fields().size() >= expected.fields().size()) {
    for (std::size_t i = 0; i < expected.fields().size(); i++) {
      const DataType& type = expected.fields()[i].type;
      if (SameForm(got.fields()[i].type, type)) {
        continue;
      }
      std::string getter = "getUTF8String";
      switch (type.kind()) {
        case TypeKind::kBoolean:
          getter = "getBoolean";
          break;
        case TypeKind::kByte:
          getter = "getByte";
          break;
        case TypeKind::kShort:
          getter = "getShort";
          break;
        case TypeKind::kInt:
        case TypeKind::kDate:
        case TypeKind::kYearMonthInterval:
          getter = "getInt";
          break;
        case TypeKind::kLong:
        case TypeKind::kTimestamp:
        case TypeKind::kTimestampNtz:
        case TypeKind::kDayTimeInterval:
          getter = "getLong";
          break;
        case TypeKind::kFloat:
          getter = "getFloat";
          break;
        case TypeKind::kDouble:
          getter = "getDouble";
          break;
        case TypeKind::kDecimal:
          getter = "getDecimal";
          break;
        case TypeKind::kBinary:
          getter = "getBinary";
          break;
        case TypeKind::kArray:
          getter = "getArray";
          break;
        case TypeKind::kMap:
          getter = "getMap";
          break;
        default:
          break;
      }
      const std::string owner = "org.apache.spark.sql.vectorized.ArrowColumnVector$ArrowVectorAccessor";
      return Error(ErrorKind::kUnsupported, "UNSUPPORTED_CALL.WITHOUT_SUGGESTION",
                   "Cannot call the method \"" + getter + "\" of the class \"" + owner + "\".")
          .With("methodName", getter)
          .With("className", owner);
    }
  }
  return Error(ErrorKind::kInvalidArgument, "ARROW_TYPE_MISMATCH",
               "Invalid schema from pandas_udf(): expected " + expected.SimpleString() + ", got " + got.SimpleString() +
                   ".")
      .With("operation", "pandas_udf()")
      .With("outputTypes", expected.SimpleString())
      .With("actualDataTypes", got.SimpleString());
}

class Run final : public plan::ExternalRun {
 public:
  Run(BorrowedWorker worker, const types::Schema& input, const types::Schema& output, std::string zone, bool is_map,
      std::shared_ptr<plan::ExternalQuestions> questions)
      : worker_(std::move(worker)),
        input_(input),
        output_(std::make_shared<const types::Schema>(output)),
        zone_(std::move(zone)),
        is_map_(is_map),
        questions_(std::move(questions)) {}

  Result<void> Begin(const Task& task, CancellationTokenPtr token) { return worker_->Begin(task, std::move(token)); }

  Result<ExternalEvent> Next() override {
    ExternalEvent event;
    while (waiting_.empty()) {
      FLEUVE_ASSIGN(Event next, WithConditions(worker_->Next()));
      switch (next.kind) {
        case EventKind::kNeedInput:
          event.kind = ExternalEvent::Kind::kNeedInput;
          return event;
        case EventKind::kDone:
          worker_.GiveBack();
          event.kind = ExternalEvent::Kind::kDone;
          return event;
        case EventKind::kMessage: {
          if (questions_ == nullptr) {
            return Error::Internal("a running function asks the server something");
          }
          std::string bytes;
          FLEUVE_ASSIGN(const Json answer, questions_->Answer(next.message, next.bytes, &bytes));
          FLEUVE_TRY(worker_->Reply(answer, bytes));
          continue;
        }
        case EventKind::kOutput:
          break;
      }
      FLEUVE_ASSIGN(columnar::IpcContent content, columnar::DecodeIpcStream(next.bytes));
      if (!SameForm(content.schema, *output_)) {
        return WrongRows(content.schema, *output_, is_map_);
      }
      for (columnar::RecordBatch& batch : content.batches) {
        batch.schema = output_;
        waiting_.push_back(std::move(batch));
      }
    }
    event.kind = ExternalEvent::Kind::kOutput;
    event.batch = std::move(waiting_.front());
    waiting_.pop_front();
    return event;
  }

  Result<void> Give(const columnar::RecordBatch& batch) override {
    columnar::ArrowOptions options;
    options.time_zone = zone_;
    FLEUVE_ASSIGN(const std::string bytes, columnar::EncodeIpcStream(input_, {batch}, options));
    return worker_->Give(bytes);
  }
  Result<void> GiveEnd() override { return worker_->GiveEnd(); }

 private:
  BorrowedWorker worker_;
  const types::Schema input_;
  const std::shared_ptr<const types::Schema> output_;
  const std::string zone_;
  const bool is_map_;
  const std::shared_ptr<plan::ExternalQuestions> questions_;
  std::deque<columnar::RecordBatch> waiting_;
};

Json Settings(const plan::ExternalContext& context) {
  Json::Object settings;
  for (const auto& [key, value] : context.settings) {
    settings.emplace_back(key, value);
  }
  settings.emplace_back("spark.sql.session.timeZone", context.session_zone);
  return settings;
}

class Runtime final : public plan::ExternalRuntime {
 public:
  Runtime(std::shared_ptr<WorkerPool> pool, RuntimeSetup setup) : pool_(std::move(pool)), setup_(std::move(setup)) {}

  Result<std::unique_ptr<plan::ExternalRun>> Start(const plan::ExternalOperator& op, const types::Schema& input,
                                                   const types::Schema& output, CancellationTokenPtr token) override {
    columnar::ArrowOptions options;
    options.time_zone = op.context->session_zone;
    FLEUVE_ASSIGN(const std::string input_form, columnar::EncodeIpcStream(input, {}, options));
    FLEUVE_ASSIGN(const std::string output_form, columnar::EncodeIpcStream(output, {}, options));
    Task task;
    task.kind = "function";
    task.limits = setup_.limits;
    task.blobs = {input_form, output_form};
    Json::Array calls;
    std::string python_version;
    for (const plan::ExternalCall& call : op.calls) {
      Json::Array functions;
      for (const auto& function : call.chain) {
        Json::Object entry;
        entry.emplace_back("name", function->name);
        entry.emplace_back("eval_type", function->eval_type);
        entry.emplace_back("type", function->type.ToJson());
        entry.emplace_back("blob", static_cast<std::int64_t>(task.blobs.size()));
        task.blobs.push_back(function->command);
        if (!function->table_state.empty()) {
          entry.emplace_back("state", static_cast<std::int64_t>(task.blobs.size()));
          task.blobs.push_back(function->table_state);
        }
        python_version = function->python_version;
        functions.emplace_back(std::move(entry));
      }
      Json::Array arguments;
      for (const int argument : call.arguments) {
        arguments.emplace_back(argument);
      }
      Json::Array names;
      for (std::size_t i = 0; i < call.arguments.size(); i++) {
        names.emplace_back(i < call.argument_names.size() ? call.argument_names[i] : std::string());
      }
      Json::Object entry;
      entry.emplace_back("functions", std::move(functions));
      entry.emplace_back("arguments", std::move(arguments));
      entry.emplace_back("names", std::move(names));
      calls.emplace_back(std::move(entry));
    }
    Json::Array framed;
    for (const int position : op.framed) {
      framed.emplace_back(position);
    }
    Json::Object header;
    header.emplace_back("operator", KindName(op.kind));
    header.emplace_back("calls", std::move(calls));
    header.emplace_back("framed", std::move(framed));
    header.emplace_back("input", input.ToJson());
    header.emplace_back("output", output.ToJson());
    header.emplace_back("left_arguments", static_cast<std::int64_t>(op.left_arguments));
    header.emplace_back("outer", op.outer);
    if (op.kind == ExternalKind::kGroupState) {
      header.emplace_back("timeout", op.timeout);
      header.emplace_back("has_store", op.questions != nullptr);
      header.emplace_back("has_initial_state", op.left_arguments > 0);
      if (op.state_type) {
        header.emplace_back("state_type", op.state_type->ToJson());
      }
    }
    header.emplace_back("settings", Settings(*op.context));
    header.emplace_back("python_version", python_version);
    task.header = std::move(header);
    FLEUVE_ASSIGN(BorrowedWorker worker, pool_->Borrow(setup_.worker));
    auto run = std::make_unique<Run>(std::move(worker), input, output, op.context->session_zone,
                                     op.kind == ExternalKind::kMap, op.questions);
    FLEUVE_TRY(run->Begin(task, std::move(token)));
    return std::unique_ptr<plan::ExternalRun>(std::move(run));
  }

  Result<plan::ExternalTableShape> AnalyzeTableFunction(const plan::ExternalFunction& function,
                                                        const std::vector<plan::ExternalArgument>& arguments) override {
    std::vector<types::StructField> fields;
    types::Value::List row;
    Json::Array described;
    for (const plan::ExternalArgument& argument : arguments) {
      Json::Object entry;
      entry.emplace_back("name", argument.name);
      entry.emplace_back("type", argument.type.ToJson());
      entry.emplace_back("is_constant", argument.is_constant);
      entry.emplace_back("is_table", argument.is_table);
      described.emplace_back(std::move(entry));
      const bool has_value = argument.is_constant && !argument.is_table;
      fields.push_back(
          {"_" + std::to_string(fields.size()), has_value ? argument.type : DataType::Int(), true, Json()});
      row.push_back(has_value ? argument.value : types::Value());
    }
    const types::Schema schema = DataType::Struct(std::move(fields));
    columnar::ArrowOptions options;
    options.time_zone = function.context->session_zone;
    FLEUVE_ASSIGN(const columnar::RecordBatch batch, columnar::BatchFromRows(schema, {row}));
    FLEUVE_ASSIGN(const std::string values, columnar::EncodeIpcStream(schema, {batch}, options));
    Json::Object header;
    header.emplace_back("name", function.name);
    header.emplace_back("arguments", std::move(described));
    header.emplace_back("input", schema.ToJson());
    header.emplace_back("settings", Settings(*function.context));
    header.emplace_back("python_version", function.python_version);
    Task task;
    task.kind = "table_shape";
    task.header = std::move(header);
    task.blobs = {function.command, values};
    task.limits = setup_.limits;
    FLEUVE_ASSIGN(BorrowedWorker worker, pool_->Borrow(setup_.worker));
    FLEUVE_TRY(worker->Begin(task, nullptr));
    plan::ExternalTableShape shape;
    while (true) {
      Result<Event> next = worker->Next();
      if (!next.ok() && next.error().condition() == "PYTHON_EXCEPTION") {
        return Error(ErrorKind::kInvalidArgument, "TABLE_VALUED_FUNCTION_FAILED_TO_ANALYZE_IN_PYTHON",
                     "Failed to analyze the Python user defined table function: " + next.error().message())
            .With("msg", next.error().message());
      }
      FLEUVE_ASSIGN(const Event event, std::move(next));
      switch (event.kind) {
        case EventKind::kNeedInput:
          FLEUVE_TRY(worker->GiveEnd());
          continue;
        case EventKind::kOutput:
          shape.state = event.bytes;
          continue;
        case EventKind::kMessage:
          return Error::Internal("a table function asks the server something while it is analyzed");
        case EventKind::kDone:
          break;
      }
      const Json& result = event.message;
      FLEUVE_ASSIGN(shape.schema, DataType::FromJson(result["schema"]));
      shape.single_partition = result["single_partition"].AsBool();
      for (const Json& column : result["partition_by"].items()) {
        shape.partition_by.push_back(column.AsString());
      }
      for (const Json& key : result["order_by"].items()) {
        plan::ExternalTableShape::Key entry;
        entry.column = key["column"].AsString();
        entry.ascending = key["ascending"].AsBool(true);
        if (key["nulls_first"].is_bool()) {
          entry.nulls_first = key["nulls_first"].AsBool();
        }
        shape.order_by.push_back(std::move(entry));
      }
      for (const Json& column : result["select"].items()) {
        shape.select.push_back(column.AsString());
      }
      return shape;
    }
  }

 private:
  const std::shared_ptr<WorkerPool> pool_;
  const RuntimeSetup setup_;
};

}  // namespace

std::shared_ptr<plan::ExternalRuntime> MakeExternalRuntime(std::shared_ptr<WorkerPool> pool, RuntimeSetup setup) {
  return std::make_shared<Runtime>(std::move(pool), std::move(setup));
}

}  // namespace fleuve::python
