// import of the real binary: what the file says of its weights, and what the config's data says.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <filesystem>

#include "base/json.h"
#include "cmd/testing/job.h"
#include "cmd/testing/process.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/data/files/data_test_util.h"

namespace dtrain::testing {
namespace {

// A model of rows that differ by their first feature, and its exports.
struct Trained {
  LocalJob job{
      "model: {kind: mlp, hidden: [4], outputs: 2, activation: tanh}\n"
      "data: {train: {format: csv, path: train.csv, label: y}, scale: standard}\n"
      "train: {steps: 100, batch_size: 10, mode: sync, optimizer: {kind: adam, learning_rate: 0.05}}\n"};

  Trained() {
    WriteFile(Path("train.csv"), Rows("a,b,y", 1, 0));
    REQUIRE(RunToEnd(*job.Start(
                {"--workers", "1", "--in-process", "--set", "checkpoint.dir=" + Path("ckpt")})) == 0);
    for (const char* name : {"model.safetensors", "model.npz"}) {
      REQUIRE(Run({"export", Path("ckpt"), "--out", Path(name)}).code == 0);
    }
  }

  std::string Path(const std::string& name) const { return job.directory + "/" + name; }

  // What is 1 above the middle is "up".
  static std::string Rows(const std::string& header, double factor, double shift, const char* low = "down") {
    std::string text = header + "\n";
    for (int i = 0; i < 40; ++i) {
      text += fmt::format("{},{},{}\n", i * factor + shift, i * 7 % 40 * factor + shift, i < 20 ? low : "up");
    }
    return text;
  }

  Done Import(const std::string& name, const std::vector<std::string>& sets = {}) const {
    std::filesystem::remove_all(Path("again"));
    std::vector<std::string> arguments = {"import",   Path(name), "--config",
                                          job.config, "--out",    Path("again")};
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    return Run(arguments);
  }

  std::string Eval(const std::string& checkpoints) const {
    const Done done = Run({"eval", Path(checkpoints), "--data", Path("train.csv"), "--json"});
    return Json::Parse(done.output).at("loss").dump();
  }
};

TEST_CASE("import: an export of another activation, scale, column or class is refused, and leaves nothing") {
  const Trained trained;
  const auto data = [&](const std::string& name, const std::string& rows) {
    WriteFile(trained.Path(name), rows);
    return "data.train.path=" + trained.Path(name);
  };
  const struct {
    std::string set, expected;
  } cases[] = {
      {"model.activation=relu", "model.activation = relu; must be tanh"},
      {"data.scale=none", "data.scale = none; must be standard"},
      {"data.scale=unit", "data.scale = unit; must be standard"},
      {data("order.csv", Trained::Rows("b,a,y", 1, 0)),
       "feature 0 is \"a\" in the file and \"b\" in data.train"},
      {data("class.csv", Trained::Rows("a,b,y", 1, 0, "z")),
       "class 0 is \"down\" in the file and \"up\" in data.train"},
  };
  for (const auto& [set, expected] : cases) {
    CAPTURE(set);
    const Done done = trained.Import("model.safetensors", {set});
    CAPTURE(done.error);
    CHECK(done.code == 2);
    CHECK(Contains(done.error, "model.safetensors: another model: " + expected));
    CHECK_FALSE(std::filesystem::exists(trained.Path("again")));
  }
}

TEST_CASE("import: the scale is that of the file, whatever rows the config has") {
  const Trained trained;
  const Done same = trained.Import("model.safetensors");
  CAPTURE(same.error);
  REQUIRE(same.code == 0);
  CHECK(same.error == "");
  CHECK_FALSE(Contains(same.output, "data.scale"));
  const std::string expected = trained.Eval("ckpt");
  CHECK(trained.Eval("again") == expected);
  WriteFile(trained.Path("other.csv"), Trained::Rows("a,b,y", 3, 100));
  const std::string other = "data.train.path=" + trained.Path("other.csv");
  const Done told = trained.Import("model.safetensors", {other});
  REQUIRE(told.code == 0);
  CHECK(Contains(told.output,
                 "data.scale: that of the file, not of data.train: a becomes (x - 19.5) * 0.0866"));
  CHECK(Contains(told.output, " and not (x - 158.5) * 0.0288"));
  CHECK(trained.Eval("again") == expected);
  // An npz file cannot say it: the rows count, and that is said.
  const Done npz = trained.Import("model.npz", {other});
  REQUIRE(npz.code == 0);
  CHECK(Contains(npz.error, "warning: " + trained.Path("model.npz") + " does not say how its features were"));
  CHECK(trained.Eval("again") != expected);
  const Done plain = trained.Import("model.npz", {"data.scale=none"});
  REQUIRE(plain.code == 0);
  CHECK(plain.error == "");
}

TEST_CASE("export: that an npz file's weights are of bytes divided by 255 is said, as a scale is") {
  const LocalJob job(
      "model: {kind: softmax, outputs: 3}\n"
      "data: {train: {format: idx, images: images, labels: labels}}\n"
      "train: {steps: 10, batch_size: 10}\n");
  const auto path = [&](const std::string& name) { return job.directory + "/" + name; };
  WriteFile(path("images"), IdxImageContent(30, 2, 3));
  std::vector<uint8_t> labels;
  for (int i = 0; i < 30; ++i) labels.push_back(static_cast<uint8_t>(i % 3));
  WriteFile(path("labels"), IdxLabelContent(labels));
  REQUIRE(RunToEnd(*job.Start({"--workers", "1", "--set", "checkpoint.dir=" + path("ckpt")})) == 0);
  for (const char* name : {"model.safetensors", "model.npz", "model.onnx"}) {
    const Done done = Run({"export", path("ckpt"), "--out", path(name)});
    CHECK(done.code == 0);
    CHECK(Contains(done.error, "these are of bytes divided by 255") == Contains(name, "npz"));
  }
  const Done done =
      Run({"import", path("model.safetensors"), "--config", job.config, "--out", path("again")});
  CAPTURE(done.error);
  CHECK(done.code == 0);
}

}  // namespace
}  // namespace dtrain::testing
