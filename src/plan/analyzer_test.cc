#include "plan/analyzer.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <spark/connect/relations.pb.h>

#include <chrono>

#include "base/big_stack.h"
#include "plan/prepare_internal.h"
#include "plan/streaming_check.h"

namespace fleuve::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using types::DataType;

class FakeTable : public TableSource {
 public:
  explicit FakeTable(types::Schema schema) : schema_(std::move(schema)) {}
  const types::Schema& schema() const override { return schema_; }
  std::string name() const override { return "fake"; }
  std::string provider() const override { return "parquet"; }
  Result<std::shared_ptr<const FileScan>> PlanScan(const std::vector<ExprPtr>& filters,
                                                   const std::vector<Attribute>&) const override {
    filters_ = filters;
    auto scan = std::make_shared<FileScan>();
    scan->data_schema = schema_;
    return std::shared_ptr<const FileScan>(scan);
  }
  mutable std::vector<ExprPtr> filters_;

 private:
  types::Schema schema_;
};

class FakeStream : public StreamRelation {
 public:
  explicit FakeStream(types::Schema schema) : schema_(std::move(schema)) {}
  const types::Schema& schema() const override { return schema_; }
  std::string name() const override { return "stream"; }
  std::string provider() const override { return "rate"; }
  const Options& options() const override { return options_; }

 private:
  types::Schema schema_;
  Options options_;
};

class FakeResolver : public Resolver {
 public:
  AnalysisConfig Config() override { return AnalysisConfig(); }
  Result<ResolvedTable> ResolveTable(const std::vector<std::string>& parts, const Options&, bool) override {
    ResolvedTable out;
    if (parts.back() == "t") {
      out.table = table;
    } else if (parts.back() == "s") {
      out.stream = stream;
    } else {
      return Error(ErrorKind::kNotFound, "TABLE_OR_VIEW_NOT_FOUND", "no such table");
    }
    out.qualified_name = {"spark_catalog", "default", parts.back()};
    return out;
  }
  Result<ResolvedTable> ResolveDataSource(const std::string&, const std::optional<types::Schema>&, const Options&,
                                          const std::vector<std::string>&, const std::vector<std::string>&,
                                          bool) override {
    return Error::Unsupported("sources in this test");
  }
  Result<PlanPtr> ResolveCachedRelation(const std::string&) override { return Error::Unsupported("cached"); }
  Result<std::string> CachedArtifact(const std::string&) override { return Error::Unsupported("artifacts"); }
  Result<std::shared_ptr<const spark::connect::Relation>> ParseQuery(const std::string&) override {
    return Error::Unsupported("SQL");
  }
  Result<std::shared_ptr<const spark::connect::Relation>> ParseSql(const spark::connect::SQL&) override {
    return Error::Unsupported("SQL");
  }

  std::shared_ptr<FakeTable> table = std::make_shared<FakeTable>(
      DataType::Struct({{"id", DataType::Int(), true, {}},
                        {"name", DataType::String(), true, {}},
                        {"s", DataType::Struct({{"x", DataType::Int(), true, {}}}), true, {}},
                        {"arr", DataType::Array(DataType::Int()), true, {}}}));
  std::shared_ptr<FakeStream> stream = std::make_shared<FakeStream>(
      DataType::Struct({{"k", DataType::String(), true, {}}, {"t", DataType::Timestamp(), true, {}}}));
};

spark::connect::Relation Parse(const std::string& text) {
  spark::connect::Relation relation;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &relation)) << text;
  return relation;
}

std::string Attr(const std::string& name) { return "unresolved_attribute { unparsed_identifier: \"" + name + "\" }"; }
std::string Table() { return "read { named_table { unparsed_identifier: \"t\" } }"; }
std::string Select(const std::string& input, const std::vector<std::string>& items) {
  std::string out = "project { input { " + input + " }";
  for (const std::string& item : items) {
    out += " expressions { " + item + " }";
  }
  return out + " }";
}
std::string Fn(const std::string& name, const std::vector<std::string>& arguments) {
  std::string out = "unresolved_function { function_name: \"" + name + "\"";
  for (const std::string& argument : arguments) {
    out += " arguments { " + argument + " }";
  }
  return out + " }";
}
std::string As(const std::string& expr, const std::string& name) {
  return "alias { expr { " + expr + " } name: \"" + name + "\" }";
}
std::string Int(int value) { return "literal { integer: " + std::to_string(value) + " }"; }

