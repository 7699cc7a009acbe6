#include "connect/client.h"

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "columnar/ipc.h"
#include "spark/connect/base.grpc.pb.h"

namespace fleuve::connect {
namespace {

namespace sc = spark::connect;

constexpr int kMessageBytesMax = 128 << 20;

struct Address {
  std::string target;
  std::map<std::string, std::string> parameters;
};

Result<Address> ParseUrl(const std::string& url) {
  const auto refuse = [&](const char* why) {
    return Error(ErrorKind::kInvalidArgument, "CONNECT_URL_NOT_VALID",
                 "'" + url + "' is no address of a Spark Connect server: " + why + "; write sc://host:port");
  };
  if (!url.starts_with("sc://")) {
    return refuse("it does not begin with sc://");
  }
  std::string rest = url.substr(5);
  Address address;
  const auto slash = rest.find('/');
  if (slash != rest.npos) {
    const std::string tail = rest.substr(slash + 1);
    rest.resize(slash);
    for (const auto& pair : Split(tail, ';')) {
      const auto equals = pair.find('=');
      if (pair.empty()) {
        continue;
      }
      if (equals == pair.npos) {
        return refuse("a parameter has no '='");
      }
      address.parameters[pair.substr(0, equals)] = PercentDecode(pair.substr(equals + 1));
    }
  }
  if (rest.empty()) {
    return refuse("the host is missing");
  }
  const auto bracket = rest.rfind(']');
  const bool has_port = rest.find(':', bracket == rest.npos ? 0 : bracket) != rest.npos;
  address.target = has_port ? rest : rest + ":15002";
  return address;
}

class GrpcClient final : public Client {
 public:
  GrpcClient(std::unique_ptr<sc::SparkConnectService::Stub> stub, Address address)
      : stub_(std::move(stub)), address_(std::move(address)), session_id_(NewUuid()) {}

  Result<std::string> RunSql(const std::string& text, std::int64_t max_rows) override {
    sc::Plan plan;
    plan.mutable_command()->mutable_sql_command()->mutable_input()->mutable_sql()->set_query(text);
    sc::Relation result;
    bool has_result = false;
    FLEUVE_TRY(Execute(plan, [&](const sc::ExecutePlanResponse& response) {
      if (response.has_sql_command_result()) {
        result = response.sql_command_result().relation();
        has_result = true;
      }
      return Result<void>();
    }));
    if (!has_result) {
      return std::string();
    }
    FLEUVE_ASSIGN(const bool has_columns, HasColumns(result));
    if (!has_columns) {
      return std::string();
    }
    sc::Plan show;
    auto* show_string = show.mutable_root()->mutable_show_string();
    *show_string->mutable_input() = std::move(result);
    show_string->set_num_rows(static_cast<int>(max_rows));
    show_string->set_truncate(0);
    std::string shown;
    FLEUVE_TRY(Execute(show, [&](const sc::ExecutePlanResponse& response) -> Result<void> {
      if (response.has_arrow_batch()) {
        shown += response.arrow_batch().data();
      }
      return {};
    }));
    return TextOfShow(shown);
  }

  void Interrupt() override {
    sc::InterruptRequest request;
    Identify(&request);
    request.set_interrupt_type(sc::InterruptRequest::INTERRUPT_TYPE_ALL);
    sc::InterruptResponse response;
    grpc::ClientContext context;
    Prepare(&context);
    (void)stub_->Interrupt(&context, request, &response);
  }

  void Release() override {
    sc::ReleaseSessionRequest request;
    Identify(&request);
    sc::ReleaseSessionResponse response;
    grpc::ClientContext context;
    Prepare(&context);
    (void)stub_->ReleaseSession(&context, request, &response);
  }

 private:
  template <typename Request>
  void Identify(Request* request) {
    request->set_session_id(session_id_);
    request->set_client_type("fleuve");
    const auto user = address_.parameters.find("user_id");
    request->mutable_user_context()->set_user_id(user == address_.parameters.end() ? "fleuve" : user->second);
  }

  void Prepare(grpc::ClientContext* context) {
    for (const auto& [key, value] : address_.parameters) {
      if (key == "token") {
        context->AddMetadata("authorization", "Bearer " + value);
      } else if (key != "user_id" && key != "use_ssl" && key != "user_agent" && key != "session_id") {
        context->AddMetadata(key, value);
      }
    }
  }

  static Error FromStatus(const grpc::Status& status) {
    const bool absent = status.error_code() == grpc::StatusCode::UNAVAILABLE;
    return Error(absent ? ErrorKind::kTransient : ErrorKind::kInvalidArgument, "", status.error_message());
  }

  Result<void> Execute(const sc::Plan& plan, const std::function<Result<void>(const sc::ExecutePlanResponse&)>& take) {
    sc::ExecutePlanRequest request;
    Identify(&request);
    request.set_operation_id(NewUuid());
    *request.mutable_plan() = plan;
    grpc::ClientContext context;
    Prepare(&context);
    const auto reader = stub_->ExecutePlan(&context, request);
    sc::ExecutePlanResponse response;
    Result<void> taken;
    while (taken.ok() && reader->Read(&response)) {
      taken = take(response);
    }
    if (!taken.ok()) {
      context.TryCancel();
    }
    const grpc::Status status = reader->Finish();
    FLEUVE_TRY(std::move(taken));
    if (!status.ok()) {
      return FromStatus(status);
    }
    return {};
  }

  Result<bool> HasColumns(const sc::Relation& relation) {
    sc::AnalyzePlanRequest request;
    Identify(&request);
    *request.mutable_schema()->mutable_plan()->mutable_root() = relation;
    sc::AnalyzePlanResponse response;
    grpc::ClientContext context;
    Prepare(&context);
    const grpc::Status status = stub_->AnalyzePlan(&context, request, &response);
    if (!status.ok()) {
      return FromStatus(status);
    }
    return response.schema().schema().struct_().fields_size() > 0;
  }

  /// The one string of a show_string answer: an IPC stream of one row and one string column.
  static Result<std::string> TextOfShow(const std::string& ipc);

  std::unique_ptr<sc::SparkConnectService::Stub> stub_;
  Address address_;
  std::string session_id_;
};

Result<std::string> GrpcClient::TextOfShow(const std::string& ipc) {
  FLEUVE_ASSIGN(const auto content, columnar::DecodeIpcStream(ipc));
  std::string text;
  for (const auto& batch : content.batches) {
    FLEUVE_ASSIGN(const auto rows, columnar::RowsFromBatch(batch));
    for (const auto& row : rows) {
      text += row.at(0).is_null() ? "" : row.at(0).text();
    }
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<Client>> Client::Connect(const std::string& url) {
  FLEUVE_ASSIGN(Address address, ParseUrl(url));
  const auto tls = address.parameters.find("use_ssl");
  const bool secure = address.parameters.contains("token") ||
                      (tls != address.parameters.end() && EqualsIgnoreAsciiCase(tls->second, "true"));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetMaxSendMessageSize(kMessageBytesMax);
  const auto channel = grpc::CreateCustomChannel(
      address.target, secure ? grpc::SslCredentials({}) : grpc::InsecureChannelCredentials(), arguments);
  if (!channel->WaitForConnected(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(10, GPR_TIMESPAN)))) {
    return Error(ErrorKind::kTransient, "CONNECT_UNREACHABLE",
                 "no Spark Connect server answers at " + url + "; start one with: fleuve server");
  }
  return std::unique_ptr<Client>(
      std::make_unique<GrpcClient>(spark::connect::SparkConnectService::NewStub(channel), std::move(address)));
}

}  // namespace fleuve::connect
