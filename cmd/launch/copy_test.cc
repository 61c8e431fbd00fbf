// launch.copy with the real binary, over a real sshd at 127.0.0.1.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/testing/files.h"
#include "cmd/testing/launch_job.h"
#include "cmd/testing/python.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

// --set of the directory of both machines: one, as on NFS.
std::string BothIn(const std::string& directory) {
  return fmt::format("launch.hosts={{127.0.0.2: {{directory: \"{0}\"}}, 127.0.0.3: {{directory: \"{0}\"}}}}",
                     directory);
}

TEST_CASE("launch.copy: sends dtrain and the config, and again what is damaged there") {
  const SshServer server;
  if (!server.running()) return;
  const std::string there = NewDirectory() + "/a new 'one'";
  const LaunchJob job = Job(LinearJob(50), server);
  const std::string program = job.directory + "/program";
  StripProgram(program);
  const fs::perms owner = fs::perms::owner_read | fs::perms::owner_write;
  fs::permissions(job.config, owner);
  std::string made;  // what the runs have said of it
  const auto run_once = [&] {
    const auto run = job.Start({"--set", "launch.copy=true", "--set", BothIn(there)}, program);
    CheckEnd(*run);
    std::istringstream lines(run->standard_error());
    for (std::string line; std::getline(lines, line);) {
      if (Contains(line, " launch | ")) made += line.substr(line.find(" launch | ")) + "\n";
    }
  };
  run_once();
  CHECK(Contains(made, fmt::format(" launch | made {} on 127.0.0.", there)));
  made.clear();
  const fs::directory_iterator version(there + "/.dtrain");
  const std::string bin = version->path().string() + "/bin", copied = bin + "/dtrain";
  const auto inode = [&] {
    struct stat found {};
    stat(copied.c_str(), &found);
    return found.st_ino;
  };
  CHECK(FileContent(there + "/job.yaml") == FileContent(job.config));
  CHECK(fs::status(there + "/job.yaml").permissions() == owner);
  const std::string binary = FileContent(copied);
  CHECK((binary == FileContent(program)));
  const auto first = inode();
  run_once();
  CHECK(inode() == first);  // it was there
  std::fstream damaged(copied, std::ios::in | std::ios::out | std::ios::binary);
  damaged.seekp(5000);
  damaged.put(static_cast<char>(binary[5000] + 1));
  damaged.close();
  run_once();
  CHECK((FileContent(copied) == binary));
  CHECK_FALSE(Contains(made, "made "));
  CHECK(UnfinishedFiles(bin) == "");
}

// Names of the shared libraries that scripts/package.sh puts into lib/, with their paths here.
std::vector<std::pair<std::string, std::string>> LibrariesToBundle() {
  std::vector<std::pair<std::string, std::string>> libraries;
  std::istringstream said(OutputOf("ldd cmd/dtrain"));
  for (std::string name, arrow, path, rest; said >> name;) {
    std::getline(said, rest);
    std::istringstream words(rest);
    if (!(words >> arrow >> path) || arrow != "=>") continue;
    const bool of_glibc = std::string(
                              "libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 "
                              "libresolv.so.2 libutil.so.1")
                              .find(name) != std::string::npos;
    if (!of_glibc) libraries.emplace_back(name, path);
  }
  return libraries;
}

// bin/dtrain with lib/ beside it.
std::string NewPackage() {
  const std::string package = NewDirectory();
  fs::create_directories(package + "/bin");
  fs::create_directories(package + "/lib");
  StripProgram(package + "/bin/dtrain");
  for (const auto& [name, path] : LibrariesToBundle()) fs::copy_file(path, package + "/lib/" + name);
  return package;
}

// A worker that runs this program; -1: none.
pid_t WorkerOf(const std::string& program) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t pid = atoi(entry.path().filename().c_str());
    std::error_code gone;
    if (pid <= 0 || fs::read_symlink(entry.path() / "exe", gone) != program) continue;
    if (Contains(CommandLine(pid), "--role worker --index 1 --reports")) return pid;
  }
  return -1;
}

TEST_CASE("launch.copy: a packaged dtrain runs there with the libraries that it has brought along") {
  const SshServer server;
  if (!server.running()) return;
  const LaunchJob job = Job(LinearJob(1000000000000) + "hooks: {log_every_steps: 100}\n", server);
  const std::string package = NewPackage(), there = fs::canonical(NewDirectory()).string();
  const auto run = job.Start({"--set", "launch.copy=true", "--set", BothIn(there)}, package + "/bin/dtrain");
  const bool runs = run->WaitForLine("worker 1 | epoch");
  CAPTURE(run->standard_error());
  REQUIRE(runs);
  const std::string version = fs::directory_iterator(there + "/.dtrain")->path().string();
  const pid_t worker = WorkerOf(version + "/bin/dtrain");
  REQUIRE(worker > 0);
  const std::string maps = FileContent(fmt::format("/proc/{}/maps", worker));
  int libraries = 0;
  for (const auto& entry : fs::directory_iterator(package + "/lib")) {
    const std::string name = "/" + entry.path().filename().string();
    CAPTURE(name);
    CHECK((FileContent(version + "/lib" + name) == FileContent(entry.path())));
    const size_t mapped = maps.find(name + "\n");
    REQUIRE(mapped != std::string::npos);
    const size_t begin = maps.rfind(' ', mapped) + 1;
    CHECK(maps.substr(begin, mapped - begin) == version + "/lib");
    ++libraries;
  }
  CHECK(libraries > 5);
  run->Signal(SIGINT);
  RunToEnd(*run);
}

}  // namespace
}  // namespace dtrain::testing