class AnalyzerTest : public testing::Test {
 protected:
  Result<PlanPtr> Run(const std::string& text) { return Analyze(Parse(text), resolver_); }
  std::string Schema(const std::string& text) {
    const Result<PlanPtr> plan = Run(text);
    return plan.ok() ? SchemaOf(**plan).SimpleString() : plan.error().condition();
  }
  FakeResolver resolver_;
};

TEST_F(AnalyzerTest, NamesColumnsAsSparkDoes) {
  EXPECT_EQ(Schema(Select(Table(), {Attr("ID"), Attr("s.x"), Fn("+", {Attr("id"), Int(1)}),
                                    "cast { expr { " + Attr("name") + " } type_str: \"int\" }",
                                    As(Attr("id"), "renamed"), Attr("t.name")})),
            "struct<ID:int,x:int,(id + 1):int,name:int,renamed:int,name:string>");
}

TEST_F(AnalyzerTest, StarLeavesMetadataOutButItCanBeNamed) {
  EXPECT_EQ(Schema(Select(Table(), {"unresolved_star {}"})),
            "struct<id:int,name:string,s:struct<x:int>,arr:array<int>>");
  EXPECT_EQ(Schema(Select(Select(Table(), {Attr("id")}), {Attr("_metadata.file_name")})), "struct<file_name:string>");
}

TEST_F(AnalyzerTest, UnknownNamesComeWithSuggestions) {
  const Result<PlanPtr> plan = Run(Select(Table(), {Attr("nmae")}));
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().condition(), "UNRESOLVED_COLUMN.WITH_SUGGESTION");
  EXPECT_THAT(plan.error().message(), HasSubstr("[`name`"));
  EXPECT_EQ(Schema(Select(Table(), {Attr("s.nope")})), "FIELD_NOT_FOUND");
  EXPECT_EQ(Schema(Select(Table(), {Attr("name.x")})), "INVALID_EXTRACT_BASE_FIELD_TYPE");
}

TEST_F(AnalyzerTest, AggregatesWantGroupedColumns) {
  const std::string start = "aggregate { input { " + Table() + " } group_type: GROUP_TYPE_GROUPBY ";
  EXPECT_EQ(Schema(start + "grouping_expressions { " + Attr("name") + " } aggregate_expressions { " +
                   Fn("sum", {Attr("id")}) + " } }"),
            "struct<name:string,sum(id):bigint>");
  EXPECT_EQ(
      Schema(start + "grouping_expressions { " + Attr("name") + " } aggregate_expressions { " + Attr("id") + " } }"),
      "MISSING_AGGREGATION");
  EXPECT_EQ(Schema(Select(Table(), {Attr("id"), Fn("sum", {Attr("id")})})), "MISSING_GROUP_BY");
}

TEST_F(AnalyzerTest, JoinByNameGivesTheKeyOnceAndPlanIdsTellSidesApart) {
  const std::string left = "common { plan_id: 1 } " + Table();
  const std::string right = "common { plan_id: 2 } " + Table();
  const std::string join =
      "join { left { " + left + " } right { " + right + " } join_type: JOIN_TYPE_INNER using_columns: \"id\" }";
  EXPECT_EQ(Schema(join),
            "struct<id:int,name:string,s:struct<x:int>,arr:array<int>,name:string,s:struct<x:int>,arr:array<int>>");
  EXPECT_EQ(Schema(Select(join, {Attr("name")})), "AMBIGUOUS_REFERENCE");
  EXPECT_EQ(Schema(Select(join, {"unresolved_attribute { unparsed_identifier: \"name\" plan_id: 2 }"})),
            "struct<name:string>");
}

TEST_F(AnalyzerTest, SortSeesColumnsThatTheSelectListDropped) {
  const Result<PlanPtr> plan = Run("sort { input { " + Select(Table(), {Attr("name")}) + " } order { child { " +
                                   Attr("id") + " } direction: SORT_DIRECTION_ASCENDING } is_global: true }");
  ASSERT_TRUE(plan.ok()) << plan.error().ToString();
  EXPECT_EQ(SchemaOf(**plan).SimpleString(), "struct<name:string>");
}

