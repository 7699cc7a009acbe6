#include "plan/call_function.h"

#include "plan/function_builder.h"

namespace fleuve::plan {

Result<ExprPtr> CallFunction(std::string name, std::vector<ExprPtr> arguments, const AnalysisConfig& config) {
  FunctionCall call;
  call.name = std::move(name);
  call.arguments = std::move(arguments);
  call.argument_names.resize(call.arguments.size());
  call.config = &config;
  call.lambda_arity = [](std::size_t) { return std::size_t{0}; };
  return BuildFunction(call);
}

}  // namespace fleuve::plan
