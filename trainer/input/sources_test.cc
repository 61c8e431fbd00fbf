#include "trainer/input/sources.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "trainer/input/data_test_util.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

std::string ReadAll(InputBytes* input) {
  std::string content, part(1000, '\0');
  while (const int64_t got = input->ReadSome(part.data(), static_cast<int64_t>(part.size()))) {
    content.append(part, 0, static_cast<size_t>(got));
  }
  return content;
}

std::string OutputOf(const std::string& command, const std::vector<std::string>& environment = {}) {
  return ReadAll(OpenInput("exec:" + command, "data.train.path", environment).get());
}

std::string CommandError(const std::string& command) {
  return UserErrorOf([&] { OutputOf(command); });
}

TEST_CASE("sources: patterns are read in the order of names, lists in theirs") {
  const std::string b = WritePlain("part-b.csv", "x"), a = WritePlain("part-a.csv", "x");
  const std::string other = WritePlain("other.csv", "x");
  const std::string pattern = fs::path(a).parent_path().string() + "/part-?.csv";
  CHECK(SourceFiles({pattern}, "k") == std::vector<std::string>{a, b});
  CHECK(SourceFiles({other, pattern}, "k") == std::vector<std::string>{other, a, b});
  CHECK(SourceFiles({b, a}, "k") == std::vector<std::string>{b, a});
  const std::string odd = WritePlain("a[1].csv", "x");
  CHECK(SourceFiles({odd}, "k") == std::vector<std::string>{odd});
  CHECK(SourceFiles({"exec:cat *.csv"}, "k") == std::vector<std::string>{"exec:cat *.csv"});
  CHECK(SourceFiles({"missing.csv"}, "k") == std::vector<std::string>{"missing.csv"});
}

TEST_CASE("sources: a directory is its files, and parts of 0 bytes are none") {
  const fs::path out = fs::path(WritePlain("x", "x")).parent_path() / "out";
  fs::create_directories(out / "_temporary");
  const auto write = [&](const std::string& name, const std::string& content) {
    return WritePlain("out/" + name, content);
  };
  const std::string b = write("part-1", "x"), a = write("part-0", "x"), none = write("part-2", "");
  for (const char* name : {"_SUCCESS", ".part-0.crc", "_metadata"}) write(name, "x");
  CHECK(SourceFiles({out.string()}, "k") == std::vector<std::string>{a, b});
  CHECK(SourceFiles({none, a}, "k") == std::vector<std::string>{a});
  CHECK(SourceFiles({none}, "k") == std::vector<std::string>{none});
  fs::create_directories(out / "day=1");
  const std::string deep = write("day=1/p.csv", "x");
  CHECK(SourceFiles({out.string() + "/day=*"}, "k") == std::vector<std::string>{deep});
  fs::create_directories(out / "empty");
  CHECK(UserErrorOf([&] { SourceFiles({out.string() + "/empty"}, "data.train.path"); }) ==
        out.string() +
            "/empty: a directory without files; data.train.path must name files of rows, or a directory of "
            "them.");
}

TEST_CASE("sources: a file named twice, a pattern that nothing fits and a pipe in a list are refused") {
  const std::string a = WritePlain("twice.csv", "x");
  const std::string directory = fs::path(a).parent_path().string();
  const auto error = [](const std::vector<std::string>& paths) {
    return UserErrorOf([&] { SourceFiles(paths, "data.train.path"); });
  };
  CHECK(error({a, a}) == a + ": named twice in data.train.path; each file is read once. Name it once.");
  const std::string same = directory + "/./twice.csv";
  CHECK(error({a, same}) ==
        same + ": named twice in data.train.path, first as " + a + "; each file is read once. Name it once.");
  CHECK(error({directory + "/none-*.csv"}) ==
        directory + "/none-*.csv: no file fits this pattern. Is data.train.path right?");
  CHECK(error({a, "-"}) == "data.train.path: - stands alone, and is no part of a list. Try exec:cat FILE...");
}

TEST_CASE("command: its output is read to the end, plain, gzip and zstd") {
  CHECK(OutputOf("printf 'a,b\\n1,2\\n'") == "a,b\n1,2\n");
  CHECK(OutputOf("cat " + WriteGzip("command.gz", "a\n1\n")) == "a\n1\n");
  CHECK(OutputOf("cat " + WriteZstd("command.zst", "a\n1\n")) == "a\n1\n");
  CHECK(OutputOf("head -c 3000000 /dev/zero").size() == 3000000);
  CHECK(OutputOf("true").empty());
}

TEST_CASE("command: it has its own environment, no input, no other descriptors and default signals") {
  CHECK(OutputOf("echo $DTRAIN_WORKER of $DTRAIN_WORKERS", {"DTRAIN_WORKER=1", "DTRAIN_WORKERS=2"}) ==
        "1 of 2\n");
  setenv("DTRAIN_WORKER", "7", 1);
  CHECK(OutputOf("env | grep DTRAIN_WORKER=", {"DTRAIN_WORKER=1"}) == "DTRAIN_WORKER=1\n");
  unsetenv("DTRAIN_WORKER");
  CHECK(OutputOf("cat").empty());
  CHECK(OutputOf("exec ls /proc/self/fd | wc -l") == "4\n");  // 0, 1, 2 and that of ls
  signal(SIGPIPE, SIG_IGN);
  CHECK(CommandError("kill -PIPE $$") != "");
  signal(SIGPIPE, SIG_DFL);
  const std::string group = OutputOf("ps -o pgid= -p $$ || cut -d' ' -f5 /proc/$$/stat");
  CHECK(std::stol(group) != getpgrp());
}