TEST_F(AnalyzerTest, FieldsOfLaterProtocolsAreRefusedByNumber) {
  spark::connect::Relation relation = Parse("range { end: 3 step: 1 }");
  relation.GetReflection()->MutableUnknownFields(&relation)->AddVarint(4711, 1);
  const Result<PlanPtr> plan = Analyze(relation, resolver_);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(plan.error().message(), HasSubstr("4711"));
}

TEST_F(AnalyzerTest, AThousandAddedColumnsAreQuick) {
  std::string text = "range { end: 3 step: 1 }";
  spark::connect::Relation relation = Parse(text);
  for (int i = 0; i < 1000; ++i) {
    spark::connect::Relation outer;
    outer.mutable_with_columns()->mutable_input()->Swap(&relation);
    auto* alias = outer.mutable_with_columns()->add_aliases();
    alias->add_name("c" + std::to_string(i));
    auto* call = alias->mutable_expr()->mutable_unresolved_function();
    call->set_function_name("+");
    call->add_arguments()->mutable_unresolved_attribute()->set_unparsed_identifier(
        i == 0 ? "id" : "c" + std::to_string(i - 1));
    call->add_arguments()->mutable_literal()->set_integer(1);
    relation.Swap(&outer);
  }
  [[maybe_unused]] const auto begin = std::chrono::steady_clock::now();
  Result<PlanPtr> plan = Analyze(relation, resolver_);
  ASSERT_TRUE(plan.ok()) << plan.error().ToString();
  EXPECT_EQ((*plan)->output.size(), 1001U);
  Result<PlanPtr> prepared = Prepare(*plan, resolver_.Config());
  ASSERT_TRUE(prepared.ok()) << prepared.error().ToString();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // a sanitizer's own time says nothing
  const auto took = std::chrono::steady_clock::now() - begin;
  // Half a second optimised; room for an unoptimised build on a busy machine.
  EXPECT_LT(std::chrono::duration_cast<std::chrono::seconds>(took).count(), 10);
#endif
  int nodes = 0;
  VisitPlan(*prepared, [&nodes](const LogicalPlan&) { ++nodes; });
  // Sixteen additions become one projection: a column that is used twice may have 32 nodes.
  EXPECT_LT(nodes, 70);
}

TEST_F(AnalyzerTest, ValuesThatNestTooDeeplyAreRefused) {
  const auto nested = [](const std::string& function, int levels) {
    spark::connect::Expression expr;
    expr.mutable_literal()->set_integer(1);
    for (int i = 0; i < levels; ++i) {
      spark::connect::Expression outer;
      outer.mutable_unresolved_function()->set_function_name(function);
      outer.mutable_unresolved_function()->add_arguments()->Swap(&expr);
      expr.Swap(&outer);
    }
    spark::connect::Relation relation = Parse("project { input { range { end: 3 step: 1 } } }");
    relation.mutable_project()->add_expressions()->Swap(&expr);
    return relation;
  };
  for (const char* function : {"array", "struct"}) {
    EXPECT_TRUE(Analyze(nested(function, 100), resolver_).ok());
    for (const int levels : {101, 2000}) {
      const Result<PlanPtr> plan = Analyze(nested(function, levels), resolver_);
      ASSERT_FALSE(plan.ok()) << function;
      EXPECT_THAT(plan.error().message(), HasSubstr("more than 100 levels of arrays, maps and structs"));
    }
  }
}

TEST_F(AnalyzerTest, CollatedStringsAreCarriedButNotLookedAt) {
  const std::string collated =
      Select("range { end: 3 step: 1 }",
             {As("cast { expr { literal { string: \"a\" } } type { string { collation: \"UTF8_LCASE\" } } }", "c")});
  const std::string column = Attr("c");
  const std::string text = "literal { string: \"A\" }";
  const auto prepared = [this](const std::string& plan) {
    const Result<PlanPtr> analyzed = Run(plan);
    const Result<PlanPtr> made = analyzed.ok() ? Prepare(*analyzed, resolver_.Config()) : analyzed;
    return made.ok() ? "" : made.error().message();
  };
  const std::string refused = "an operation on strings with the collation UTF8_LCASE";
  EXPECT_EQ(prepared("limit { input { " + Select(collated, {column}) + " } limit: 1 }"), "");
  EXPECT_EQ(prepared(Select(collated, {Fn("isnull", {column})})), "");
  EXPECT_EQ(prepared(Select(collated, {Fn("count", {column})})), "");
  for (const std::string& plan :
       {"filter { input { " + collated + " } condition { " + Fn("==", {column, text}) + " } }",
        Select(collated, {Fn("upper", {column})}), Select(collated, {Fn("max", {column})}),
        Select(collated, {Fn("length", {Fn("concat", {column, text})})}),
        "deduplicate { input { " + collated + " } all_columns_as_keys: true }",
        "sort { input { " + collated + " } order { child { " + column + " } direction: SORT_DIRECTION_ASCENDING } }",
        "aggregate { input { " + collated + " } group_type: GROUP_TYPE_GROUPBY grouping_expressions { " + column +
            " } }"}) {
    EXPECT_THAT(prepared(plan), HasSubstr(refused)) << plan;
  }
}

