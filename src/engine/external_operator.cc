// Functions of the user as an operator of DuckDB's plan: rows are gathered into Arrow batches for a worker, what it
// answers goes on as rows, joined again with the columns that pass beside it.

#include <deque>

#include "duckdb/common/vector_operations/vector_operations.hpp"
#include "engine/arrow_rows_internal.h"
#include "engine/carriers_internal.h"
#include "engine/files/file_functions_internal.h"
#include "engine/leaf_functions_internal.h"
#include "engine/raise_internal.h"
#include "engine/run_state_internal.h"
#include "plan/external.h"

namespace fleuve::engine {

using duckdb::idx_t;
using duckdb::OperatorFinalizeResultType;
using duckdb::OperatorResultType;
using plan::ExternalEvent;
using plan::ExternalKind;
using types::DataType;

namespace {

/// A batch ends early when it has about this many bytes.
constexpr std::int64_t kBatchBytes = 64 << 20;

/// Keeps an answer alive as long as vectors show its text.
class AnswerBuffer final : public duckdb::VectorBuffer {
 public:
  explicit AnswerBuffer(std::shared_ptr<columnar::ArrayHolder> array)
      : VectorBuffer(duckdb::VectorBufferType::OPAQUE_BUFFER), array_(std::move(array)) {}

 private:
  std::shared_ptr<columnar::ArrayHolder> array_;
};

void KeepAlive(duckdb::Vector& vector, const duckdb::buffer_ptr<duckdb::VectorBuffer>& answer) {
  switch (vector.GetType().InternalType()) {
    case duckdb::PhysicalType::VARCHAR:
      duckdb::StringVector::AddBuffer(vector, answer);
      break;
    case duckdb::PhysicalType::STRUCT:
      for (auto& part : duckdb::StructVector::GetEntries(vector)) {
        KeepAlive(*part, answer);
      }
      break;
    case duckdb::PhysicalType::LIST:
      KeepAlive(duckdb::ListVector::GetEntry(vector), answer);
      break;
    default:
      break;
  }
}

bool IsGrouped(ExternalKind kind) {
  return kind == ExternalKind::kGroupMap || kind == ExternalKind::kGroupState || kind == ExternalKind::kCoGroupMap ||
         kind == ExternalKind::kAggregate || kind == ExternalKind::kTableOfRows || kind == ExternalKind::kWindow;
}

struct ExternalBindData : duckdb::TableFunctionData {
  plan::PlanPtr node;
  /// Columns of the input: those that pass, keys, arguments.
  std::size_t passed = 0;
  std::size_t keys = 0;
  std::size_t arguments = 0;
  /// What goes out: the group's number where rows are grouped, keys, arguments.
  std::shared_ptr<const types::Schema> input;
  /// What comes back: the row's number for table functions, then the function's columns.
  std::shared_ptr<const types::Schema> output;
};

/// Input rows whose answer is not there yet.
struct HeldRows {
  duckdb::unique_ptr<duckdb::DataChunk> chunk;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

struct ExternalState : duckdb::GlobalTableFunctionState {
  explicit ExternalState(const ExternalBindData& data_in) : data(data_in), builder(data_in.input) {}
  idx_t MaxThreads() const override { return 1; }

  const ExternalBindData& data;
  ArrowBatchBuilder builder;
  std::unique_ptr<plan::ExternalRun> run;
  /// True when the worker has asked for rows.
  bool asked = false;
  bool done = false;
  /// Rows of the current input chunk that are taken.
  idx_t taken = 0;
  std::int64_t rows_taken = 0;

  std::deque<HeldRows> held;
  std::int64_t held_at = 0;
  /// Kept while a chunk that refers to it is on its way.
  duckdb::unique_ptr<duckdb::DataChunk> shown;

  columnar::RecordBatch answer;
  duckdb::buffer_ptr<duckdb::VectorBuffer> answer_buffer;
  std::int64_t answer_at = 0;
  std::int64_t rows_shown = 0;

