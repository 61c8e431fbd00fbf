// Runs with keys, with the real binary: who is let in, what is told to who is not, and what travels.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> With(const std::string& keys, std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--set", "security.keys=" + keys});
  return more;
}

std::string CopyOf(const std::string& keys) {
  std::string copy = NewDirectory() + "/keys";
  fs::copy(keys, copy);
  return copy;
}

std::vector<std::string> LinesOf(const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream text(FileContent(path));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

// Removes the first line of the list that begins so.
void RemoveLine(const std::string& keys, const std::string& begin) {
  std::string text;
  bool removed = false;
  for (const std::string& line : LinesOf(keys + "/cluster.keys")) {
    if (!removed && line.compare(0, begin.size(), begin) == 0) {
      removed = true;
    } else {
      text += line + "\n";
    }
  }
  REQUIRE(removed);
  WriteFile(keys + "/cluster.keys", text);
}

// A cluster with keys, all of its tasks on this machine.
struct KeyedCluster {
  Cluster cluster;
  std::string keys;

  KeyedCluster(int ps, int workers, const std::string& job)
      : cluster(ps, workers, job), keys(NewKeys(cluster.config())) {}
  std::unique_ptr<Process> Start(const std::string& role, int index,
                                 const std::vector<std::string>& more = {}) const {
    return cluster.Start(role, index, With(keys, more));
  }
};

std::string SoftmaxJob(const std::string& mode) {
  return DigitsJob("kind: softmax", 600, 200, fmt::format("batch_size: 50, steps: 60, mode: {}", mode));
}

TEST_CASE("keys: a run with keys ends as one without, in every mode") {
  for (const char* mode : {"async", "sync", "ssp"}) {
    CAPTURE(mode);
    const LocalJob job("cluster: {ps: [\"a:1\", \"a:2\"], worker: [\"a:3\", \"a:4\"]}\n" + SoftmaxJob(mode));
    const std::string keys = NewKeys(job.config);
    const Json with = RunLocal(job.config, With(keys)), without = RunLocal(job.config, {});
    REQUIRE(with.is_object());
    CHECK(with.at("global_step") == without.at("global_step"));
    if (mode == std::string("sync")) CHECK(with.at("model_crc") == without.at("model_crc"));
  }
}

TEST_CASE("keys: with data.split: feed the batches come with keys too") {
  const LocalJob job("cluster: {ps: [\"a:1\"], worker: [\"a:3\", \"a:4\"]}\n" + SoftmaxJob("sync"));
  const std::string keys = NewKeys(job.config);
  const Json run = RunLocal(job.config, With(keys, {"--set", "data.split=feed"}));
  CHECK(run.is_object());
}

TEST_CASE("keys: who has no key, or one of another cluster, waits outside and is told why") {
  const KeyedCluster run(1, 1, LinearJob(20));
  const auto ps = run.Start("ps", 0);
  const std::string name = "waiting for ps 0 (" + run.cluster.address("ps", 0) + "): ";
  const auto without = run.cluster.Start("worker", 0);
  CHECK(without->WaitForLine(name + "it "));
  CHECK(without->WaitForLine("this task has none (security.keys)"));
  without->Signal(SIGKILL);
  const std::string others = NewKeys(run.cluster.config());
  const auto stranger = run.cluster.Start("worker", 0, With(others));
  CHECK(stranger->WaitForLine(name + "its key is not the one in cluster.keys here, or it has no keys"));
  stranger->Signal(SIGKILL);
  const std::string half = CopyOf(others);  // knows the ps, but is not known
  WriteFile(half + "/cluster.keys",
            FileContent(run.keys + "/cluster.keys") + LinesOf(others + "/cluster.keys")[3]);
  const auto unlisted = run.cluster.Start("worker", 0, With(half));
  CHECK(unlisted->WaitForLine(name + "it refuses this task's key worker-0.key (not in its cluster.keys)"));
  CHECK(ps->WaitForLine("refused a connection from 127.0.0.1: its key is not in cluster.keys here"));
  unlisted->Signal(SIGKILL);
  const auto worker = run.Start("worker", 0);
  CheckEnd(*worker);
  CheckEnd(*ps);
}

TEST_CASE("keys: a worker's key is no ps, a ps's no worker, and neither is status") {
  const KeyedCluster run(2, 2, LinearJob(20));
  const std::string kept = CopyOf(run.keys) + "/ps-1.key";
  const auto ps = run.Start("ps", 0);
  const struct {
    const char *role, *owner;
    int index;
  } cases[] = {
      {"ps", "worker-0", 1}, {"worker", "ps-1", 0}, {"worker", "worker-1", 0}, {"worker", "status", 0}};
  for (const auto& each : cases) {
    CAPTURE(std::string(each.owner));
    const std::string stolen = StealKey(run.keys, fmt::format("{}-{}", each.role, each.index), each.owner);
    const auto task = run.cluster.Start(each.role, each.index, With(stolen));
    CHECK(RunToEnd(*task) == 2);
    CHECK(Contains(task->standard_error(), fmt::format("refuses {0} {1}: its key is not the one of {0} {1}.",
                                                       each.role, each.index)));
  }
  fs::copy_file(run.keys + "/worker-0.key", run.keys + "/ps-1.key", fs::copy_options::overwrite_existing);
  const auto mistaken = run.Start("ps", 1);
  CHECK(RunToEnd(*mistaken) == 2);
  CHECK(Contains(mistaken->standard_error(), "/ps-1.key: it has the key of worker 0. Copy the file of ps 1"));
  fs::copy_file(kept, run.keys + "/ps-1.key", fs::copy_options::overwrite_existing);
  const auto ps_1 = run.Start("ps", 1);
  const auto worker_0 = run.Start("worker", 0), worker_1 = run.Start("worker", 1);
  CheckEnds(std::vector<Process*>{ps.get(), ps_1.get(), worker_0.get(), worker_1.get()});
}

TEST_CASE("keys: a worker without a key of its own joins with that of all workers") {
  const KeyedCluster run(1, 2, LinearJob(20));
  RemoveLine(run.keys, "worker 1 ");
  fs::remove(run.keys + "/worker-1.key");
  const auto ps = run.Start("ps", 0), first = run.Start("worker", 0), second = run.Start("worker", 1);
  CheckEnds(std::vector<Process*>{ps.get(), first.get(), second.get()});
}

TEST_CASE("keys: check reads those that are there, and names a task that has none") {
  const KeyedCluster run(1, 2, LinearJob(20));
  const std::vector<std::string> check = {"check", "--config", run.cluster.config(), "--set",
                                          "security.keys=" + run.keys};
  CHECK(Contains(Run(check).output, "secret keys here: ps 0, worker 0, worker 1, worker, status"));
  for (const char* line : {"worker 0 ", "worker 1 ", "worker "}) RemoveLine(run.keys, line);
  const Done unlisted = Run(check);
  CHECK(unlisted.code == 2);
  CHECK(Contains(unlisted.error, "/cluster.keys: there is no key of worker 0. Run dtrain keygen again."));
  fs::remove_all(run.keys);
  const Done elsewhere = Run(check);
  CHECK(elsewhere.code == 0);
  CHECK(Contains(elsewhere.output, "/cluster.keys: No such file or directory (2) here; the tasks need it"));
}

TEST_CASE("keys: a key file that others may read ends the task with 2 and the remedy") {
  const KeyedCluster run(1, 1, LinearJob(20));
  const std::string path = run.keys + "/ps-0.key";
  fs::permissions(path, fs::perms::group_read, fs::perm_options::add);
  const auto ps = run.Start("ps", 0);
  CHECK(RunToEnd(*ps) == 2);
  CHECK(Contains(ps->standard_error(), path + ": its mode is 0640"));
  CHECK(Contains(ps->standard_error(), "Run: chmod 600 " + path));
}

TEST_CASE("keys: no secret key is told: not in the log, the dump, the command line or a checkpoint") {
  const KeyedCluster run(1, 1, LinearJob(20) + "log: {level: debug}\n");
  const std::string checkpoints = run.cluster.directory() + "/ckpt";
  const auto ps = run.Start("ps", 0, {"--set", "checkpoint.dir=" + checkpoints});
  const auto worker = run.Start("worker", 0, {"--set", "checkpoint.dir=" + checkpoints});
  CheckEnd(*worker);
  CheckEnd(*ps);
  const Done dump =
      Run({"--config", run.cluster.config(), "--dump-config", "--set", "security.keys=" + run.keys});
  CHECK(Contains(dump.output, run.keys));
  std::string all = dump.output + ps->standard_error() + worker->standard_error();
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(checkpoints)) {
    if (entry.is_regular_file()) all += FileContent(entry.path().string());
  }
  for (const char* file : {"ps-0.key", "worker-0.key"}) {
    const std::string line = LinesOf(run.keys + "/" + file)[1];
    REQUIRE(line.compare(0, 7, "secret ") == 0);
    CHECK_FALSE(Contains(all, line.substr(7)));
  }
}

