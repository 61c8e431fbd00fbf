#include "cmd/launch/copy_script.h"

#include <fmt/format.h>

#include "cmd/launch/shell_quote.h"

namespace dtrain {
namespace {

// Standard input to `part`; ends the shell where not all has come. The second process of it looks whether the
// first gets on, and ends soon after it. It has nothing of ssh's open, which would wait for it.
std::string WatchedInput(const std::string& part, std::chrono::seconds patience) {
  return fmt::format(
      "exec 3<&0; cat <&3 > {0} & receiver=$!; "
      "(quiet=0; while kill -0 $receiver && sleep 1; do now=$(ls -ln {0}); "
      "if [ \"$now\" = \"$before\" ]; then quiet=$((quiet + 1)); else quiet=0; before=$now; fi; "
      "if [ $quiet -ge {1} ]; then kill $receiver; fi; done) < /dev/null > /dev/null 2>&1 3<&- & "
      "wait $receiver; got=$?; "
      "if [ $got -ne 0 ]; then rm -f {0}; if [ $got -gt 128 ]; then echo 'nothing has come for {1} s.' >&2; "
      "fi; "
      "exit 1; fi; ",
      part, patience.count());
}

}  // namespace

std::string SumsScript(const std::string& directory, const std::vector<CopiedFile>& files) {
  std::string looks;
  for (const CopiedFile& file : files) {
    const bool runs = (file.mode[0] & 1) != 0;  // by its owner
    looks += fmt::format("; look {} {}", ShellQuoted("./" + file.to), runs ? "-x" : "-r");
  }
  return fmt::format(
      "command -v sha256sum >/dev/null || {{ echo 'no sha256sum is there. Install coreutils.' >&2; exit 1; "
      "}}; "
      "echo; [ -d {0} ] || echo {1}; cd {0} 2>/dev/null || exit 0; "
      "look() {{ printf {2}; if [ -f \"$1\" ] && [ $2 \"$1\" ]; then sha256sum < \"$1\"; else echo none; fi; "
      "}}"
      "{3}",
      ShellQuoted(directory), kMissing, ShellQuoted(kSum), looks);
}

std::string ReceiveScript(const std::string& directory, const CopiedFile& file, const std::string& sum,
                          const std::string& writer, std::chrono::seconds patience) {
  const std::string to = "./" + file.to;
  const std::string part = ShellQuoted(fmt::format("{}.tmp-{}", to, writer));
  // Where ssh has gone nobody reads what the shell says, which must not end it before it has removed the
  // part.
  const std::string begin =
      fmt::format("trap '' PIPE; umask 022; mkdir -p {0} && cd {0} && mkdir -p {1} || exit 1; ",
                  ShellQuoted(directory), ShellQuoted(to.substr(0, to.rfind('/'))));
  return begin + WatchedInput(part, patience) +
         fmt::format(
             "if [ -d {2} ]; then rm -f {0}; echo 'a directory has the name of '{2}'. Remove it.' >&2; exit "
             "1; fi; "
             "if [ \"$(sha256sum < {0})\" = {1} ]; then chmod {3} {0} && mv -f {0} {2} && exit; rm -f {0}; "
             "else rm -f {0}; echo 'the copy has another checksum. Is the disk there full?' >&2; fi; exit 1",
             part, ShellQuoted(sum), ShellQuoted(to), file.mode);
}

}  // namespace dtrain