  /// The last row's keys, and its group's number.
  duckdb::vector<duckdb::Value> last_keys;
  std::int64_t group = -1;
};

types::StructField Field(std::string name, const DataType& type) { return {std::move(name), type, true, Json()}; }

duckdb::unique_ptr<duckdb::FunctionData> BindExternal(duckdb::ClientContext& context,
                                                      duckdb::TableFunctionBindInput& input,
                                                      duckdb::vector<duckdb::LogicalType>& types,
                                                      duckdb::vector<duckdb::string>& names) {
  auto data = duckdb::make_uniq<ExternalBindData>();
  data->node = RunState::Of(context).ExternalAt(input.inputs[0].GetValue<std::int64_t>());
  const auto& node = *data->node;
  const ExternalKind kind = node.external->kind;
  data->passed = plan::PassedColumns(node);
  data->keys = node.grouping.size();
  data->arguments = node.exprs.size();
  const std::size_t expected = std::max<std::size_t>(1, data->passed + data->keys + data->arguments);
  if (input.input_table_types.size() != expected) {
    RaiseError(Error::Internal("an external operator gets another number of columns than it expects"));
  }
  std::vector<types::StructField> sent;
  if (IsGrouped(kind)) {
    sent.push_back(Field("_group", DataType::Long()));
  }
  const auto add = [&](const plan::ExprPtr& expr, std::size_t column) {
    if (input.input_table_types[column] != CarrierType(expr->type)) {
      RaiseError(Error::Internal("an argument of an external operator has the type " +
                                 input.input_table_types[column].ToString() + " where the plan says " +
                                 expr->type.SimpleString()));
    }
    sent.push_back(
        Field(expr->kind == plan::ExprKind::kAttribute ? expr->attribute.name : "_" + std::to_string(sent.size()),
              expr->type));
  };
  for (std::size_t i = 0; i < data->keys; i++) {
    add(node.grouping[i], data->passed + i);
  }
  for (std::size_t i = 0; i < data->arguments; i++) {
    add(node.exprs[i], data->passed + data->keys + i);
  }
  data->input = std::make_shared<const types::Schema>(DataType::Struct(std::move(sent)));
  std::vector<types::StructField> received;
  if (kind == ExternalKind::kTable) {
    received.push_back(Field("_row", DataType::Long()));
  }
  for (std::size_t i = data->passed; i < node.output.size(); i++) {
    received.push_back(Field(node.output[i].name, node.output[i].type));
  }
  data->output = std::make_shared<const types::Schema>(DataType::Struct(std::move(received)));
  for (const auto& attribute : node.output) {
    names.push_back("c" + std::to_string(names.size()));
    types.push_back(CarrierType(attribute.type));
  }
  if (types.empty()) {
    names.push_back("none");
    types.push_back(duckdb::LogicalType::INTEGER);
  }
  return data;
}

duckdb::unique_ptr<duckdb::GlobalTableFunctionState> InitExternal(duckdb::ClientContext&,
                                                                  duckdb::TableFunctionInitInput& input) {
  return duckdb::make_uniq<ExternalState>(input.bind_data->Cast<ExternalBindData>());
}

/// Numbers the rows of a chunk by their group: a row whose keys differ from those of the row before begins one.
void NumberGroups(ExternalState& state, duckdb::DataChunk& keys, duckdb::Vector& numbers) {
  const idx_t count = keys.size();
  auto* to = duckdb::FlatVector::GetData<std::int64_t>(numbers);
  std::vector<bool> begins(count, false);
  if (state.group < 0) {
    begins[0] = true;
  }
  for (idx_t column = 0; column < keys.ColumnCount(); column++) {
    auto& vector = keys.data[column];
    if (state.group >= 0 && !duckdb::Value::NotDistinctFrom(vector.GetValue(0), state.last_keys[column])) {
      begins[0] = true;
    }
    if (count > 1) {
      duckdb::SelectionVector before(count);
      duckdb::SelectionVector after(count);
      for (idx_t i = 0; i + 1 < count; i++) {
        before.set_index(i, i);
        after.set_index(i, i + 1);
      }
      duckdb::Vector a(vector, before, count - 1);
      duckdb::Vector b(vector, after, count - 1);
      duckdb::SelectionVector different(count);
      const idx_t found = duckdb::VectorOperations::DistinctFrom(a, b, nullptr, count - 1, &different, nullptr);
      for (idx_t i = 0; i < found; i++) {
        begins[different.get_index(i) + 1] = true;
      }
    }
  }
  for (idx_t i = 0; i < count; i++) {
    state.group += begins[i] ? 1 : 0;
    to[i] = state.group;
  }
  state.last_keys.clear();
  for (idx_t column = 0; column < keys.ColumnCount(); column++) {
    state.last_keys.push_back(keys.data[column].GetValue(count - 1));
  }
}

/// Takes `count` rows of the input from `first` on.
void Take(ExternalState& state, duckdb::ExecutionContext& context, duckdb::DataChunk& in, idx_t first, idx_t count) {
  const auto& data = state.data;
  duckdb::DataChunk part;
  part.InitializeEmpty(in.GetTypes());
  part.Reference(in);
  if (first != 0 || count != in.size()) {
    duckdb::SelectionVector rows(count);
    for (idx_t i = 0; i < count; i++) {
      rows.set_index(i, first + i);
    }
    part.Slice(rows, count);
  }
  if (plan::PassesChild(*data.node)) {
    HeldRows held;
    held.first = state.rows_taken;
    held.count = static_cast<std::int64_t>(count);
    if (data.passed > 0) {
      auto types = in.GetTypes();
      types.resize(data.passed);
      held.chunk = duckdb::make_uniq<duckdb::DataChunk>();
      held.chunk->Initialize(duckdb::Allocator::Get(context.client), types, count);
      duckdb::DataChunk passing;
      passing.InitializeEmpty(types);
      for (std::size_t i = 0; i < data.passed; i++) {
        passing.data[i].Reference(part.data[i]);
      }
      passing.SetCardinality(count);
      passing.Copy(*held.chunk);
    }
    state.held.push_back(std::move(held));
  }
  state.rows_taken += static_cast<std::int64_t>(count);
  duckdb::vector<duckdb::LogicalType> types;
  for (const auto& field : data.input->fields()) {
    types.push_back(CarrierType(field.type));
  }
  duckdb::DataChunk sent;
  sent.InitializeEmpty(types);
  std::size_t next = 0;
  duckdb::Vector groups(duckdb::LogicalType::BIGINT, count);
  if (IsGrouped(data.node->external->kind)) {
    duckdb::DataChunk keys;
    if (data.keys > 0) {
      keys.InitializeEmpty(duckdb::vector<duckdb::LogicalType>(
          types.begin() + 1, types.begin() + 1 + static_cast<std::ptrdiff_t>(data.keys)));
      for (std::size_t i = 0; i < data.keys; i++) {
        keys.data[i].Reference(part.data[data.passed + i]);
      }
    }
    keys.SetCardinality(count);
    NumberGroups(state, keys, groups);
    sent.data[next++].Reference(groups);
  }
  for (std::size_t i = data.passed; next < types.size(); i++) {
    sent.data[next++].Reference(part.data[i]);
  }
  sent.SetCardinality(count);
  state.builder.Append(sent);
}

void EnsureRun(ExternalState& state, duckdb::ClientContext& context) {
  if (state.run != nullptr) {
    return;
  }
  const auto& external = *state.data.node->external;
  if (external.context == nullptr || external.context->runtime == nullptr) {
    RaiseError(Error::Unsupported("functions in other languages: nothing here runs them"));
  }
  state.run = ValueOrRaise(
      external.context->runtime->Start(external, *state.data.input, *state.data.output, RunState::Of(context).token));
}

/// Shows columns of the answer's rows as columns of `out`.
void ShowAnswer(ExternalState& state, std::size_t first_column, idx_t count, duckdb::DataChunk& out) {
  const auto& fields = state.data.output->fields();
  const auto& array = *state.answer.array->get();
  for (std::size_t i = first_column; i < fields.size(); i++) {
    auto& to = out.data[state.data.passed + i - first_column];
    ArrowToVector(*array.children[i], fields[i].type, static_cast<idx_t>(array.offset + state.answer_at), count, to);
    KeepAlive(to, state.answer_buffer);
  }
}

[[noreturn]] void RaiseRowCount(const ExternalState& state) {
  std::string name;
  for (const auto& call : state.data.node->external->calls) {
    name = call.chain.empty() ? name : call.chain.back()->name;
  }
  RaiseError(Error::Internal("the function " + name + " gave another number of rows than it got"));
}

/// Gives rows of the current answer; false when there is none left.
bool Show(ExternalState& state, duckdb::DataChunk& out) {
  std::int64_t left = state.answer.row_count() - state.answer_at;
  if (left <= 0) {
    return false;
  }
  left = std::min<std::int64_t>(left, STANDARD_VECTOR_SIZE);
  const auto& data = state.data;
  if (!plan::PassesChild(*data.node)) {
    ShowAnswer(state, 0, static_cast<idx_t>(left), out);
    if (data.node->output.empty()) {
      out.data[0].SetVectorType(duckdb::VectorType::CONSTANT_VECTOR);
      duckdb::ConstantVector::SetNull(out.data[0], true);
    }
    out.SetCardinality(static_cast<idx_t>(left));
    state.answer_at += left;
    state.rows_shown += left;
    if (const auto limit = data.node->external->row_limit; limit >= 0 && state.rows_shown >= limit) {
      state.answer_at = state.answer.row_count();
      state.done = true;
      state.run.reset();
    }
    return true;
  }
  const bool by_row = data.node->external->kind == ExternalKind::kTable;
  const std::int64_t* rows = nullptr;
  if (by_row) {
    const auto& array = *state.answer.array->get();
    rows = static_cast<const std::int64_t*>(array.children[0]->buffers[1]) + array.children[0]->offset + array.offset +
           state.answer_at;
  }
  while (!state.held.empty() && (by_row ? rows[0] >= state.held.front().first + state.held.front().count
                                        : state.held_at >= state.held.front().count)) {
    // What is shown by a chunk that may still be on its way lives until the next call.
    state.shown = std::move(state.held.front().chunk);
    state.held.pop_front();
    state.held_at = 0;
  }
  if (state.held.empty()) {
    RaiseRowCount(state);
  }
  auto& held = state.held.front();
  std::int64_t count = left;
  duckdb::SelectionVector selection(STANDARD_VECTOR_SIZE);
  if (by_row) {
    count = 0;
    while (count < left && rows[count] < held.first + held.count) {
      if (rows[count] < held.first) {
        RaiseRowCount(state);
      }
      selection.set_index(static_cast<idx_t>(count), static_cast<idx_t>(rows[count] - held.first));
      count++;
    }
  } else {
    count = std::min(left, held.count - state.held_at);
    for (std::int64_t i = 0; i < count; i++) {
      selection.set_index(static_cast<idx_t>(i), static_cast<idx_t>(state.held_at + i));
    }
  }
  for (std::size_t i = 0; i < data.passed; i++) {
    out.data[i].Slice(held.chunk->data[i], selection, static_cast<idx_t>(count));
  }
  ShowAnswer(state, by_row ? 1 : 0, static_cast<idx_t>(count), out);
  out.SetCardinality(static_cast<idx_t>(count));
  state.answer_at += count;
  state.held_at += count;
  return true;
}

/// Waits for what the worker does next; true when rows are to be shown.
bool Step(ExternalState& state) {
  ExternalEvent event = ValueOrRaise(state.run->Next());
  switch (event.kind) {
    case ExternalEvent::Kind::kNeedInput:
      state.asked = true;
      return false;
    case ExternalEvent::Kind::kDone:
      state.done = true;
      return false;
    case ExternalEvent::Kind::kOutput:
      break;
  }
  if (event.batch.row_count() == 0) {
    return false;
  }
  state.answer = std::move(event.batch);
  state.answer_buffer = duckdb::make_buffer<AnswerBuffer>(state.answer.array);
  state.answer_at = 0;
  return true;
}

bool IsFull(ExternalState& state) {
  return state.builder.rows() >= state.data.node->external->context->batch_rows || state.builder.bytes() >= kBatchBytes;
}

OperatorResultType ProcessExternal(duckdb::ExecutionContext& context, duckdb::TableFunctionInput& input,
                                   duckdb::DataChunk& in, duckdb::DataChunk& out) {
  auto& state = input.global_state->Cast<ExternalState>();
  if (Show(state, out)) {
    return OperatorResultType::HAVE_MORE_OUTPUT;
  }
  while (true) {
    if (state.done) {
      // The function has ended before its input did: the rest is not looked at.
      return OperatorResultType::FINISHED;
    }
    if (IsFull(state)) {
      EnsureRun(state, context.client);
      while (!state.asked && !state.done) {
        if (Step(state) && Show(state, out)) {
          return OperatorResultType::HAVE_MORE_OUTPUT;
        }
      }
      if (state.done) {
        continue;
      }
      CheckOrRaise(state.run->Give(state.builder.Finish()));
      state.asked = false;
      continue;
    }
    if (state.taken >= in.size()) {
      state.taken = 0;
      return OperatorResultType::NEED_MORE_INPUT;
    }
    const auto room = static_cast<idx_t>(
        std::max<std::int64_t>(1, state.data.node->external->context->batch_rows - state.builder.rows()));
    const idx_t count = std::min(room, in.size() - state.taken);
    Take(state, context, in, state.taken, count);
    state.taken += count;
  }
}

OperatorFinalizeResultType FinishExternal(duckdb::ExecutionContext& context, duckdb::TableFunctionInput& input,
                                          duckdb::DataChunk& out) {
  auto& state = input.global_state->Cast<ExternalState>();
  if (Show(state, out)) {
    return OperatorFinalizeResultType::HAVE_MORE_OUTPUT;
  }
  const ExternalKind kind = state.data.node->external->kind;
  if (state.run == nullptr && !state.done) {
    if (state.builder.rows() == 0 && kind != ExternalKind::kMap && kind != ExternalKind::kTableOfRows &&
        kind != ExternalKind::kGroupState) {
      return OperatorFinalizeResultType::FINISHED;
    }
    EnsureRun(state, context.client);
  }
  while (!state.done) {
    if (state.asked) {
      state.asked = false;
      if (state.builder.rows() > 0) {
        CheckOrRaise(state.run->Give(state.builder.Finish()));
      } else {
        CheckOrRaise(state.run->GiveEnd());
      }
    }
    if (Step(state) && Show(state, out)) {
      return OperatorFinalizeResultType::HAVE_MORE_OUTPUT;
    }
  }
  if (kind == ExternalKind::kEvaluate || kind == ExternalKind::kWindow) {
    std::int64_t left = -state.held_at;
    for (const auto& held : state.held) {
      left += held.count;
    }
    if (left != 0) {
      RaiseRowCount(state);
    }
  }
  return OperatorFinalizeResultType::FINISHED;
}

}  // namespace

void InstallExternalOperator(duckdb::DatabaseInstance& db) {
  duckdb::TableFunction function("fleuve_external", {duckdb::LogicalType::BIGINT, duckdb::LogicalType::TABLE}, nullptr,
                                 BindExternal, InitExternal);
  function.in_out_function = ProcessExternal;
  function.in_out_function_final = FinishExternal;
  InstallTableFunction(db, std::move(function));
}

}  // namespace fleuve::engine
