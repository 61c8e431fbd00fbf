// What README.md shows, on two machines with addresses of their own: from a file to a model that numpy reads.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "base/json.h"
#include "cmd/testing/job.h"
#include "cmd/testing/launch_job.h"
#include "cmd/testing/python.h"
#include "cmd/testing/ssh_hosts.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

constexpr char kFile[] =
    "cluster:\n"
    "  ps: ['10.77.0.2:9001']\n"
    "  worker: ['10.77.0.2:9002', '10.77.0.3:9003']\n"
    "security: {{insecure: true}}\n"
    "launch:\n"
    "  copy: true\n"
    "  ssh_config: {0}\n"
    "  hosts:\n"
    "    10.77.0.2: {{directory: {1}/machine1}}\n"
    "    10.77.0.3: {{directory: {1}/machine2}}\n"
    "model: {{kind: softmax, outputs: 10}}\n"
    "data:\n"
    "  train: {{format: synthetic, name: digits, rows: 2000}}\n"
    "  test: {{format: synthetic, name: digits, rows: 500}}\n"
    "train: {{mode: sync, batch_size: 50, epochs: 3, optimizer: {{kind: sgd, learning_rate: 0.3}}}}\n"
    "checkpoint: {{dir: run/ckpt}}\n";

constexpr char kCommands[] =
    "dtrain check --config cluster.yaml\n"
    "dtrain plan --config cluster.yaml\n"
    "dtrain launch --config cluster.yaml --dry-run\n"
    "dtrain launch --config cluster.yaml --result result.json\n"
    "cd machine1\n"  // where the chief has written
    "dtrain inspect run/ckpt\n"
    "dtrain eval run/ckpt --result eval.json\n"
    "dtrain export run/ckpt --out model.npz\n"
    "dtrain export run/ckpt --out model.onnx\n";

constexpr char kRead[] =
    "import numpy, onnxruntime\n"
    "file = numpy.load('model.npz')\n"
    "rows = numpy.arange(7840, dtype=numpy.float32).reshape(10, 784) % 256\n"
    "logits = (rows / 255) @ file['weights/W1'] + file['biases/b1']\n"
    "session = onnxruntime.InferenceSession('model.onnx')\n"
    "(classes,) = session.run(['prediction'], {'features': rows})\n"
    "print('same' if (classes == logits.argmax(axis=1)).all() else 'others')\n";

TEST_CASE("first use: trained over two machines, evaluated, exported, read by numpy") {
  const std::string& python = Python();
  if (python.empty()) return;
  SshNetwork network;
  if (!network.running()) return;
  const std::string directory = NewDirectory();
  fs::create_directories(directory + "/bin");
  StripProgram(directory + "/bin/dtrain");
  for (const char* machine : {"/machine1", "/machine2"}) fs::create_directory(directory + machine);
  WriteFile(directory + "/cluster.yaml", fmt::format(kFile, network.client_config(), directory));
  WriteFile(directory + "/machine1/read.py", kRead);
  const std::string commands = fmt::format("cd {0}\nPATH={0}/bin:$PATH\n{1}{2} read.py\n", directory,
                                           kCommands, fs::absolute(python).string());
  Process session({"-euo", "pipefail", "-c", commands}, Program{"/bin/bash", {}});
  const int code = RunToEnd(session);
  CAPTURE(session.standard_output());
  CAPTURE(session.standard_error());
  REQUIRE(code == 0);
  CHECK(Contains(session.standard_output(), "same\n"));
  const Json run = ReadResult(directory + "/result.json");
  CHECK(run.at("status") == "done");
  CHECK(run.at("test_accuracy").get<double>() > 0.8);
  CHECK(ReadResult(directory + "/machine1/eval.json").at("model_crc") == run.at("model_crc"));
}

}  // namespace
}  // namespace dtrain::testing
