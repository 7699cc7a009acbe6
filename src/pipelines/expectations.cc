// Expectations of a dataset as relations around its query.
#include "base/bytes.h"
#include "pipelines/expectations_internal.h"
#include "pipelines/resolution.h"
#include "plan/expr.h"
#include "spark/connect/relations.pb.h"

namespace fleuve::pipelines {

namespace sc = spark::connect;

namespace {

std::string Literal(const std::string& text) {
  return plan::LiteralSql(types::Value(text), types::DataType::String(), "UTC");
}

/// TRUE where the row satisfies the rule; NULL counts as a violation.
std::string Holds(const Expectation& expectation) { return "coalesce((" + expectation.sql + "), false)"; }

std::shared_ptr<sc::Relation> Filtered(const sc::Relation& input, const std::string& condition) {
  auto relation = std::make_shared<sc::Relation>();
  *relation->mutable_filter()->mutable_input() = input;
  relation->mutable_filter()->mutable_condition()->mutable_expression_string()->set_expression(condition);
  return relation;
}

}  // namespace

std::shared_ptr<const sc::Relation> WithExpectations(const std::shared_ptr<const sc::Relation>& relation,
                                                     const Dataset& dataset, const std::string& label) {
  if (dataset.expectations.empty()) {
    return relation;
  }
  auto counted = std::make_shared<sc::Relation>();
  auto* metrics = counted->mutable_collect_metrics();
  *metrics->mutable_input() = *relation;
  metrics->set_name(label);
  const auto metric = [&](const std::string& sql) {
    metrics->add_metrics()->mutable_expression_string()->set_expression(sql);
  };
  std::vector<std::string> drop;
  std::vector<std::string> fail;
  std::vector<std::string> names;
  metric("count(1) AS total");
  for (std::size_t i = 0; i < dataset.expectations.size(); ++i) {
    const Expectation& expectation = dataset.expectations[i];
    metric("count_if(NOT " + Holds(expectation) + ") AS failed_" + std::to_string(i));
    if (expectation.action == Expectation::Action::kDrop) {
      drop.push_back(Holds(expectation));
    } else if (expectation.action == Expectation::Action::kFail) {
      fail.push_back(Holds(expectation));
      names.push_back("CASE WHEN NOT " + Holds(expectation) + " THEN " + Literal(expectation.name) + " END");
    }
  }
  const std::string kept = drop.empty() ? "true" : Join(drop, " AND ");
  metric("count_if(NOT (" + kept + ")) AS dropped");
  if (!fail.empty()) {
    counted = Filtered(*counted, "CASE WHEN " + Join(fail, " AND ") + " THEN true ELSE CAST(raise_error(concat(" +
                                     Literal(std::string(kViolationMark) + Join(dataset.name, ".") + ": ") +
                                     ", concat_ws(', ', " + Join(names, ", ") + "))) AS BOOLEAN) END");
  }
  if (!drop.empty()) {
    counted = Filtered(*counted, kept);
  }
  return counted;
}

std::optional<Error> ViolationIn(const Error& error) {
  const std::size_t at = error.message().find(kViolationMark);
  if (at == std::string::npos) {
    return error.cause() != nullptr ? ViolationIn(*error.cause()) : std::nullopt;
  }
  std::string rest = error.message().substr(at + kViolationMark.size());
  rest = rest.substr(0, rest.find('\n'));
  const std::size_t colon = rest.find(": ");
  const std::string dataset = rest.substr(0, colon);
  const std::string names = colon == std::string::npos ? "" : rest.substr(colon + 2);
  return Error(ErrorKind::kInvalidArgument, "EXPECTATION_VIOLATION",
               "Rows of the dataset '" + dataset + "' violate its expectations: " + names +
                   ". Nothing was written; put the data right, or let the expectation drop such rows.")
      .With("datasetName", dataset)
      .With("expectationNames", names);
}

Json QualityOf(const Dataset& dataset, const std::vector<std::string>& keys, const std::vector<std::int64_t>& values) {
  const auto value_of = [&](const std::string& key) -> std::int64_t {
    for (std::size_t i = 0; i < keys.size() && i < values.size(); ++i) {
      if (keys[i] == key) {
        return values[i];
      }
    }
    return 0;
  };
  Json quality;
  quality.Set("dropped_records", Json(value_of("dropped")));
  Json::Array all;
  for (std::size_t i = 0; i < dataset.expectations.size(); ++i) {
    const std::int64_t failed = value_of("failed_" + std::to_string(i));
    Json one;
    one.Set("name", Json(dataset.expectations[i].name));
    one.Set("dataset", Json(Join(dataset.name, ".")));
    one.Set("passed_records", Json(value_of("total") - failed));
    one.Set("failed_records", Json(failed));
    all.push_back(std::move(one));
  }
  quality.Set("expectations", Json(std::move(all)));
  return quality;
}

}  // namespace fleuve::pipelines
