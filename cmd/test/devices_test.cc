// What runs where, by the real program: with dtrain_fake_gpu on a machine with two GPUs.
#include <doctest/doctest.h>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

const Program kFakeGpu = {"cmd/dtrain_fake_gpu", {}};
const Program kHidden = {"cmd/dtrain_fake_gpu", {"CUDA_VISIBLE_DEVICES="}};

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

Json DevicesOf(const Program& program) {
  const Done done = Run({"devices", "--json"}, program);
  CHECK(done.code == 0);
  return Json::Parse(done.output);
}

TEST_CASE("devices: the table has the processor first, then each GPU with its memory") {
  Process process({"devices"}, kFakeGpu);
  CHECK(RunToEnd(process) == 0);
  const std::string said = process.standard_output();
  const size_t cpu = said.find("\ncpu "), first = said.find("\ngpu 0 "), second = said.find("\ngpu 1 ");
  REQUIRE(second != std::string::npos);
  CHECK((cpu < first && first < second));
  CHECK(Contains(said.substr(second), "Fake GPU B"));
  CHECK(Contains(said.substr(second), " 1024 "));
  CHECK(Contains(said, "\nfake CUDA runtime\n"));
}

TEST_CASE("devices: --json says the same, and CUDA_VISIBLE_DEVICES decides the numbers") {
  const Json two = DevicesOf(kFakeGpu);
  REQUIRE(two.is_object());
  CHECK(two.at("cpu").at("processors").get<int>() >= 1);
  REQUIRE(two.at("gpus").size() == 2);
  CHECK(two.at("gpus")[1].at("id") == 1);
  CHECK(two.at("gpus")[1].at("total_bytes") == 1 << 30);
  CHECK(two.at("gpus")[1].at("free_bytes").is_number());
  CHECK(two.at("why_no_gpu").is_null());
  const Json one = DevicesOf({"cmd/dtrain_fake_gpu", {"CUDA_VISIBLE_DEVICES=1"}});
  REQUIRE(one.at("gpus").size() == 1);
  CHECK(one.at("gpus")[0].at("id") == 0);
  CHECK(one.at("gpus")[0].at("name") == "Fake GPU B");
}

TEST_CASE(
    "devices: without a GPU it says why, and that is no error; so does the program itself, with CUDA or "
    "without") {
  const Done hidden = Run({"devices"}, kHidden);
  CHECK(hidden.code == 0);
  CHECK(Contains(hidden.output, "\nno GPU: CUDA_VISIBLE_DEVICES is \"\"\n"));
  const Json none = DevicesOf(kHidden), here = DevicesOf({});
  CHECK(none.at("gpus").empty());
  CHECK(none.at("why_no_gpu") == "CUDA_VISIBLE_DEVICES is \"\"");
  CHECK_FALSE(here.at("cpu").at("name").get<std::string>().empty());
  CHECK(here.at("gpus").empty() == here.at("why_no_gpu").is_string());
}

TEST_CASE("devices: without a visible GPU a run goes on the processor, and each worker says why once") {
  const LocalJob job(LinearJob(40));
  Process run(
      {"local", "--config", job.config, "--workers", "2", "--result", job.result, "--set", "log.level=debug"},
      kHidden);
  CHECK(RunToEnd(run) == 0);
  const std::string said = run.standard_error();
  CHECK(Count(said, "no GPU") == 2);
  CHECK(Contains(said, "worker 1 | no GPU: CUDA_VISIBLE_DEVICES is \"\"\n"));
  CHECK(Contains(said, "worker 0 | layer 1 matmul, bias -> /job:worker/task:0/cpu:0\n"));
  CHECK(ReadResult(job.result).at("device") == "cpu");
}

TEST_CASE("devices: a GPU that has to be there and is not ends the task with 2 and lists those that are") {
  const LocalJob job(LinearJob(40));
  const std::vector<std::string> task[] = {{"--config", job.config, "--role", "worker", "--index", "0",
                                            "--set", "cluster={ps: [localhost:1], worker: [localhost:2]}"},
                                           {"local", "--in-process", "--config", job.config}};
  for (std::vector<std::string> words : task) {
    CAPTURE(words[0]);
    for (const char* set : {"device={kind: cuda, ids: [7], soft_placement: false}", "train.steps=40"}) {
      words.insert(words.end(), {"--set", set});
    }
    Process process(words, kFakeGpu);
    CHECK(RunToEnd(process) == 2);
    CHECK(
        Contains(process.standard_error(),
                 "device.ids = [7]; no GPU 7: there are 0 (Fake GPU A) and 1 (Fake GPU B). Set device.ids to "
                 "GPUs that are there, or device.kind to cpu. device.soft_placement: true would compute on "
                 "the processor instead.\n"));
  }
}

TEST_CASE("devices: a run trains on the GPU over sockets and in one process, and eval evaluates there") {
  const std::string directory = NewDirectory();
  for (const bool in_process : {false, true}) {
    CAPTURE(in_process);
    const std::string checkpoints = directory + (in_process ? "/one" : "/many");
    const LocalJob job(DigitsJob("kind: softmax", 400, 100, "batch_size: 20, steps: 30"));
    std::vector<std::string> words = {
        "local", "--config", job.config, "--result", job.result, "--set", "checkpoint.dir=" + checkpoints};
    words.insert(words.end(), {"--set", "log.level=debug"});
    if (in_process) words.push_back("--in-process");
    Process run(words, kFakeGpu);
    REQUIRE(RunToEnd(run) == 0);
    const Json result = ReadResult(job.result);
    CHECK(result.at("device") == "cuda:0");
    CHECK(result.at("global_step") == 30);
    CHECK(Contains(run.standard_error(), "fake cuda: context on device 0"));
    CHECK(Contains(run.standard_error(), "stay on cuda 0") == in_process);
    CHECK(Contains(run.standard_error(),
                   in_process ? "update sgd -> /job:ps/task:0/gpu:0" : "update sgd -> /job:ps/task:0/cpu:0"));
    Process eval({"eval", checkpoints, "--result", job.result}, kFakeGpu);
    REQUIRE(RunToEnd(eval) == 0);
    CHECK(ReadResult(job.result).at("device") == "cuda:0");
    CHECK(ReadResult(job.result).at("model_crc") == result.at("model_crc"));
    CHECK(ReadResult(job.result).at("test_accuracy") == result.at("test_accuracy"));
  }
}

TEST_CASE("devices: a ps touches no GPU, whatever its worker does") {
  const Cluster cluster(1, 1, LinearJob(40));
  const auto words = [&](const char* role) {
    return std::vector<std::string>{"--config", cluster.config(), "--role", role, "--index", "0"};
  };
  Process ps(words("ps"), kFakeGpu);
  Process worker(words("worker"), kFakeGpu);
  CHECK(RunToEnd(worker) == 0);
  CHECK(RunToEnd(ps) == 0);
  CHECK(
      Contains(worker.standard_error(), "device /job:worker/task:0/gpu:0: Fake GPU A, compute capability "));
  CHECK(Contains(worker.standard_error(), "fake cuda: context on device 0"));
  CHECK(Contains(ps.standard_error(), "ps 0 | device /job:ps/task:0/cpu:0: "));
  CHECK_FALSE(Contains(ps.standard_error(), "fake cuda: context"));
  CHECK_FALSE(Contains(ps.standard_error(), "GPU"));
}

}  // namespace
}  // namespace dtrain::testing
