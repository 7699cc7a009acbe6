#pragma once

/// \file
/// Spark Connect's messages of types and literals, to our types and values and back.

#include "base/result.h"
#include "plan/expr.h"
#include "types/data_type.h"
#include "types/value.h"

namespace spark::connect {
class DataType;
class Expression_Literal;
}  // namespace spark::connect

namespace fleuve::plan {

/// UNSUPPORTED_DATATYPE or kUnsupported by name where this build has no such type (UDT, geometry, time).
Result<types::DataType> TypeFromProto(const spark::connect::DataType& proto);
void TypeToProto(const types::DataType& type, spark::connect::DataType* proto);

/// A literal message as a typed kLiteral expression.
Result<ExprPtr> LiteralFromProto(const spark::connect::Expression_Literal& proto);
/// The message for a value; nested values carry their type in `data_type` and in the older fields.
Result<void> LiteralToProto(const types::Value& value, const types::DataType& type,
                            spark::connect::Expression_Literal* proto);

}  // namespace fleuve::plan
