#pragma once

/// \file
/// Functions of text and binary formats: their options, and those of them that have a file of their own.

#include "plan/functions/registry_internal.h"
#include "plan/scan.h"

namespace fleuve::plan::functions {

/// The value of a literal, also under casts to string; null where it is none.
const types::Value* ConstantOf(const ExprPtr& expr);
/// The options that a map of constant strings holds, as argument `i`; none where there is no such argument.
Result<Options> OptionsOf(Call& call, std::size_t i);
/// Options as one constant of the call (key, value, key, value, ...), then the session's zone.
void HideOptions(Call& call, const Options& options);

// avro.cc
Result<ExprPtr> BuildFromAvro(Call& call);
Result<ExprPtr> BuildToAvro(Call& call);
Result<ExprPtr> BuildSchemaOfAvro(Call& call);

// protobuf.cc
Result<ExprPtr> BuildFromProtobuf(Call& call);
Result<ExprPtr> BuildToProtobuf(Call& call);

}  // namespace fleuve::plan::functions
