#pragma once

/// \file
/// Schema resolution: how values that one schema wrote are read as values of another.

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "avro/schema.h"

namespace fleuve::avro {

/// What to do with the next bytes. Actions of recursive schemas lead back to themselves.
struct Action {
  enum class Op {
    kNull,
    kBoolean,
    kInt,
    kLong,
    kFloat,
    kDouble,
    kBytes,  ///< also text: told apart by the reader's kind
    kFixed,
    kEnum,
    kArray,
    kMap,
    kRecord,
    kWriterUnion,  ///< a branch number, then one of `children`
    kReaderUnion,  ///< `children[0]` as branch `branch` of the reader's union
    kError,        ///< values of the one schema cannot be read with the other
  };
  /// A field of the reader's record that the writer's lacks: its default value in binary form.
  struct Default {
    std::size_t field = 0;
    std::string bytes;
    const Action* action = nullptr;
  };

  Op op = Op::kError;
  const Node* writer = nullptr;
  const Node* reader = nullptr;
  std::vector<const Action*>
      children;             ///< element, value, fields of the writer (null: skipped), branches of the writer
  std::vector<int> fields;  ///< per field of the writer: its place in the reader's record, -1 = skipped
  std::vector<Default> defaults;
  std::vector<int> symbols;  ///< per symbol of the writer: the reader's, -1 = it has none
  int branch = 0;
};

/// Immutable. Threads: any.
class Resolution {
 public:
  /// \param writer, reader  may be one and the same. Never fails: what does not fit is an action `kError`, met only by
  /// values that come to it.
  Resolution(Schema writer, Schema reader);

  const Action& root() const { return *root_; }

 private:
  Schema writer_;
  Schema reader_;
  std::shared_ptr<const std::deque<Action>> actions_;
  const Action* root_;
};

}  // namespace fleuve::avro
