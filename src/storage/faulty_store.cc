#include "storage/memory_store.h"

namespace fleuve::storage {
namespace {

class FaultyStore final : public ObjectStore {
 public:
  using Decide = std::function<Fault(std::string_view, std::string_view)>;
  FaultyStore(std::shared_ptr<ObjectStore> inner, Decide decide)
      : inner_(std::move(inner)), decide_(std::move(decide)) {}

  bool is_local() const override { return inner_->is_local(); }

  Result<std::string> Get(std::string_view path) override {
    return Run<std::string>("Get", path, [&] { return inner_->Get(path); });
  }
  Result<std::string> GetRange(std::string_view path, std::int64_t offset, std::int64_t length) override {
    return Run<std::string>("GetRange", path, [&] { return inner_->GetRange(path, offset, length); });
  }
  Result<ObjectMeta> Head(std::string_view path) override {
    return Run<ObjectMeta>("Head", path, [&] { return inner_->Head(path); });
  }
  Result<void> Put(std::string_view path, std::string_view bytes, PutMode mode) override {
    return Run<void>("Put", path, [&] { return inner_->Put(path, bytes, mode); });
  }
  Result<void> Delete(std::string_view path) override {
    return Run<void>("Delete", path, [&] { return inner_->Delete(path); });
  }
  Result<void> DeleteAll(std::string_view path) override {
    return Run<void>("DeleteAll", path, [&] { return inner_->DeleteAll(path); });
  }
  Result<void> CreateDirectory(std::string_view path) override {
    return Run<void>("CreateDirectory", path, [&] { return inner_->CreateDirectory(path); });
  }
  Result<std::vector<ObjectMeta>> List(std::string_view folder, std::string_view start_after) override {
    return Run<std::vector<ObjectMeta>>("List", folder, [&] { return inner_->List(folder, start_after); });
  }
  Result<std::vector<ObjectMeta>> ListRecursive(std::string_view folder) override {
    return Run<std::vector<ObjectMeta>>("ListRecursive", folder, [&] { return inner_->ListRecursive(folder); });
  }
  Result<std::string> Stage(std::string_view path, std::string_view bytes, std::string_view attempt) override {
    return Run<std::string>("Stage", path, [&] { return inner_->Stage(path, bytes, attempt); });
  }
  Result<void> CommitStaged(std::string_view staged, std::string_view path) override {
    return Run<void>("CommitStaged", path, [&] { return inner_->CommitStaged(staged, path); });
  }
  Result<void> Sync(std::span<const std::string> files, std::span<const std::string> folders) override {
    const std::string_view first = !files.empty() ? files[0] : !folders.empty() ? folders[0] : std::string_view();
    return Run<void>("Sync", first, [&] { return inner_->Sync(files, folders); });
  }

 private:
  template <typename T, typename Call>
  Result<T> Run(std::string_view operation, std::string_view path, const Call& call) {
    const std::string what = std::string(operation) + " " + std::string(path);
    switch (decide_(operation, path)) {
      case Fault::kNone:
        break;
      case Fault::kFailBefore:
        return Error(ErrorKind::kTransient, "", "injected: " + what + " was not carried out");
      case Fault::kFailAfter: {
        auto lost = call();
        if (!lost.ok()) {
          return lost;
        }
        return Error(ErrorKind::kOutcomeUnknown, "", "injected: the answer to " + what + " was lost");
      }
      case Fault::kFailUnknown:
        return Error(ErrorKind::kOutcomeUnknown, "", "injected: no answer to " + what);
    }
    return call();
  }

  std::shared_ptr<ObjectStore> inner_;
  Decide decide_;
};

}  // namespace

std::shared_ptr<ObjectStore> MakeFaultyStore(std::shared_ptr<ObjectStore> inner,
                                             std::function<Fault(std::string_view, std::string_view)> decide) {
  return std::make_shared<FaultyStore>(std::move(inner), std::move(decide));
}

}  // namespace fleuve::storage
