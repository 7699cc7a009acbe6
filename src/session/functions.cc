// Functions in other languages that a client registers by name.

#include <spark/connect/commands.pb.h>

#include "plan/external_proto.h"
#include "python/external_runtime.h"
#include "session/executor_internal.h"
#include "session/user_code_internal.h"

namespace fleuve::session {

namespace sc = spark::connect;

std::shared_ptr<plan::ExternalRuntime> SessionResolver::External() {
  const auto& pool = state_.services().workers;
  if (pool == nullptr) {
    return nullptr;
  }
  // A streaming query may outlive the session: it keeps what it was started with.
  python::RuntimeSetup setup;
  setup.worker = WorkerSetupOf(state_.session());
  setup.limits = WorkerLimitsOf(state_.session(), *pool);
  return python::MakeExternalRuntime(pool, std::move(setup));
}

Result<void> Executor::RegisterFunction(const sc::CommonInlineUserDefinedFunction& proto) {
  if (proto.has_java_udf()) {
    const std::string& name = proto.java_udf().class_name();
    return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1329",
                 "Can not load class " + name + ", please make sure it is on the classpath.")
        .With("className", name);
  }
  plan::SqlFunction function;
  function.name = proto.function_name();
  FLEUVE_ASSIGN(function.external, plan::ExternalFunctionFromProto(proto));
  state_.PutFunction(proto.function_name(), std::move(function));
  return {};
}

Result<void> Executor::RegisterTableFunction(const sc::CommonInlineUserDefinedTableFunction& proto) {
  plan::SqlFunction function;
  function.name = proto.function_name();
  FLEUVE_ASSIGN(function.external, plan::ExternalTableFunctionFromProto(proto));
  state_.PutFunction(proto.function_name(), std::move(function));
  return {};
}

}  // namespace fleuve::session