TEST_CASE(
    "keys: a killed worker and a killed ps come back with their keys, and the run ends with the same bits") {
  const std::string text = "cluster: {ps: [\"a:1\", \"a:2\"], worker: [\"a:3\", \"a:4\"]}\n" +
                           DigitsJob("kind: softmax", 6000, 500,
                                     "batch_size: 500, steps: 300, mode: sync, optimizer: {kind: momentum, "
                                     "learning_rate: 0.01}") +
                           "hooks: {log_every_steps: 10}\ncheckpoint: {every_secs: 0.2}\n"
                           "failure: {detect_s: 1, worker_lost: wait, restarts: 3}\n";
  const LocalJob job(text);
  const std::string keys = NewKeys(job.config);
  const Json undisturbed = RunLocal(job.config, {});
  REQUIRE(undisturbed.is_object());
  const auto run = job.Start(With(keys, {"--set", "checkpoint.dir=" + job.directory + "/checkpoints"}));
  REQUIRE(run->WaitForLine(fmt::format("local step {:9}", 50)));
  kill(ChildOf(*run, "worker", 1), SIGKILL);
  REQUIRE(run->WaitForLine("worker 1 was killed by SIGKILL; started again"));
  REQUIRE(run->WaitForLine(fmt::format("local step {:9}", 120)));
  kill(ChildOf(*run, "ps", 1), SIGKILL);
  CheckEnd(*run);
  CHECK(ReadResult(job.result).at("model_crc") == undisturbed.at("model_crc"));
}

