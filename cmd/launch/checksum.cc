#include "cmd/launch/checksum.h"

#include "base/error.h"
#include "cmd/launch/open_file.h"
#include "cmd/launch/run_there.h"

namespace dtrain {

std::string ChecksumLine(const std::string& path) {
  constexpr int kNotThere = 127;
  const OpenFile file(path);
  const Ran ran = RunThere("sha256sum", {"sha256sum"}, file.fd());
  if (ran.exit_code == kNotThere) throw UserError("launch.copy: no sha256sum here. Install coreutils.");
  if (ran.exit_code != 0) throw UserError("{}: cannot be read to be copied: {}", path, ran.last_words);
  return ran.output.substr(0, ran.output.find('\n'));
}

}  // namespace dtrain
