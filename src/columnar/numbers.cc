#include "columnar/numbers.h"

namespace fleuve::columnar {
namespace {

/// What the struct array of a batch and its only child own.
struct Owned {
  std::vector<std::int64_t> numbers;
  const void* child_buffers[2] = {nullptr, nullptr};
  const void* buffers[1] = {nullptr};
  ArrowArray child{};
  ArrowArray* children[1] = {nullptr};
};

void ReleaseChild(ArrowArray* array) { array->release = nullptr; }

void Release(ArrowArray* array) {
  delete static_cast<Owned*>(array->private_data);
  array->release = nullptr;
}

}  // namespace

RecordBatch BatchOfNumbers(std::string name, std::vector<std::int64_t> numbers) {
  auto* owned = new Owned();
  owned->numbers = std::move(numbers);
  owned->child_buffers[1] = owned->numbers.data();
  owned->child.length = static_cast<std::int64_t>(owned->numbers.size());
  owned->child.n_buffers = 2;
  owned->child.buffers = owned->child_buffers;
  owned->child.release = ReleaseChild;
  owned->children[0] = &owned->child;
  ArrowArray array{};
  array.length = owned->child.length;
  array.n_buffers = 1;
  array.n_children = 1;
  array.buffers = owned->buffers;
  array.children = owned->children;
  array.private_data = owned;
  array.release = Release;
  RecordBatch batch;
  batch.schema = std::make_shared<const types::Schema>(
      types::DataType::Struct({{std::move(name), types::DataType::Long(), false, Json(Json::Object{})}}));
  batch.array = std::make_shared<ArrayHolder>(&array);
  return batch;
}

}  // namespace fleuve::columnar