TEST_CASE("keys: a key is changed while the run goes on") {
  const KeyedCluster run(
      1, 2, LongJob("steps: 100000000, mode: async") + "failure: {detect_s: 1, worker_lost: continue}\n");
  const std::string before = CopyOf(run.keys);
  const auto ps = run.Start("ps", 0), stays = run.Start("worker", 0);
  auto changes = run.Start("worker", 1);
  REQUIRE(changes->WaitForLine("local step"));
  const Done replaced =
      Run({"keygen", "--config", run.cluster.config(), "--out", run.keys, "--replace", "worker 1"});
  CAPTURE(replaced.error);
  REQUIRE(replaced.code == 0);
  const std::string old_line = LinesOf(before + "/cluster.keys")[4];
  CHECK(Contains(replaced.output, old_line));
  REQUIRE(ps->WaitForLine("cluster.keys was read again: it has 6 keys"));
  changes->Signal(SIGKILL);
  changes = run.Start("worker", 1);
  REQUIRE(changes->WaitForLine("local step"));
  RemoveLine(run.keys, old_line);
  REQUIRE(ps->WaitForLine("cluster.keys was read again: it has 5 keys"));
  const auto late = run.cluster.Start("worker", 1, With(before));
  CHECK(late->WaitForLine("it refuses this task's key worker-1.key (not in its cluster.keys)"));
  for (Process* process : {late.get(), changes.get(), stays.get(), ps.get()}) process->Signal(SIGKILL);
}

// Capture: what travels over the loopback of a network namespace that the calling thread has moved to.
class Capture {
 public:
  Capture() : socket_(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL))) {
    REQUIRE(socket_ >= 0);
    const int bytes = 64 << 20;
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    const timeval look{0, 50000};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look);
    thread_ = std::thread([this] {
      std::string packet(70000, '\0');
      while (!stop_) {
        sockaddr_ll from{};
        socklen_t size = sizeof from;
        const ssize_t got =
            recvfrom(socket_, packet.data(), packet.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
        // Over the loopback each packet comes twice.
        if (got > 0 && from.sll_pkttype == PACKET_OUTGOING)
          bytes_.append(packet, 0, static_cast<size_t>(got));
      }
    });
  }
  std::string Stop() {
    stop_ = true;
    thread_.join();
    close(socket_);
    return std::move(bytes_);
  }

 private:
  const int socket_;
  std::atomic<bool> stop_{false};
  std::string bytes_;
  std::thread thread_;
};

// Moves the calling thread, and what it starts, to a network of its own; false: the system does not allow it.
bool EnterOwnNetwork() {
  if (unshare(CLONE_NEWNET) != 0) return false;
  const int any = socket(AF_INET, SOCK_DGRAM, 0);
  ifreq loopback{};
  std::snprintf(loopback.ifr_name, sizeof loopback.ifr_name, "lo");
  REQUIRE(ioctl(any, SIOCGIFFLAGS, &loopback) == 0);
  loopback.ifr_flags |= IFF_UP;
  REQUIRE(ioctl(any, SIOCSIFFLAGS, &loopback) == 0);
  close(any);
  return true;
}

// What travels in a run of a ps and a worker, from the first to the last byte.
std::string TrafficOf(const Cluster& cluster, const std::vector<std::string>& more) {
  Capture capture;
  const auto ps = cluster.Start("ps", 0, more), worker = cluster.Start("worker", 0, more);
  CheckEnds(std::vector<Process*>{ps.get(), worker.get()});
  return capture.Stop();
}

TEST_CASE("keys: in what travels there is no tensor and no key of the config; without keys both are seen") {
  if (!EnterOwnNetwork()) return Skip("this user may not make a network of its own");
  const Cluster cluster(1, 1,
                        DigitsJob("kind: softmax, init: {kind: constant, value: 2.345678}", 600, 200,
                                  "batch_size: 50, steps: 20"));
  const float value = 2.345678F;
  std::string tensor(4 * sizeof value, '\0');
  for (size_t i = 0; i < 4; ++i) std::memcpy(tensor.data() + i * sizeof value, &value, sizeof value);
  const std::string plain = TrafficOf(cluster, {});
  CHECK(Contains(plain, tensor));
  CHECK(Contains(plain, "DTRN"));
  const std::string sealed = TrafficOf(cluster, With(NewKeys(cluster.config())));
  CHECK(sealed.size() > plain.size() / 2);
  for (const std::string& told : {tensor, std::string("DTRN"), std::string("train.batch_size"),
                                  std::string("batch_size"), std::string("softmax")}) {
    CAPTURE(told);
    CHECK_FALSE(Contains(sealed, told));
  }
  CHECK(Contains(sealed, "CURVE"));
}

}  // namespace
}  // namespace dtrain::testing
