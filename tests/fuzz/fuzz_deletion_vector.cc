#include "base/bytes.h"
#include "delta/deletion_vector.h"
#include "storage/memory_store.h"
#include "tests/fuzz/fuzzer.h"

// The z85 text of vectors with an array, with a run and with a bitset container.
const char* const kSeeds[] = {"^Bg9^0rr910000000000iXQKl0rr91000625c8Xg000936951j",
                              "^Bg9^0rr910000000000ip9ku0000000000000000000000000000000000000000", "", nullptr};

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fleuve;
  const std::string_view text = AsText(data, size);
  static const auto store = storage::MemoryStore::Make();
  const storage::Location table{store, "/t"};
  delta::DeletionVectorDescriptor vector;
  vector.cardinality = 3;
  vector.size_in_bytes = 38;
  vector.storage_type = "i";
  vector.path_or_inline_dv = std::string(text);
  (void)delta::LoadDeletionVector(vector, table);
  // The same bytes as a file, with and without a size and a checksum that fit.
  auto body = delta::Z85Decode(text);
  const std::string bytes = body.ok() ? *body : std::string(text);
  static int number = 0;
  const std::string path = "/t/v" + std::to_string(number++);
  store->Put(path, bytes, storage::PutMode::kOverwrite).IgnoreBecause("memory");
  vector.storage_type = "p";
  vector.path_or_inline_dv = path;
  for (const std::int32_t wrong : {static_cast<std::int32_t>(bytes.size()), 0, -1, 0x7FFFFFFF}) {
    vector.size_in_bytes = wrong;
    vector.offset = wrong / 2;
    (void)delta::LoadDeletionVector(vector, table);
  }
  store->Delete(path).IgnoreBecause("memory");
  vector.storage_type = size % 2 == 0 ? "u" : std::string(text.substr(0, 1));
  vector.path_or_inline_dv = std::string(text);
  (void)delta::DeletionVectorPath(vector, table);
  (void)delta::LoadDeletionVector(vector, table);
  return 0;
}