TEST_F(AnalyzerTest, FiltersReachTheTableAndGuardWhatCanFail) {
  const std::string cast = "cast { expr { " + Attr("name") + " } type_str: \"int\" }";
  const std::string input = Select(Table(), {As(Attr("id"), "i"), As(cast, "n")});
  const Result<PlanPtr> plan =
      Run("filter { input { filter { input { " + input + " } condition { " + Fn(">", {Attr("i"), Int(0)}) +
          " } } } condition { " + Fn(">", {Attr("n"), Int(5)}) + " } }");
  ASSERT_TRUE(plan.ok()) << plan.error().ToString();
  const Result<PlanPtr> prepared = Prepare(*plan, resolver_.Config());
  ASSERT_TRUE(prepared.ok()) << prepared.error().ToString();
  EXPECT_EQ(resolver_.table->filters_.size(), 2U);
  const LogicalPlan* filter = nullptr;
  VisitPlan(*prepared, [&filter](const LogicalPlan& node) {
    if (node.kind == PlanKind::kFilter) {
      filter = &node;
    }
  });
  ASSERT_NE(filter, nullptr);
  EXPECT_EQ(filter->children.front()->kind, PlanKind::kFileScan);
  ASSERT_EQ(filter->condition->function, "and");
  EXPECT_EQ(filter->condition->children[1]->kind, ExprKind::kCase);
}

TEST_F(AnalyzerTest, StreamsRefuseWhatSparkRefuses) {
  const std::string stream = "read { named_table { unparsed_identifier: \"s\" } is_streaming: true }";
  const auto check = [&](const std::string& text, const std::string& mode) {
    const Result<PlanPtr> plan = Run(text);
    EXPECT_TRUE(plan.ok());
    const Result<void> result = CheckStreaming(*plan, StreamingRules{.output_mode = mode});
    return result.ok() ? std::string() : result.error().condition();
  };
  EXPECT_EQ(check(stream, "append"), "");
  EXPECT_EQ(check(stream, "complete"), "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION");
  EXPECT_EQ(check("aggregate { input { " + stream + " } group_type: GROUP_TYPE_GROUPBY grouping_expressions { " +
                      Attr("k") + " } aggregate_expressions { " + Fn("count", {Int(1)}) + " } }",
                  "append"),
            "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION");
  EXPECT_EQ(check("sort { input { " + stream + " } order { child { " + Attr("k") + " } } is_global: true }", "append"),
            "_LEGACY_ERROR_TEMP_3102");
}

