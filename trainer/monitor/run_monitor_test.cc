#include "trainer/monitor/run_monitor.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/testing/files.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

using testing::FileContent;
using testing::NewDirectory;

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

constexpr char kStatus[] = R"({"global_step": 300, "tasks": []})";
// "dtrain:secret" and "dtrain:secres" in base64.
constexpr char kRight[] = "Authorization: Basic ZHRyYWluOnNlY3JldA==\r\n";
constexpr char kWrong[] = "Authorization: Basic ZHRyYWluOnNlY3Jlcw==\r\n";

int ConnectTo(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval patience{20, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return fd;
}

// All that the port answers to a GET of `path`.
std::string Get(int port, const std::string& path = "/metrics", const std::string& more = "") {
  const FileDescriptor fd(ConnectTo(port));
  CHECK(WriteAll(fd.get(),
                 fmt::format("GET {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{}\r\n", path, more)) == 0);
  std::string answer;
  char part[4096];
  for (ssize_t got = 0; (got = read(fd.get(), part, sizeof part)) > 0;) answer.append(part, got);
  return answer;
}

LogOptions InDirectory(const std::string& directory) {
  LogOptions options;
  options.directory = directory;
  options.standard_error = false;
  return options;
}

struct Monitored {
  Monitored() { config.metrics.port = 0; }
  void Begin() { monitor.emplace(config, directory, log); }
  int port() const { return std::stoi(monitor->address().substr(monitor->address().rfind(':') + 1)); }
  // Waits until the port tells what was put.
  std::string Scraped(const std::string& more = "") {
    const TimePoint deadline = Clock::now() + std::chrono::seconds(20);
    std::string answer;
    while (Clock::now() < deadline && !Contains(answer, "dtrain_global_step")) {
      answer = Get(port(), "/metrics", more);
    }
    return answer;
  }

  Config config = LinearCluster(1, 1, 10);
  std::string directory;
  Logger log{"ps 0", InDirectory(NewDirectory())};
  std::optional<RunMonitor> monitor;
};

TEST_CASE("monitor: the port tells the newest status") {
  Monitored run;
  run.Begin();
  CHECK(Contains(FileContent(run.log.path()),
                 fmt::format("metrics at http://127.0.0.1:{}/metrics\n", run.port())));
  run.monitor->Put(kStatus);
  const std::string answer = run.Scraped();
  CHECK(answer.find("HTTP/1.1 200 OK") == 0);
  CHECK(Contains(answer, "dtrain_global_step 300\n"));
  CHECK(Get(run.port(), "/").find("HTTP/1.1 404") == 0);
  CHECK(Get(run.port(), "/../../etc/passwd").find("HTTP/1.1 4") == 0);
}

TEST_CASE("monitor: readers that send nothing, or without end, do not keep others from reading") {
  Monitored run;
  run.Begin();
  run.monitor->Put(kStatus);
  std::vector<int> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(ConnectTo(run.port()));
  const std::string endless(1 << 20, 'x');
  const FileDescriptor talker(ConnectTo(run.port()));
  if (send(talker.get(), endless.data(), endless.size(), MSG_NOSIGNAL) < 0) MESSAGE("closed at once");
  CHECK(Contains(run.Scraped(), "dtrain_global_step 300\n"));
  for (const int fd : silent) close(fd);
}

TEST_CASE("monitor: with a password nobody reads without it") {
  Monitored run;
  run.config.metrics.password = NewDirectory() + "/password";
  WriteFileAtomically(run.config.metrics.password, "secret\n");
  chmod(run.config.metrics.password.c_str(), 0644);
  CHECK_THROWS_WITH_AS(run.Begin(), doctest::Contains("others may read it; refused. Try chmod 600"),
                       UserError);
  chmod(run.config.metrics.password.c_str(), 0600);
  run.Begin();
  run.monitor->Put(kStatus);
  CHECK(Contains(run.Scraped(kRight), "dtrain_global_step 300\n"));
  CHECK(Contains(run.Scraped((std::string(kRight) + "\r\nmore than a request has").c_str()),
                 "dtrain_global_step 300\n"));
  const std::string behind_the_end = std::string("\r\n") + kRight;
  for (const char* const more : {"", kWrong, "Authorization: Basic !!!\r\n", "Authorization: Bearer x\r\n",
                                 "\r\nx", behind_the_end.c_str()}) {
    CAPTURE(more);
    const std::string answer = Get(run.port(), "/metrics", more);
    CHECK(answer.find("HTTP/1.1 401") == 0);
    CHECK_FALSE(Contains(answer, "dtrain_global_step"));
  }
}

TEST_CASE("monitor: an address that other machines reach needs a password or a trusted network") {
  Monitored run;
  run.config.metrics.bind = "0.0.0.0";
  CHECK_THROWS_WITH_AS(run.Begin(), doctest::Contains("metrics.bind = 0.0.0.0: other machines could read"),
                       UserError);
  run.config.security.insecure = true;
  run.config.metrics.bind = "127.0.0.1";
  run.Begin();
}

TEST_CASE("monitor: a port that is in use is named, by a check too, and so is a name that nobody knows") {
  Monitored first, second;
  first.Begin();
  second.config.metrics.port = first.port();
  CHECK_THROWS_WITH_AS(second.Begin(), doctest::Contains("cannot listen at 127.0.0.1:"), UserError);
  CHECK_THROWS_WITH_AS(CheckMetrics(second.config), doctest::Contains("cannot listen at 127.0.0.1:"),
                       UserError);
  second.config.metrics.port = 0;
  CHECK_NOTHROW(CheckMetrics(second.config));
  second.config.metrics.bind = "nowhere.invalid";
  CHECK_THROWS_WITH_AS(CheckMetrics(second.config),
                       doctest::Contains("metrics.bind = nowhere.invalid: is no address of this machine: "),
                       UserError);
}

TEST_CASE("monitor: the directory of the run gets the last status, and a token for its owner alone") {
  Monitored run;
  run.config.metrics.port.reset();
  run.directory = NewDirectory();
  run.Begin();
  const std::string token = run.directory + "/" + RunMonitor::kToken;
  CHECK(FileContent(token) == run.monitor->token());
  CHECK(run.monitor->token().size() == 32);
  struct stat about {};
  REQUIRE(stat(token.c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0600);
  for (int i = 0; i < 100; ++i) run.monitor->Put(fmt::format("{{\"global_step\": {}}}", i));
  run.monitor.reset();
  CHECK(FileContent(run.directory + "/" + RunMonitor::kStatus) == "{\"global_step\": 99}\n");
  CHECK_FALSE(std::filesystem::exists(run.directory + "/" + RunMonitor::kStatus + ".tmp"));
}

TEST_CASE(
    "monitor: a run goes on without a directory that is not there, and says once what it cannot write") {
  Monitored run;
  run.directory = "/nowhere/run";
  run.config.metrics.port.reset();
  run.config.metrics.file = "/nowhere/dtrain.prom";
  run.Begin();
  CHECK(run.monitor->token().empty());
  run.monitor->Put(kStatus);
  run.monitor.reset();
  CHECK(Contains(FileContent(run.log.path()),
                 "metrics.file = /nowhere/dtrain.prom: cannot be written: No such file or directory"));
}

TEST_CASE("monitor: the file of metrics takes the place of no pipe") {
  Monitored run;
  run.config.metrics.port.reset();
  run.config.metrics.file = NewDirectory() + "/pipe";
  REQUIRE(mkfifo(run.config.metrics.file.c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(CheckMetrics(run.config), doctest::Contains("a file would take its place"), UserError);
  run.Begin();
  run.monitor->Put(kStatus);
  run.monitor.reset();
  CHECK(std::filesystem::is_fifo(run.config.metrics.file));
  CHECK(Contains(FileContent(run.log.path()), "a file would take its place. Name a file. The run goes on"));
}

TEST_CASE("monitor: the file of metrics has what the port would tell") {
  Monitored run;
  run.config.metrics.port.reset();
  run.config.metrics.file = NewDirectory() + "/dtrain.prom";
  run.Begin();
  run.monitor->Put(kStatus);
  run.monitor.reset();
  CHECK(Contains(FileContent(run.config.metrics.file), "dtrain_global_step 300\n"));
}

}  // namespace
}  // namespace dtrain
