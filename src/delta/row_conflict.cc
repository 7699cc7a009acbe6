#include <algorithm>
#include <iterator>

#include "delta/deletion_vector.h"
#include "delta/row_conflict_internal.h"

namespace fleuve::delta {
namespace {

using Rows = std::vector<std::uint64_t>;

Result<Rows> RowsOf(const std::optional<DeletionVectorDescriptor>& vector, const storage::Location& table) {
  if (!vector) {
    return Rows();
  }
  FLEUVE_ASSIGN(const auto rows, LoadDeletionVector(*vector, table));
  return rows->rows();
}

Rows Without(const Rows& rows, const Rows& gone) {
  Rows left;
  std::set_difference(rows.begin(), rows.end(), gone.begin(), gone.end(), std::back_inserter(left));
  return left;
}

}  // namespace

const AddFile* MarkedAgain(const std::vector<Action>& commit, const RemoveFile& removed) {
  for (const Action& action : commit) {
    if (const auto* add = std::get_if<AddFile>(&action);
        add != nullptr && add->path == removed.path && add->deletion_vector) {
      return add;
    }
  }
  return nullptr;
}

Result<bool> OnlyMarks(const RemoveFile& removed, const AddFile& again, const storage::Location& table) {
  FLEUVE_ASSIGN(const Rows before, RowsOf(removed.deletion_vector, table));
  FLEUVE_ASSIGN(const Rows after, RowsOf(again.deletion_vector, table));
  return Without(before, after).empty();
}

Result<std::optional<FollowedVector>> Follow(const RemoveFile& our_removal, const AddFile& ours,
                                             const RemoveFile& their_removal, const AddFile& theirs,
                                             const storage::Location& table) {
  if (our_removal.deletion_vector != their_removal.deletion_vector) {
    return std::optional<FollowedVector>();
  }
  FLEUVE_ASSIGN(const Rows before, RowsOf(our_removal.deletion_vector, table));
  FLEUVE_ASSIGN(const Rows our_rows, RowsOf(ours.deletion_vector, table));
  FLEUVE_ASSIGN(const Rows their_rows, RowsOf(theirs.deletion_vector, table));
  const Rows our_marks = Without(our_rows, before);
  Rows both;
  std::set_intersection(our_marks.begin(), our_marks.end(), their_rows.begin(), their_rows.end(),
                        std::back_inserter(both));
  // A vector that lost rows (a restored file) is none that only marked some.
  if (!both.empty() || !Without(before, their_rows).empty()) {
    return std::optional<FollowedVector>();
  }
  Rows all;
  std::set_union(our_marks.begin(), our_marks.end(), their_rows.begin(), their_rows.end(), std::back_inserter(all));
  FLEUVE_ASSIGN(WrittenDeletionVectors written, WriteDeletionVectors({std::move(all)}, table));
  FollowedVector out{our_removal, ours, std::move(written.file)};
  out.removed.deletion_vector = theirs.deletion_vector;
  out.added.deletion_vector = std::move(written.descriptors[0]);
  return std::optional<FollowedVector>(std::move(out));
}

}  // namespace fleuve::delta
