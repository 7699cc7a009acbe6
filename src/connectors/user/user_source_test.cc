#include <gtest/gtest.h>

#include "connectors/user/source_task_internal.h"
#include "plan/coercion.h"

namespace fleuve::connectors::user {
namespace {

using plan::ExprPtr;
using types::DataType;
using types::Value;

ExprPtr Column(const std::string& name, const DataType& type) {
  plan::Attribute attribute;
  attribute.id = plan::NewAttributeId();
  attribute.name = name;
  attribute.type = type;
  return plan::MakeAttribute(attribute);
}

ExprPtr Call(const std::string& function, std::vector<ExprPtr> children) {
  return plan::MakeCall(function, std::move(children), DataType::Boolean(), true);
}

/// `name(column)`, `!` in front where it is negated, with the number of its values behind; then where it comes from.
std::vector<std::string> Told(const std::vector<ExprPtr>& conjuncts) {
  const auto told = TellFilters(conjuncts);
  EXPECT_TRUE(told.ok());
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < told->filters.size(); ++i) {
    const Json& filter = told->filters[i];
    std::string text = filter["negated"].AsBool() ? "!" : "";
    text += filter["name"].AsString() + "(";
    for (const Json& part : filter["column"].items()) {
      text += part.AsString() + " ";
    }
    text += filter.Find("value") != nullptr ? "1" : std::to_string(filter["values"].items().size());
    shown.push_back(text + ")@" + std::to_string(told->origin[i]));
  }
  return shown;
}

using Texts = std::vector<std::string>;

TEST(TellFilters, AComparisonAndWhatFollowsFromIt) {
  const ExprPtr a = Column("a", DataType::Int());
  const ExprPtr two = plan::MakeLiteral(Value(2), DataType::Int());
  EXPECT_EQ(Told({Call("lt", {two, a})}), (Texts{"IsNotNull(a 0)@-1", "GreaterThan(a 1)@0"}));
  EXPECT_EQ(Told({Call("ne", {a, two})}), (Texts{"IsNotNull(a 0)@-1", "!EqualTo(a 1)@0"}));
  EXPECT_EQ(Told({Call("eqnullsafe", {a, two})}), (Texts{"EqualNullSafe(a 1)@0"}));
  EXPECT_EQ(Told({Call("isnull", {a})}), (Texts{"IsNull(a 0)@0"}));
  EXPECT_EQ(Told({Call("in", {a, two, two})}), (Texts{"In(a 2)@0"}));
  EXPECT_EQ(Told({Call("or", {Call("eq", {a, two}), Call("isnull", {a})})}), Texts{});
}

TEST(TellFilters, AColumnMadeWiderIsComparedInItsOwnType) {
  const ExprPtr narrow = Column("a", DataType::Byte());
  plan::AnalysisConfig config;
  auto wide = plan::MakeCast(narrow, DataType::Long(), plan::CastMode::kAnsi, config);
  ASSERT_TRUE(wide.ok());
  EXPECT_EQ(Told({Call("eq", {*wide, plan::MakeLiteral(Value(7), DataType::Long())})}),
            (Texts{"IsNotNull(a 0)@-1", "EqualTo(a 1)@0"}));
  // No value of the column is that large: nothing is told.
  EXPECT_EQ(Told({Call("eq", {*wide, plan::MakeLiteral(Value(1000), DataType::Long())})}),
            (Texts{"IsNotNull(a 0)@-1"}));
}

TEST(TellFilters, PatternsThatAreMoreThanTextAreNotTold) {
  const ExprPtr s = Column("s", DataType::String());
  const auto like = [&](const std::string& pattern) {
    return Told({Call("spark_like", {s, plan::MakeLiteral(Value(pattern), DataType::String()),
                                     plan::MakeLiteral(Value("\\"), DataType::String())})});
  };
  EXPECT_EQ(like("a%"), (Texts{"IsNotNull(s 0)@-1", "StringStartsWith(s 1)@0"}));
  EXPECT_EQ(like("%a%"), (Texts{"IsNotNull(s 0)@-1", "StringContains(s 1)@0"}));
  EXPECT_EQ(like("a%b"), (Texts{"IsNotNull(s 0)@-1", "StringStartsWith(s 1)@-1", "StringEndsWith(s 1)@-1"}));
  EXPECT_EQ(like("a_"), (Texts{"IsNotNull(s 0)@-1"}));
  EXPECT_EQ(like("a\\%"), (Texts{"IsNotNull(s 0)@-1"}));
}

TEST(WithPaths, OneIsAPathAndMoreAreAList) {
  EXPECT_EQ(WithPaths({{"PATH", "old"}}, {"/a"}), (plan::Options{{"path", "/a"}}));
  EXPECT_EQ(WithPaths({}, {"/a", "/b"}), (plan::Options{{"paths", "[\"/a\",\"/b\"]"}}));
}

}  // namespace
}  // namespace fleuve::connectors::user
