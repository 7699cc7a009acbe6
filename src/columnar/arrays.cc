#include "columnar/arrays.h"

#include <utility>

namespace fleuve::columnar {
namespace {

struct Owned {
  std::shared_ptr<const void> owner;
  std::vector<const void*> buffers;
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> child_pointers;
};

void Release(ArrowArray* array) {
  auto* owned = static_cast<Owned*>(array->private_data);
  for (ArrowArray& child : owned->children) {
    if (child.release != nullptr) {  // a reader may have moved it out
      child.release(&child);
    }
  }
  delete owned;
  array->release = nullptr;
}

}  // namespace

ArrowArray MakeArray(std::int64_t length, std::int64_t null_count, std::vector<const void*> buffers,
                     std::vector<ArrowArray> children, std::shared_ptr<const void> owner) {
  auto owned = std::make_unique<Owned>();
  owned->owner = std::move(owner);
  owned->buffers = std::move(buffers);
  owned->children = std::move(children);
  for (ArrowArray& child : owned->children) {
    owned->child_pointers.push_back(&child);
  }
  ArrowArray array{};
  array.length = length;
  array.null_count = null_count;
  array.n_buffers = static_cast<std::int64_t>(owned->buffers.size());
  array.buffers = owned->buffers.empty() ? nullptr : owned->buffers.data();
  array.n_children = static_cast<std::int64_t>(owned->children.size());
  array.children = owned->child_pointers.empty() ? nullptr : owned->child_pointers.data();
  array.release = Release;
  array.private_data = owned.release();
  return array;
}

ArrowArray ShareArray(const ArrowArray& array, const std::shared_ptr<ArrayHolder>& owner) {
  ArrowArray copy = array;
  copy.private_data = new std::shared_ptr<ArrayHolder>(owner);
  copy.release = [](ArrowArray* self) {
    delete static_cast<std::shared_ptr<ArrayHolder>*>(self->private_data);
    self->release = nullptr;
  };
  return copy;
}

RecordBatch MakeBatch(std::shared_ptr<const types::Schema> schema, std::int64_t row_count,
                      std::vector<ArrowArray> columns) {
  ArrowArray root = MakeArray(row_count, 0, {nullptr}, std::move(columns), nullptr);
  return RecordBatch{std::move(schema), std::make_shared<ArrayHolder>(&root)};
}

}  // namespace fleuve::columnar
