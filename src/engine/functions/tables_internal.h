#pragma once

/// \file
/// The tables of functions, one per file of this folder.

#include "engine/functions/register_internal.h"

namespace fleuve::engine {

const ScalarTable& ArithmeticKernels();
const ScalarTable& ArrayKernels();
const ScalarTable& ArrayOrderKernels();
const ScalarTable& HigherOrderKernels();
const ScalarTable& MapKernels();
const ScalarTable& JsonPathKernels();
const ScalarTable& TextFormatKernels();
const ScalarTable& VariantKernels();
const ScalarTable& BitmapKernels();
const ScalarTable& CastKernels();
const ScalarTable& CipherKernels();
const ScalarTable& ConditionalKernels();
const ScalarTable& DateKernels();
const ScalarTable& DateFormatKernels();
const ScalarTable& FormatKernels();
const ScalarTable& HashKernels();
const ScalarTable& IntervalKernels();
const ScalarTable& MathKernels();
const ScalarTable& MiscKernels();
const ScalarTable& NestedKernels();
const ScalarTable& OrderKeyKernels();
const ScalarTable& RegexpKernels();
const ScalarTable& StringKernels();
const ScalarTable& TextCodecKernels();

const AggregateTable& SumAggregates();
const AggregateTable& OrderAggregates();
const AggregateTable& SketchAggregates();
const AggregateTable& BitmapAggregates();
const AggregateTable& StatisticAggregates();
const AggregateTable& CollectAggregates();
const AggregateTable& VariantAggregates();

}  // namespace fleuve::engine
