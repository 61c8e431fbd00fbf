#include "cmd/launch/ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "cmd/common/signal_pipe.h"
#include "cmd/run/child_process.h"

namespace dtrain {
namespace {

// This thread learns of a child's end only by the end of its output, which may come a moment before, or never
// if a process that the child started goes on.
constexpr milliseconds kUntilReaped{5};
constexpr milliseconds kPollInterval{500};

struct KnownFailure {
  const char* words;   // a part of the message of ssh, a shell or an older dtrain
  const char* remedy;  // {} is the machine, [] the ssh arguments; a command comes last, to be copied
  bool of_dtrain = false;
};

constexpr char kOlder[] = "An older dtrain is there. Install this version, or set launch.copy: true.";

const std::vector<KnownFailure>& KnownFailures() {
  static const std::vector<KnownFailure> all = {
      {"unknown command", kOlder, true},
      {"unknown option", kOlder, true},
      {"Host key verification failed",
       "Its key is not known here, or has changed: compare it while you connect once by hand: ssh [] true"},
      {"Permission denied (", "It takes none of your keys. Set launch.hosts.{}.user, or: ssh-copy-id []"},
      {"Could not resolve hostname", "Set launch.hosts.{}.address to where ssh reaches it."},
      {"Connection refused", "Does sshd run there? A port other than 22 goes into launch.ssh_config."},
      {"timed out", "Is it up, and can it be reached from here?"},
      {"No route to host", "Is it up, and can it be reached from here?"},
      {"Exec format error",
       "It is a dtrain for another kind of processor. Install one for that machine, or set "
       "launch.hosts.{}.program."},
      {"error while loading shared libraries",
       "Install the libraries that scripts/packages.txt names there, or launch the packaged dtrain with "
       "launch.copy: true."},
      {"ssh: No such file or directory",
       "That is this machine's own client: install it (openssh-client), or add its directory to PATH."},
      {"No such file or directory",
       "Install dtrain there under the same path, set launch.hosts.{}.program, or launch.copy: true."},
      {"not found", "Install dtrain there, set launch.hosts.{}.program, or launch.copy: true."},
      {"Permission denied", "Is launch.hosts.{}.program a program that this user may run?"},
  };
  return all;
}

std::string Replaced(std::string text, const std::string& mark, const std::string& by) {
  for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += by.size()) {
    text.replace(at, mark.size(), by);
  }
  return text;
}

// Returns an empty text if the message itself contains the remedy.
std::string Remedy(const std::string& said, const std::string& machine, const std::string& login) {
  const bool own = said.rfind("dtrain: ", 0) == 0;
  for (const KnownFailure& known : KnownFailures()) {
    const bool fits = said.find(known.words) != std::string::npos;
    if (fits && own == known.of_dtrain) return Replaced(Replaced(known.remedy, "{}", machine), "[]", login);
  }
  return own ? "" : "See what dtrain launch --dry-run prints, and try that by hand.";
}

}  // namespace

CommandResult RunCommand(const std::string& name, const std::vector<std::string>& command, int input,
                         milliseconds timeout, const std::atomic<bool>* stop) {
  ChildCommand child;
  child.name = name;
  child.program = command.front();
  child.arguments.assign(command.begin() + 1, command.end());
  child.input = input;
  CommandResult result;
  int64_t said = 0, progress = 0;
  bool killed = false;
  const auto take_line = [&](const std::string& line) {
    if (!killed) result.last_error = Printable(line.substr(0, line.find_first_of("\r\n")));
    said += static_cast<int64_t>(line.size());
  };
  ChildProcess process(child, {take_line, [&](const std::string& line) { result.output += line; }});
  TimePoint give_up_at = Clock::now() + timeout;
  while (!process.HasEnded()) {
    std::vector<pollfd> waiting;
    process.Await(&waiting);
    const TimePoint look_at = Clock::now() + (waiting.empty() ? kUntilReaped : kPollInterval);
    poll(waiting.data(), waiting.size(), PollTimeout(killed ? look_at : std::min(look_at, give_up_at)));
    process.Read();
    // The file offset is shared by all processes that have the file open.
    const int64_t so_far = said + static_cast<int64_t>(result.output.size()) + lseek(input, 0, SEEK_CUR);
    if (std::exchange(progress, so_far) != so_far) give_up_at = Clock::now() + timeout;
    const bool stopped = stop != nullptr && *stop;
    if (killed || (Clock::now() < give_up_at && !stopped)) continue;
    killed = true;
    result.last_error =
        stopped ? "stopped." : fmt::format("no answer for {} s.", static_cast<double>(timeout.count()) / 1e3);
    process.KillGroup();
  }
  result.exit_code = process.exit().signal != 0 ? 128 + process.exit().signal : process.exit().code;
  return result;
}

OpenFile::OpenFile(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (fd_ < 0) throw UserError("{}: cannot be read to be copied: {}.", path, ErrnoText(errno));
}

OpenFile::~OpenFile() { close(fd_); }

std::string ChecksumLine(const std::string& path) {
  constexpr int kNotFound = 127;
  const OpenFile file(path);
  const CommandResult ran = RunCommand("sha256sum", {"sha256sum"}, file.fd());
  if (ran.exit_code == kNotFound) throw UserError("launch.copy: no sha256sum here. Install coreutils.");
  if (ran.exit_code != 0) throw UserError("{}: cannot be read to be copied: {}", path, ran.last_error);
  return ran.output.substr(0, ran.output.find('\n'));
}

std::optional<TimePoint> Retry::Next() {
  constexpr int kMinMs = 50, kMaxMs = 4000;
  const TimePoint now = Clock::now();
  if (now >= until_) return std::nullopt;
  std::uniform_int_distribution<int> pause_ms(kMinMs, max_ms_);
  max_ms_ = std::min(2 * max_ms_, kMaxMs);
  return now + milliseconds(pause_ms(random_));
}

std::string AsSentence(const std::string& said) {
  if (said.empty()) return "it ended without a word.";
  return said.back() == '.' || said.back() == '?' ? said : said + ".";
}

std::string WithRemedy(const std::string& said, const std::string& machine, const std::string& login) {
  const std::string remedy = Remedy(said, machine, login);
  return AsSentence(said) + (remedy.empty() ? "" : " " + remedy);
}

bool IsTransient(const std::string& said) {
  // The machine is slow to accept us; if it cannot be reached, the message is "connect to host ... timed
  // out".
  if (said.find("Connection to ") != std::string::npos && said.find("timed out") != std::string::npos) {
    return true;
  }
  for (const char* words :
       {"Connection closed by", "Connection reset by", "kex_exchange_identification", "Timeout, server"}) {
    if (said.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace dtrain