TEST_CASE("command: one that fails is an error at the end, with the last line of its standard error") {
  CHECK(
      CommandError("echo first >&2; echo no such table. >&2; exit 3") ==
      "exec:echo first >&2; echo no such table. >&2; exit 3: ended with exit code 3: no such table. Rows may "
      "be missing, so nothing of it is used. Run the command by itself.");
  CHECK(CommandError("kill -9 $$") ==
        "exec:kill -9 $$: was killed by signal 9 (Killed): it wrote nothing to standard error. Rows may be "
        "missing, so nothing of it is used. Run the command by itself.");
  CHECK(CommandError("printf 'a\\n1\\n'; printf unended >&2; exit 1").find("exit code 1: unended.") !=
        std::string::npos);
}

TEST_CASE("command: one that fails within packed data is told as that, not as damage") {
  const std::string file = WriteZstd("cut.zst", std::string(100000, 'x'));
  const std::string error = CommandError("head -c 9 " + file + "; exit 5");
  CHECK(error.find("ended with exit code 5") != std::string::npos);
}

TEST_CASE("command: a lot of standard error does not stop it") {
  CHECK(OutputOf("i=0; while [ $i -lt 5000 ]; do echo 01234567890123456789 $i >&2; i=$((i+1)); done "
                 "2>/dev/null; echo done") == "done\n");
  CHECK(OutputOf("(head -c 300000 /dev/zero | tr '\\0' 'e'; echo) >&2; echo done") == "done\n");
}

// Whether the process has ended. It may wait for its new parent to reap it.
bool HasEnded(pid_t pid) {
  const std::string stat = ReadBack("/proc/" + std::to_string(pid) + "/stat");
  return stat.empty() || stat.find(") Z") != std::string::npos;
}

// The same, within a second.
bool Ends(pid_t pid) {
  const TimePoint begin = Clock::now();
  while (!HasEnded(pid) && SecondsSince(begin) < 1) usleep(1000);
  return HasEnded(pid);
}

TEST_CASE("command: a reader that ends early ends the whole group, and one that ignores SIGTERM after 2 s") {
  char line[32] = {};
  const auto begin = [&](const std::string& command) {
    auto input = OpenInput("exec:" + command, "k");
    size_t size = 0;
    while (size < sizeof line - 1 && input->Read(line + size, 1) == 1 && line[size] != '\n') ++size;
    return input;
  };
  TimePoint start = Clock::now();
  begin("sleep 100 & echo $!; wait").reset();
  CHECK(Ends(static_cast<pid_t>(std::stol(line))));
  CHECK(SecondsSince(start) < 1.5);
  start = Clock::now();
  begin("trap '' TERM; echo $$; while :; do sleep 1; done").reset();
  CHECK(Ends(static_cast<pid_t>(std::stol(line))));
  CHECK(SecondsSince(start) >= 1.9);
}

TEST_CASE("input: a path of exec: is no command unless it is opened as one") {
  const std::string marker = WritePlain("marker", "x");
  fs::remove(marker);
  CHECK(UserErrorOf([&] { InputBytes("exec:touch " + marker, "data.test.images"); }) ==
        "exec:touch " + marker +
            ": cannot be opened: No such file or directory (2). Is data.test.images right?");
  CHECK_FALSE(fs::exists(marker));
}

TEST_CASE("source inputs: what a first pass has read of a pipe is given again, and the command runs once") {
  const std::string count = WritePlain("runs", "");
  SourceInputs inputs({"exec:echo run >> " + count + "; printf abcdef"}, "k");
  CHECK(inputs.is_pipe());
  for (const int64_t first : {2, 0, 10}) {
    auto head = inputs.OpenHead(0);
    char text[10] = {};
    CHECK(head->Read(text, first) == std::min<int64_t>(first, 6));
    CHECK(head->ContinuesWith(std::string("abcdef").substr(std::min<size_t>(first, 6))));
    inputs.GiveBack(std::move(head));
  }
  CHECK(ReadAll(inputs.Open(0).get()) == "abcdef");
  CHECK(ReadBack(count) == "run\n");
}

TEST_CASE("source inputs: files are opened anew, and their bytes are told") {
  SourceInputs inputs({WritePlain("i-1", "abc"), WritePlain("i-2", "de")}, "k");
  inputs.GiveBack(inputs.OpenHead(1));
  CHECK(ReadAll(inputs.Open(1).get()) == "de");
  CHECK(ReadAll(inputs.Open(0).get()) == "abc");
  CHECK(inputs.FileBytesFrom(0) == 5);
  CHECK(inputs.FileBytesFrom(1) == 2);
}

}  // namespace
}  // namespace dtrain
