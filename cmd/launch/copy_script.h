// What launch.copy runs on a machine: lines for /bin/sh, which with coreutils is all that has to be there.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cmd/launch/copied_files.h"

namespace dtrain {

// What SumsScript() says begins with these: a login shell may print lines of its own.
constexpr char kSum[] = "@sum ";         // and the sum of a file, or "none"
constexpr char kMissing[] = "@missing";  // the directory

// Every file's sum there, a line each; none where the directory is missing, and all is to be sent.
std::string SumsScript(const std::string& directory, const std::vector<CopiedFile>& files);

// What comes in becomes the file, once its sum is right. Where nothing more comes for `patience`, nor an end,
// the link was cut, which sshd may not notice for hours: then what there is of it is removed. `writer`:
// unlike that of all others who may send the same file.
std::string ReceiveScript(const std::string& directory, const CopiedFile& file, const std::string& sum,
                          const std::string& writer, std::chrono::seconds patience);

}  // namespace dtrain
