#include "columnar/numbers.h"

#include <utility>

#include "columnar/arrays.h"

namespace fleuve::columnar {

RecordBatch BatchOfNumbers(std::string name, std::vector<std::int64_t> numbers) {
  const auto owner = std::make_shared<const std::vector<std::int64_t>>(std::move(numbers));
  const auto count = static_cast<std::int64_t>(owner->size());
  auto schema = std::make_shared<const types::Schema>(
      types::DataType::Struct({{std::move(name), types::DataType::Long(), false, Json(Json::Object{})}}));
  return MakeBatch(std::move(schema), count, {MakeArray(count, 0, {nullptr, owner->data()}, {}, owner)});
}

}  // namespace fleuve::columnar
