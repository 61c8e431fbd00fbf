// The man page as groff reads it, and the completions as a person at a terminal of bash and zsh meets them.
#include <doctest/doctest.h>
#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/testing/files.h"
#include "cmd/grammar/command_line.h"
#include "cmd/grammar/manual.h"
#include "cmd/testing/job.h"
#include "cmd/testing/python.h"
#include "trainer/config/fields.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

bool Have(const std::string& program) {
  if (std::system(fmt::format("command -v {} >/dev/null", program).c_str()) == 0) return true;
  Skip(fmt::format("{} is not installed (scripts/install.sh --tests)", program));
  return false;
}

// A shell at a terminal of its own. Ended with the object.
class Shell {
 public:
  // `words` are the shell's command line; `variables` of its environment.
  Shell(std::vector<std::string> words, const std::vector<std::pair<std::string, std::string>>& variables) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      setenv("TERM", "dumb", 1);
      setenv("CALLED", called_.c_str(), 1);
      for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
      execvp(argv[0], argv.data());
      _exit(127);
    }
    REQUIRE(pid_ > 0);
    Await([this] { return Contains(shown_, "ready>"); });
  }
  ~Shell() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(terminal_);
  }
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  // Types the keys and Enter. The arguments that the shell then gives `dtrain`, one a line.
  std::string Type(const std::string& keys) {
    fs::remove(called_);
    const std::string line = keys + "\n";
    REQUIRE(write(terminal_, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
    Await([this] { return fs::exists(called_); });
    return FileContent(called_);
  }

 private:
  template <typename Condition>
  void Await(const Condition& condition) {
    const TimePoint deadline = Clock::now() + kPatience;
    while (!condition()) {
      pollfd waiting{terminal_, POLLIN, 0};
      poll(&waiting, 1, 100);
      char buffer[4096];
      const ssize_t got = waiting.revents != 0 ? read(terminal_, buffer, sizeof buffer) : 0;
      if (got > 0) shown_.append(buffer, static_cast<size_t>(got));
      INFO(shown_);
      REQUIRE(got >= 0);
      REQUIRE(Clock::now() < deadline);
    }
  }

  const std::string called_ = NewDirectory() + "/called";
  std::string shown_;
  int terminal_ = -1;
  pid_t pid_ = -1;
};

// Tabs stand where they are pressed.
void CheckCompletions(Shell& shell) {
  CHECK(shell.Type("dtrain loc\t") == "local\n");
  CHECK(shell.Type("dtrain --vers\t") == "--version\n");
  CHECK(shell.Type("dtrain --ro\twor\t") == "--role\nworker\n");
  CHECK(shell.Type("dtrain local --in-p\t--work\t3") == "local\n--in-process\n--workers\n3\n");
  CHECK(shell.Type("dtrain check --conf\tcmd/grammar/testd\tbash\t") ==
        "check\n--config\ncmd/grammar/testdata/bashrc\n");
  CHECK(shell.Type("dtrain local --set train.mod\tsy\t--set data.tri\tf\t") ==
        "local\n--set\ntrain.mode=sync\n--set\ndata.trim=false\n");
  CHECK(shell.Type("dtrain local --set train.optimizer.ki\tada\tm\t") ==
        "local\n--set\ntrain.optimizer.kind=adam\n");
  CHECK(shell.Type("dtrain local --set log.di\tcmd/grammar/testd\t") ==
        "local\n--set\nlog.dir=cmd/grammar/testdata/\n");
  CHECK(shell.Type("dtrain inspect cmd/grammar/testd\t") == "inspect\ncmd/grammar/testdata/\n");
  // Options of another command are not offered.
  CHECK(shell.Type("dtrain check --in-p\t") == "check\n--in-p\n");
}

// Writes what --generate prints into a new file.
std::string WriteGenerated(const std::string& what, const std::string& name) {
  std::string path = NewDirectory() + "/" + name;
  std::ofstream(path) << Generated(what);
  return path;
}

TEST_CASE("completions: bash completes commands, options, keys, values and files") {
  if (!Have("bash") || !fs::exists("/usr/share/bash-completion/bash_completion")) return;
  Shell shell({"bash", "--noprofile", "--rcfile", "cmd/grammar/testdata/bashrc", "-i"},
              {{"COMPLETIONS", WriteGenerated("bash", "dtrain.bash")}});
  CheckCompletions(shell);
}

TEST_CASE("completions: zsh completes the same") {
  if (!Have("zsh")) return;
  const std::string folder = NewDirectory();
  fs::copy_file("cmd/grammar/testdata/zshrc", folder + "/.zshrc");
  fs::copy_file(WriteGenerated("zsh", "_dtrain"), folder + "/_dtrain");
  Shell shell({"zsh", "-d", "-i"}, {{"ZDOTDIR", folder}});
  CheckCompletions(shell);
}

TEST_CASE("completions: fish completes the same") {
  if (!Have("fish")) return;
  const std::string path = WriteGenerated("fish", "dtrain.fish");
  // What fish offers behind `line`, without the descriptions.
  const auto offered = [&](const std::string& line) {
    const std::string script =
        fmt::format("source {}; complete -C '{}' | string replace -r '\\t.*' ''; true", path, line);
    return OutputOf(fmt::format("fish --no-config -c \"{}\"", script));
  };
  CHECK(offered("dtrain loc") == "local\n");
  CHECK(offered("dtrain --vers") == "--version\n");
  CHECK(offered("dtrain --role w") == "worker\n");
  CHECK(offered("dtrain local --in-p") == "--in-process\n");
  CHECK(offered("dtrain check --in-p") == "");
  CHECK(offered("dtrain local --set train.mod") == "train.mode=\n");
  CHECK(offered("dtrain local --set train.mode=sy") == "train.mode=sync\n");
  CHECK(offered("dtrain local --set log.dir=cmd/grammar/testd") == "log.dir=cmd/grammar/testdata/\n");
  CHECK(offered("dtrain check --config cmd/grammar/testdata/bash") == "cmd/grammar/testdata/bashrc\n");
}

TEST_CASE("completions: bash finds no fault in its own, and shellcheck no trap") {
  const std::string path = WriteGenerated("bash", "dtrain.bash");
  CHECK(std::system(("bash -n " + path).c_str()) == 0);
  if (!Have("shellcheck")) return;
  CHECK(std::system(("shellcheck -s bash " + path).c_str()) == 0);
}

TEST_CASE("man page: groff reads it without a warning, and shows every command, key and exit code") {
  if (!Have("groff")) return;
  const std::string groff =
      "groff -man -ww -Tascii -P-cbou -rLL=400n " + WriteGenerated("man", "dtrain.1") + " ";
  CHECK(OutputOf(groff + "2>&1 >/dev/null") == "");
  const std::string text = OutputOf(groff);
  for (const CommandText& command : DescribeCommandLine().commands) {
    CAPTURE(command.name);
    CHECK(Contains(text, "dtrain " + command.name));
    CHECK(Contains(text, command.text));
  }
  for (const Field& field : Fields()) {
    CAPTURE(field.key);
    CHECK(Contains(text, field.key));
  }
  for (const char* part :
       {"EXIT CODES", "130 SIGINT, 143 SIGTERM", "ENVIRONMENT", "CUDA_VISIBLE_DEVICES", "FILES", "EXAMPLES",
        "-h,--help", "checkpoint.dir/best", "ps-0/, eval/", "dtrain local configs/quickstart_digits.yaml"}) {
    CAPTURE(part);
    CHECK(Contains(text, part));
  }
}

}  // namespace
}  // namespace dtrain::testing
