#include "connectors/console/console.h"

#include <cstdio>
#include <cstdlib>

#include "base/bytes.h"
#include "connectors/run_batch.h"

namespace fleuve::connectors::console {

namespace {

struct ConsoleOptions {
  std::int64_t rows = 20;
  /// Characters of a cell; 0 = whole.
  std::int64_t truncate = 20;

  static Result<ConsoleOptions> Parse(const plan::Options& options) {
    ConsoleOptions parsed;
    if (const std::string* text = plan::FindOption(options, "numRows")) {
      char* end = nullptr;
      parsed.rows = std::strtoll(text->c_str(), &end, 10);
      if (text->empty() || *end != '\0') {
        return Error(ErrorKind::kInvalidArgument, "", "For input string: \"" + *text + "\"")
            .Family(ErrorFamily::kNumberFormat);
      }
    }
    if (const std::string* text = plan::FindOption(options, "truncate")) {
      const std::string value = AsciiLower(*text);
      if (value != "true" && value != "false") {
        return Error(ErrorKind::kInvalidArgument, "", *text + " is not a boolean string.")
            .Family(ErrorFamily::kIllegalArgument);
      }
      parsed.truncate = value == "true" ? 20 : 0;
    }
    return parsed;
  }
};

class ConsoleBatch final : public StagedBatch {
 public:
  ConsoleBatch(std::string text, std::int64_t rows) : text_(std::move(text)), rows_(rows) {}
  /// Printed here and not before: the planned offsets are durable by now.
  Result<CommitOutcome> Commit() override {
    std::fwrite(text_.data(), 1, text_.size(), stdout);
    std::fflush(stdout);
    return CommitOutcome::kCommitted;
  }
  std::int64_t num_output_rows() const override { return rows_; }

 private:
  const std::string text_;
  const std::int64_t rows_;
};

class ConsoleSink final : public Sink {
 public:
  ConsoleSink(ConsoleOptions options, SessionHooks hooks) : options_(options), hooks_(std::move(hooks)) {}
  std::string description() const override { return "org.apache.spark.sql.execution.streaming.ConsoleTable$"; }

  Result<std::unique_ptr<StagedBatch>> Run(const SinkBatch& batch) override {
    FLEUVE_ASSIGN(auto reader, RunBatch(batch, batch.plan));
    auto rows = std::make_shared<plan::RowScan>();
    std::int64_t count = 0;
    for (;;) {
      FLEUVE_ASSIGN(auto next, reader->Next());
      if (!next) {
        break;
      }
      // What will not be printed is counted and let go; one row more tells that there is more.
      if (count <= options_.rows) {
        rows->batches.push_back(*next);
      }
      count += next->row_count();
    }
    auto shown = std::make_shared<plan::LogicalPlan>();
    shown->kind = plan::PlanKind::kRows;
    shown->rows = std::move(rows);
    for (const auto& attribute : batch.plan->output) {
      if (!attribute.hidden) {
        shown->output.push_back(attribute);
      }
    }
    FLEUVE_ASSIGN(const std::string table, hooks_.show_text(shown, options_.rows, options_.truncate));
    static constexpr const char* kRule = "-------------------------------------------";
    std::string text =
        std::string(kRule) + "\nBatch: " + std::to_string(batch.batch_id.value) + "\n" + kRule + "\n" + table;
    if (!table.ends_with("\n\n")) {
      text += table.ends_with("\n") ? "\n" : "\n\n";
    }
    return std::unique_ptr<StagedBatch>(std::make_unique<ConsoleBatch>(std::move(text), count));
  }

 private:
  const ConsoleOptions options_;
  const SessionHooks hooks_;
};

class ConsoleProvider final : public SinkProvider {
 public:
  bool uses_temporary_checkpoint() const override { return true; }
  Result<std::unique_ptr<Sink>> MakeSink(const SinkSpec& spec, const SinkContext& context) override {
    FLEUVE_ASSIGN(const ConsoleOptions options, ConsoleOptions::Parse(spec.options));
    if (!context.hooks.show_text) {
      return Error::Unsupported("the console sink outside a session");
    }
    return std::unique_ptr<Sink>(std::make_unique<ConsoleSink>(options, context.hooks));
  }
};

}  // namespace

void RegisterConsole(ConnectorRegistry& registry) { registry.AddSink("console", std::make_shared<ConsoleProvider>()); }

}  // namespace fleuve::connectors::console
