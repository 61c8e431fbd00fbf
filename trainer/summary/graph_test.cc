#include "trainer/summary/graph.h"

#include <doctest/doctest.h>

#include <map>

#include "trainer/summary/event.pb.h"

namespace dtrain {
namespace {

Variable Weights(const std::string& name, int64_t rows, int64_t cols) {
  Variable variable;
  variable.name = name;
  variable.rows = rows;
  variable.cols = cols;
  return variable;
}

Variable Biases(const std::string& name, int64_t rows) {
  Variable variable = Weights(name, rows, 1);
  variable.bias = true;
  return variable;
}

std::map<std::string, event::NodeDef> NodesOf(ModelKind kind, std::vector<Variable> variables, int ps,
                                              PlacementPolicy policy = PlacementPolicy::kBytes,
                                              OptimizerKind optimizer = OptimizerKind::kSgd) {
  Config config;
  config.train.optimizer.kind = optimizer;
  config.model.kind = kind;
  config.placement.policy = policy;
  event::GraphDef graph;
  REQUIRE(graph.ParseFromString(
      ModelGraph(config, PlaceVariables(std::move(variables), ps, config.placement), "gpu:1")));
  std::map<std::string, event::NodeDef> nodes;
  for (const event::NodeDef& node : graph.node()) CHECK(nodes.emplace(node.name(), node).second);
  for (const auto& [name, node] : nodes) {
    CAPTURE(name);
    CHECK_FALSE(node.device().empty());
    for (const std::string& input : node.input()) {
      CHECK(nodes.count(input.substr(input[0] == '^' ? 1 : 0)) == 1);
    }
  }
  return nodes;
}

std::vector<std::string> Inputs(const event::NodeDef& node) {
  return {node.input().begin(), node.input().end()};
}

TEST_CASE("graph: layers follow from the variables' names, and each reads the one before") {
  const auto nodes =
      NodesOf(ModelKind::kSoftmax,
              {Weights("weights/W1", 8, 5), Biases("biases/b1", 5), Weights("weights/W2", 5, 4),
               Biases("biases/b2", 4), Weights("weights/W3", 4, 3), Biases("biases/b3", 3)},
              2, PlacementPolicy::kRoundRobin);
  CHECK(Inputs(nodes.at("layer_1/MatMul")) == std::vector<std::string>{"input/x-input", "weights/W1"});
  CHECK(Inputs(nodes.at("layer_2/MatMul")) == std::vector<std::string>{"layer_1/Sigmoid", "weights/W2"});
  CHECK(Inputs(nodes.at("output/MatMul")) == std::vector<std::string>{"layer_2/Sigmoid", "weights/W3"});
  CHECK(Inputs(nodes.at("gradients/weights/W1")) ==
        std::vector<std::string>{"input/x-input", "gradients/layer_1/SigmoidGrad"});
  CHECK(nodes.at("biases/b2").device() == "/job:ps/task:1/cpu:0");
  CHECK(nodes.at("train/biases/b2/ApplyGradientDescent").device() == "/job:ps/task:1/cpu:0");
  for (const char* name : {"input/x-input", "layer_1/MatMul", "output/Softmax", "gradients/weights/W1"}) {
    CHECK(nodes.at(name).device() == "/job:worker/task:0/gpu:1");
  }
}

TEST_CASE("graph: a variable on several ps is there in parts, each updated where it lies") {
  const auto nodes = NodesOf(ModelKind::kLogistic, {Weights("weights/W1", 9, 1), Biases("biases/b1", 1)}, 3);
  CHECK(nodes.count("weights/W1") == 0);
  CHECK(nodes.at("weights/W1/part_2").device() == "/job:ps/task:2/cpu:0");
  CHECK(nodes.at("weights/W1/concat").input_size() == 3);
  CHECK(Inputs(nodes.at("output/MatMul"))[1] == "weights/W1/concat");
  CHECK(Inputs(nodes.at("train/weights/W1/part_2/ApplyGradientDescent"))[0] == "weights/W1/part_2");
  int64_t rows = 0;
  for (const char* part : {"weights/W1/part_0", "weights/W1/part_1", "weights/W1/part_2"}) {
    rows += nodes.at(part).attr().at("shape").shape().dim(0).size();
  }
  CHECK(rows == 9);
}

TEST_CASE("graph: an update has the name of its optimizer") {
  const auto nodes = NodesOf(ModelKind::kLinear, {Weights("weights/W1", 3, 1), Biases("biases/b1", 1)}, 1,
                             PlacementPolicy::kBytes, OptimizerKind::kAdam);
  CHECK(nodes.at("train/weights/W1/ApplyAdam").op() == "ApplyAdam");
}

TEST_CASE("graph: a linear model has real targets and no accuracy") {
  const auto nodes = NodesOf(ModelKind::kLinear, {Weights("weights/W1", 2, 1), Biases("biases/b1", 1)}, 1);
  CHECK(nodes.at("input/y-input").attr().at("dtype").type() == event::DT_FLOAT);
  CHECK(nodes.count("accuracy/Mean") == 0);
  CHECK(nodes.count("loss/SquaredDifference") == 1);
}

}  // namespace
}  // namespace dtrain
