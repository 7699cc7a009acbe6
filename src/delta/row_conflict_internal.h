#pragma once

/// \file
/// Two commits that mark different rows of one file: the later one goes on from the earlier one's vector.

#include <optional>
#include <string>
#include <vector>

#include "delta/actions.h"
#include "delta/log.h"

namespace fleuve::delta {

/// The entry with which a commit puts a removed file back with another deletion vector; null where the file is gone.
const AddFile* MarkedAgain(const std::vector<Action>& commit, const RemoveFile& removed);

/// True where the file only lost rows: none came back, as a restore of an earlier vector brings them back.
Result<bool> OnlyMarks(const RemoveFile& removed, const AddFile& again, const storage::Location& table);

/// Our removal and addition of a file, made to follow those of a commit that was faster.
struct FollowedVector {
  RemoveFile removed;
  AddFile added;
  /// Absolute path of the new vector's file; not synced.
  std::string file;
};
/// nullopt where both marked a row, or where the other one did not begin from the vector that ours began from: a
/// conflict. \param theirs  what the faster commit made of the file.
Result<std::optional<FollowedVector>> Follow(const RemoveFile& our_removal, const AddFile& ours,
                                             const RemoveFile& their_removal, const AddFile& theirs,
                                             const storage::Location& table);

}  // namespace fleuve::delta
