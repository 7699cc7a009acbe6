#pragma once

/// \file
/// Spark Connect's messages of functions in other languages, as our functions.

#include <memory>

#include "base/result.h"
#include "plan/external.h"

namespace spark::connect {
class CommonInlineUserDefinedFunction;
class CommonInlineUserDefinedTableFunction;
}  // namespace spark::connect

namespace fleuve::plan {

/// kUnsupported for Java and Scala functions. The result has no context yet.
Result<std::shared_ptr<const ExternalFunction>> ExternalFunctionFromProto(
    const spark::connect::CommonInlineUserDefinedFunction& proto);
/// A table function; its type is void where it has to be asked for it.
Result<std::shared_ptr<const ExternalFunction>> ExternalTableFunctionFromProto(
    const spark::connect::CommonInlineUserDefinedTableFunction& proto);

}  // namespace fleuve::plan
