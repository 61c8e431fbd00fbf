#include "cmd/testing/honest_run.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

namespace dtrain::testing {
namespace {

// What strangers may cost a ps at most, besides its connections.
constexpr int64_t kPromisedMib = 20;
constexpr int64_t kPromisedKibPerConnection = 64;

std::string JobText(const HonestJob& job, const std::string& checkpoints) {
  return "  min_workers: 1\n" + job.model + job.data +
         fmt::format(
             "train: {{batch_size: 8, steps: 1000000000000}}\n"
             "hooks: {{log_every_steps: {}}}\n"
             "checkpoint: {{dir: {}, every_secs: 3600}}\n",
             job.log_every, checkpoints) +
         job.more;
}

std::vector<std::string> Flags(const HonestJob& job) {
  std::vector<std::string> flags;
  for (const std::string& set : job.sets) flags.insert(flags.end(), {"--set", set});
  return flags;
}

std::unique_ptr<Process> StartPs(const Cluster& cluster, const HonestJob& job,
                                 const std::string& shell_before) {
  if (shell_before.empty()) return cluster.Start("ps", 0, Flags(job));
  Program shell;
  shell.path = "/bin/sh";
  const std::string script = shell_before + "; exec cmd/dtrain \"$@\"";
  return std::make_unique<Process>(std::vector<std::string>{"-c", script, "dtrain", "--config",
                                                            cluster.config(), "--role", "ps", "--index", "0"},
                                   shell);
}

int64_t LastNumberAfter(const std::string& text, const std::string& before) {
  const size_t at = text.rfind(before);
  return at == std::string::npos ? -1 : std::atoll(text.c_str() + at + before.size());
}

}  // namespace

HonestRun::HonestRun(const HonestJob& job, const std::string& shell_before_ps)
    : log_every_(job.log_every),
      cluster_(1, 2, JobText(job, checkpoints_)),
      address_(cluster_.address("ps", 0)),
      config_(LoadConfig(cluster_.config(), job.sets, {})),
      ps_(StartPs(cluster_, job, shell_before_ps)),
      worker_(cluster_.Start("worker", 0, Flags(job))) {
  REQUIRE(worker_->WaitForLine("local step "));
  REQUIRE(ps_->WaitForLine("run id "));  // which the test may read later than the worker's line
  const std::string said = ps_->standard_error();
  const size_t at = said.find("run id ");
  REQUIRE(at != std::string::npos);
  run_.id = std::stoull(said.substr(at + 7, 16), nullptr, 16);
  CheckGoesOn();
  undisturbed_kib_ = MemoryKib(ps_->pid(), "VmRSS");
}

HelloWords HonestRun::Words() const {
  HelloWords words;
  words.index = 1;
  words.settings = RunSettings(config_);
  words.incarnation = net::NewNodeId();
  return words;
}

int64_t HonestRun::LocalStep() { return LastNumberAfter(worker_->standard_error(), "local step "); }

void HonestRun::CheckGoesOn() {
  const int64_t next = LocalStep() + 2 * log_every_;
  REQUIRE(worker_->WaitForLine(fmt::format("local step {:>9} ", next)));
  REQUIRE_FALSE(ps_->WaitForEnd(milliseconds(0)));
}

void HonestRun::CheckMemory(int connections) { CHECK(GrownMib() <= PromisedMib(connections)); }

int64_t HonestRun::GrownMib() const {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#else
  return (MemoryKib(ps_->pid(), "VmHWM") - undisturbed_kib_) / 1024;
#endif
}

void HonestRun::CheckEnds() {
  const int64_t step = LocalStep();
  ps_->Signal(SIGTERM);
  CheckEnd(*ps_, 128 + SIGTERM);
  CheckEnd(*worker_, 128 + SIGTERM);
  const std::string said = ps_->standard_error();
  CHECK(NamesGoodCheckpoint(said, "the newest checkpoint is "));
  CHECK(LastNumberAfter(said, "at global step ") >= step);
}

int64_t PromisedMib(int connections) { return kPromisedMib + connections * kPromisedKibPerConnection / 1024; }

bool NamesGoodCheckpoint(const std::string& text, const std::string& before) {
  const size_t at = text.rfind(before);
  if (at == std::string::npos) return false;
  const size_t begin = at + before.size();
  const Done inspect = Run({"inspect", text.substr(begin, text.find_first_of(" \n", begin) - begin)});
  CAPTURE(inspect.error);
  return inspect.code == 0;
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace dtrain::testing
