#include "trainer/config/config.h"
#include "trainer/summary/summary.h"

#include <doctest/doctest.h>

#include <map>

#include "trainer/model/model.h"
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

using Nodes = std::map<std::string, event::NodeDef>;

// The nodes of a graph, which all have devices, and inputs that are there.
Nodes NodesOf(const Config& config, const Layout& layout) {
  event::GraphDef graph;
  REQUIRE(graph.ParseFromString(ModelGraph(config, layout, "gpu:1")));
  Nodes nodes;
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

std::map<std::string, event::NodeDef> NodesOf(ModelKind kind, std::vector<Variable> variables, int ps,
                                              PlacementPolicy policy = PlacementPolicy::kBytes,
                                              OptimizerKind optimizer = OptimizerKind::kSgd) {
  Config config;
  config.train.optimizer.kind = optimizer;
  config.model.kind = kind;
  config.placement.policy = policy;
  return NodesOf(config, PlaceVariables(std::move(variables), ps, config.placement));
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

TEST_CASE("graph: wide_deep gathers weights and embeddings from all ps, and adds up both parts") {
  Config config;
  ModelConfig& model = config.model;
  model.kind = ModelKind::kWideDeep;
  model.head = ModelHead::kLogistic;
  model.hidden = {5};
  model.embedding = 4;
  model.combine = Combine::kJoin;
  model.columns = 3;
  model.column_bits = 4;
  model.inputs = (3 << 4) + 2;
  model.outputs = 1;
  for (const TableKind kind : {TableKind::kRange, TableKind::kHash}) {
    model.table = kind;
    const Layout layout = JointLayout(PlaceVariables(ModelVariables(model), 2, PlacementConfig()),
                                      TableLayoutOf(model, 2), model);
    const Nodes nodes = NodesOf(config, layout);
    CHECK(Inputs(nodes.at("wide/GatherV2")) ==
          std::vector<std::string>{"weights/W1/concat", "input/x-input"});
    CHECK(Inputs(nodes.at("deep/concat")) == std::vector<std::string>{"deep/Reshape", "input/numbers"});
    CHECK(Inputs(nodes.at("layer_1/MatMul"))[0] == "deep/concat");
    CHECK(Inputs(nodes.at("output/Wide")) == std::vector<std::string>{"output/Add", "wide/Add"});
    CHECK(Inputs(nodes.at("output/Sigmoid"))[0] == "output/Wide");
    CHECK(Inputs(nodes.at("gradients/embeddings/E1"))[0] == "gradients/deep/MatMul");
    CHECK(nodes.at("embeddings/E1/part_1").device() == "/job:ps/task:1/cpu:0");
    CHECK(nodes.count("train/embeddings/E1/part_1/ApplyGradientDescent") == 1);
    CHECK(nodes.count("train/biases/b1/ApplyGradientDescent") == 1);
  }
}

}  // namespace
}  // namespace dtrain
