# Our own DuckDB functions: their sources and what they link.
set(ENGINE_FUNCTIONS_SOURCES
  functions/aggregate_collect.cc
  functions/aggregate_order.cc
  functions/aggregate_statistics.cc
  functions/aggregate_sum.cc
  functions/arithmetic.cc
  functions/array_order.cc
  functions/arrays.cc
  functions/cast.cc
  functions/conditional.cc
  functions/date_formats.cc
  functions/date_pattern.cc
  functions/dates.cc
  functions/decimals.cc
  functions/elements.cc
  functions/formats.cc
  functions/hashes.cc
  functions/higher_order.cc
  functions/intervals.cc
  functions/json_path.cc
  functions/maps.cc
  functions/math.cc
  functions/misc.cc
  functions/nested.cc
  functions/order_key.cc
  functions/regexp.cc
  functions/registry.cc
  functions/strings.cc
  functions/text_codecs.cc
  functions/text_formats.cc
  functions/text_numbers.cc
  functions/value_text.cc
  functions/variant_value.cc
  functions/variants.cc)
find_package(OpenSSL REQUIRED)
set(ENGINE_FUNCTIONS_LIBRARIES ICU::i18n ICU::uc ICU::data OpenSSL::Crypto ZLIB::ZLIB)
