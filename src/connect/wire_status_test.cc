#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "connect/wire_status_internal.h"
#include "spark/connect/base.pb.h"

namespace fleuve::connect {
namespace {

using testing::HasSubstr;

TEST(WireStatusTest, StatusAndDetailsSayTheSame) {
  const Error error =
      Error(ErrorKind::kInvalidArgument, "DIVIDE_BY_ZERO", std::string(5000, 'x')).With("config", "\"c\"");
  const grpc::Status status = ToStatus(error, "id-1");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(status.error_message().size(), 2048u);
  EXPECT_THAT(status.error_message(), testing::EndsWith("..."));
  EXPECT_THAT(status.error_details(), HasSubstr(status.error_message()));
  EXPECT_THAT(status.error_details(), HasSubstr("type.googleapis.com/google.rpc.ErrorInfo"));
  EXPECT_THAT(status.error_details(), HasSubstr("java.lang.ArithmeticException"));
  EXPECT_THAT(status.error_details(), HasSubstr("22012"));
  EXPECT_THAT(status.error_details(), HasSubstr("id-1"));
}

TEST(WireStatusTest, ClassesFollowTheCondition) {
  const auto first = [](const std::string& condition, ErrorKind kind = ErrorKind::kInvalidArgument) {
    return ExceptionClasses(Error(kind, condition, "")).front();
  };
  EXPECT_EQ(first("PARSE_SYNTAX_ERROR"), "org.apache.spark.sql.catalyst.parser.ParseException");
  EXPECT_EQ(first("INVALID_HANDLE.SESSION_NOT_FOUND"), "org.apache.spark.SparkSQLException");
  EXPECT_EQ(first("DELTA_CONCURRENT_APPEND.WITHOUT_HINT"), "io.delta.exceptions.ConcurrentAppendException");
  EXPECT_EQ(first("INTERNAL_ERROR"), "org.apache.spark.sql.connect.common.InvalidPlanInput");
  EXPECT_EQ(first("INTERNAL_ERROR", ErrorKind::kInternal), "org.apache.spark.SparkException");
}

TEST(WireStatusTest, DetailsChainCausesAndAreReadOnce) {
  ErrorStore store;
  const Error error = Error(ErrorKind::kInvalidArgument, "STREAM_FAILED", "outer")
                          .CausedBy(Error(ErrorKind::kInvalidArgument, "DIVIDE_BY_ZERO", "inner"));
  const std::string id = store.Add("s", error);
  Error taken = Error::Internal("");
  EXPECT_FALSE(store.Take("other", id, &taken));
  ASSERT_TRUE(store.Take("s", id, &taken));
  EXPECT_FALSE(store.Take("s", id, &taken));
  spark::connect::FetchErrorDetailsResponse response;
  FillErrorDetails(taken, &response);
  ASSERT_EQ(response.errors_size(), 2);
  EXPECT_EQ(response.errors(0).cause_idx(), 1);
  EXPECT_EQ(response.errors(1).spark_throwable().error_class(), "DIVIDE_BY_ZERO");
}

}  // namespace
}  // namespace fleuve::connect
