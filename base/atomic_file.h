// Files that are either whole or absent: written beside the target, synced, then renamed over it.
#pragma once

#include <string>
#include <string_view>

namespace dtrain {

// Replaces `path` by `content` and syncs file and directory. Missing parent directories are created.
// Throws IoError naming the path; an older file at `path` is then untouched.
void WriteFileAtomically(const std::string& path, std::string_view content);

}  // namespace dtrain