TEST_F(AnalyzerTest, WatermarksFollowTheirColumn) {
  const std::string stream = "read { named_table { unparsed_identifier: \"s\" } is_streaming: true }";
  const auto marked = [](const std::string& input, const std::string& column) {
    return "with_watermark { input { " + input + " } event_time: \"" + column + "\" delay_threshold: \"10 minutes\" }";
  };
  const auto check = [&](const std::string& text, const std::string& mode) {
    const Result<PlanPtr> plan = Run(text);
    EXPECT_TRUE(plan.ok()) << plan.error().ToString();
    const Result<void> result = CheckStreaming(*plan, StreamingRules{.output_mode = mode});
    const Result<void> batch = CheckStreamingBatch(*plan, StreamingRules{.output_mode = mode});
    return !result.ok() ? result.error().condition() : !batch.ok() ? batch.error().condition() : std::string();
  };
  const std::string window = Fn("window", {Attr("t"), "literal { string: \"5 minutes\" }"});
  const auto count_by = [&](const std::string& input, const std::string& key) {
    return "aggregate { input { " + input + " } group_type: GROUP_TYPE_GROUPBY grouping_expressions { " + key +
           " } aggregate_expressions { " + Fn("count", {Int(1)}) + " } }";
  };
  const std::string bad_mode = "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION";
  EXPECT_EQ(check(count_by(stream, window), "append"), bad_mode);
  EXPECT_EQ(check(count_by(marked(stream, "t"), window), "append"), "");
  EXPECT_EQ(check(count_by(marked(stream, "t"), Attr("k")), "append"), bad_mode);
  // Renamed columns keep it; computed ones do not.
  const std::string renamed = Select(marked(stream, "t"), {As(Attr("t"), "u")});
  EXPECT_EQ(check(count_by(renamed, Attr("u")), "append"), "");
  const std::string computed =
      Select(marked(stream, "t"), {As(Fn("date_trunc", {"literal { string: \"day\" }", Attr("t")}), "u")});
  EXPECT_EQ(check(count_by(computed, Attr("u")), "append"), bad_mode);
  // A window of windows carries it on.
  const std::string first = Select(count_by(marked(stream, "t"), window), {Attr("window")});
  const std::string second = Fn("window", {Attr("window"), "literal { string: \"1 hour\" }"});
  EXPECT_EQ(check(count_by(first, second), "append"), "");
  EXPECT_EQ(check(count_by(first, second), "update"), "_LEGACY_ERROR_TEMP_3102");
  EXPECT_EQ(check(marked(marked(stream, "t"), "t"), "append"), "_LEGACY_ERROR_TEMP_3076");
  const Result<PlanPtr> plan = Run(count_by(marked(stream, "t"), window));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ((*plan)->output[0].metadata.Dump(), R"({"spark.watermarkDelayMs":600000,"spark.timeWindow":true})");
  const std::string batch =
      "with_watermark { input { range { start: 0 end: 1 step: 1 } } event_time: \"id\" "
      "delay_threshold: \"1 hour\" }";
  EXPECT_EQ(Schema(batch), "struct<id:bigint>");  // nobody asks for the column where there is no stream
  EXPECT_EQ(Schema(marked(Select(stream, {As(Fn("struct", {Attr("t"), Attr("t")}), "w")}), "w")),
            "EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE");
}

TEST(ExprTest, DeepTreesAreWalkedAndFreedWithoutRecursion) {
  Attribute attribute;
  attribute.id = NewAttributeId();
  attribute.type = DataType::Int();
  ExprPtr expr = MakeAttribute(attribute);
  for (int i = 0; i < 200000; ++i) {
    expr = MakeCall("spark_add", {expr}, DataType::Int(), true);
  }
  int nodes = 0;
  VisitExpr(expr, [&nodes](const Expr&) { ++nodes; });
  EXPECT_EQ(nodes, 200001);
  const ExprPtr copy = RewriteExpr(expr, [](const ExprPtr& node) -> ExprPtr {
    return node->kind == ExprKind::kAttribute ? MakeNull(DataType::Int()) : nullptr;
  });
  EXPECT_FALSE(SameExpr(expr, copy));
  EXPECT_TRUE(SameExpr(expr, expr));
}

TEST(PrepareTest, DeepExpressionsAreSplit) {
  Attribute id;
  id.id = NewAttributeId();
  id.name = "id";
  id.type = DataType::Long();
  auto range = std::make_shared<LogicalPlan>();
  range->kind = PlanKind::kRange;
  range->output = {id};
  ExprPtr expr = MakeAttribute(id);
  for (int i = 0; i < 500; ++i) {
    expr = MakeCall("spark_add", {expr, MakeLiteral(types::Value(1), DataType::Long())}, DataType::Long(), true, true);
  }
  Attribute out = id;
  out.id = NewAttributeId();
  const Result<PlanPtr> prepared = Prepare(MakeProject(range, {expr}, {out}), AnalysisConfig());
  ASSERT_TRUE(prepared.ok());
  VisitPlan(*prepared, [](const LogicalPlan& node) {
    for (const ExprPtr& part : node.exprs) {
      EXPECT_LE(DepthOf(part), 64);
    }
  });
}

}  // namespace
}  // namespace fleuve::plan
