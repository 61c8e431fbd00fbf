// ModelGraph() (summary.h): which operation runs on which task, and its inputs.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "trainer/config/config.h"
#include "trainer/model/model.h"
#include "trainer/summary/event.pb.h"
#include "trainer/summary/summary.h"

namespace dtrain {
namespace {

using Shape = std::vector<int64_t>;  // -1: any

// GraphBuilder: builds a GraphDef node by node. Nodes have only the attributes that the Graphs tab shows.
class GraphBuilder {
 public:
  struct Output {
    Shape shape;
    event::DataType type = event::DT_FLOAT;
  };

  GraphBuilder();

  // Sets the device of nodes that are added from now on: "/job:ps/task:0/cpu:0".
  void OnDevice(std::string device) { device_ = std::move(device); }

  // Each of these adds a node and returns its name, for use as an input.
  std::string Add(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                  const Output& output);
  std::string Placeholder(const std::string& name, const Output& output) {
    return AddTyped(name, "Placeholder", output);
  }
  std::string Variable(const std::string& name, const Output& output) {
    return AddTyped(name, "VariableV2", output);
  }
  std::string Constant(const std::string& name, float value);
  // Multiplies a and b; either may be transposed.
  std::string MatMul(const std::string& name, const std::string& a, bool transpose_a, const std::string& b,
                     bool transpose_b, const Shape& shape);

  std::string Serialise() const;

 private:
  event::NodeDef& AddNode(const std::string& name, const std::string& op,
                          const std::vector<std::string>& inputs, const Output& output);
  std::string AddTyped(const std::string& name, const std::string& op, const Output& output);

  event::GraphDef graph_;
  std::string device_;
};

// The first version of the format with all the operations used here.
constexpr int kProducer = 22;

void SetShape(const Shape& sizes, event::TensorShape* shape) {
  for (const int64_t size : sizes) shape->add_dim()->set_size(size);
}

GraphBuilder::GraphBuilder() { graph_.mutable_versions()->set_producer(kProducer); }

event::NodeDef& GraphBuilder::AddNode(const std::string& name, const std::string& op,
                                      const std::vector<std::string>& inputs, const Output& output) {
  event::NodeDef& node = *graph_.add_node();
  node.set_name(name);
  node.set_op(op);
  node.set_device(device_);
  for (const std::string& input : inputs) node.add_input(input);
  SetShape(output.shape, (*node.mutable_attr())["_output_shapes"].mutable_list()->add_shape());
  return node;
}

std::string GraphBuilder::Add(const std::string& name, const std::string& op,
                              const std::vector<std::string>& inputs, const Output& output) {
  (*AddNode(name, op, inputs, output).mutable_attr())["T"].set_type(output.type);
  return name;
}

std::string GraphBuilder::AddTyped(const std::string& name, const std::string& op, const Output& output) {
  auto& attributes = *AddNode(name, op, {}, output).mutable_attr();
  attributes["dtype"].set_type(output.type);
  SetShape(output.shape, attributes["shape"].mutable_shape());
  return name;
}

std::string GraphBuilder::Constant(const std::string& name, float value) {
  auto& attributes = *AddNode(name, "Const", {}, {}).mutable_attr();
  attributes["dtype"].set_type(event::DT_FLOAT);
  event::Tensor& tensor = *attributes["value"].mutable_tensor();
  tensor.set_dtype(event::DT_FLOAT);
  tensor.mutable_tensor_shape();
  tensor.add_float_val(value);
  return name;
}

std::string GraphBuilder::MatMul(const std::string& name, const std::string& a, bool transpose_a,
                                 const std::string& b, bool transpose_b, const Shape& shape) {
  auto& attributes = *AddNode(name, "MatMul", {a, b}, {shape}).mutable_attr();
  attributes["T"].set_type(event::DT_FLOAT);
  attributes["transpose_a"].set_b(transpose_a);
  attributes["transpose_b"].set_b(transpose_b);
  return name;
}

std::string GraphBuilder::Serialise() const { return graph_.SerializeAsString(); }

constexpr char kInput[] = "input/x-input";
constexpr char kTarget[] = "input/y-input";
constexpr char kNumbers[] = "input/numbers";

std::string PsDevice(int ps) { return fmt::format("/job:ps/task:{}/cpu:0", ps); }

const char* UpdateOp(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return "ApplyGradientDescent";
    case OptimizerKind::kMomentum:
      return "ApplyMomentum";
    case OptimizerKind::kAdagrad:
      return "ApplyAdagrad";
    case OptimizerKind::kRmsprop:
      return "ApplyRMSProp";
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamw:  // TensorFlow has no operation of that name
      return "ApplyAdam";
    case OptimizerKind::kFtrl:
      return "ApplyFtrl";
  }
  return "ApplyGradientDescent";
}

// Returns the operation of hidden layers.
const char* ActivationOp(Activation activation) {
  switch (activation) {
    case Activation::kSigmoid:
      return "Sigmoid";
    case Activation::kTanh:
      return "Tanh";
    case Activation::kRelu:
      break;
  }
  return "Relu";
}

// VariablePart: the rows of a variable on one ps.
struct VariablePart {
  std::string name;  // the variable's own name if it is whole
  int ps = 0;
  Shape shape;
};

struct VariableNodes {
  const Variable* variable = nullptr;
  std::vector<VariablePart> parts;
  std::string read;  // the node that reads all rows
};

struct LayerNodes {
  std::string scope;
  const VariableNodes* weights = nullptr;
  const VariableNodes* biases = nullptr;
  std::string input;
  std::string sums;     // before the activation
  std::string outputs;  // after it
};

class TrainingStep {
 public:
  // `rows`: of wide_deep, the variables that are rows of its table.
  TrainingStep(const Config& config, const Layout& layout, const std::string& device,
               std::vector<Layout> rows = {})
      : config_(config), layout_(layout), rows_(std::move(rows)), worker_("/job:worker/task:0/" + device) {}
  std::string Build();

 private:
  void AddInputs();
  void AddVariables(const Layout& layout);
  void FindLayers();
  std::string AddEmbeddings();
  void AddForward();
  void AddCost();
  void AddAccuracy();
  void AddGradients();
  void AddRowGradients(const std::string& slope, const std::string& delta);
  void AddUpdates(const VariableNodes& nodes, const std::string& gradient);
  void AddGlobalStep();

  bool deep() const { return !rows_.empty(); }
  const VariableNodes* Find(const std::string& name) const;
  Shape ShapeOf(const Variable& variable) const;
  Shape Rows(int64_t columns) const { return {-1, columns}; }
  bool linear() const { return !HasClasses(config_.model); }
  bool logistic() const { return HeadOf(config_.model) == ModelHead::kLogistic; }

  const Config& config_;
  const Layout& layout_;
  const std::vector<Layout> rows_;
  const std::string worker_;  // the worker's device
  GraphBuilder graph_;
  std::vector<VariableNodes> variables_;
  std::vector<LayerNodes> layers_;
  std::string wide_;  // the sums of weights beside the layers
  std::string predictions_;
};

std::string TrainingStep::Build() {
  AddVariables(layout_);
  for (const Layout& rows : rows_) AddVariables(rows);
  FindLayers();
  graph_.OnDevice(worker_);
  AddInputs();
  AddForward();
  AddCost();
  if (!linear()) AddAccuracy();
  AddGradients();
  AddGlobalStep();
  return graph_.Serialise();
}

Shape TrainingStep::ShapeOf(const Variable& variable) const {
  return variable.bias ? Shape{variable.rows} : Shape{variable.rows, variable.cols};
}

void TrainingStep::AddInputs() {
  if (deep()) {
    const ModelConfig& model = config_.model;
    graph_.Placeholder(kInput, {Rows(model.columns > 0 ? model.columns : -1), event::DT_INT64});
    if (layout_.form.numbers.count > 0) graph_.Placeholder(kNumbers, {Rows(layout_.form.numbers.count)});
  } else {
    graph_.Placeholder(kInput, {Rows(layers_.front().weights->variable->rows)});
  }
  graph_.Placeholder(kTarget, {{-1}, linear() ? event::DT_FLOAT : event::DT_INT32});
}

void TrainingStep::AddVariables(const Layout& layout) {
  std::vector<std::vector<std::pair<int, Segment>>> segments(layout.variables.size());
  for (int ps = 0; ps < static_cast<int>(layout.ps.size()); ++ps) {
    for (const Segment& segment : layout.SegmentsOf(ps)) {
      segments[static_cast<size_t>(segment.variable)].emplace_back(ps, segment);
    }
  }
  for (size_t i = 0; i < segments.size(); ++i) {
    const Variable& variable = layout.variables[i];
    VariableNodes& nodes = variables_.emplace_back(VariableNodes{&variable, {}, variable.name});
    std::vector<std::string> names;
    for (const auto& [ps, segment] : segments[i]) {
      const bool whole = segments[i].size() == 1;
      names.push_back(whole ? nodes.read : fmt::format("{}/part_{}", nodes.variable->name, names.size()));
      Shape shape = ShapeOf(*nodes.variable);
      shape[0] = segment.rows;
      graph_.OnDevice(PsDevice(ps));
      nodes.parts.push_back({graph_.Variable(names.back(), {shape}), ps, shape});
    }
    if (names.size() == 1) continue;
    graph_.OnDevice(worker_);
    nodes.read = graph_.Add(nodes.variable->name + "/concat", "ConcatV2", names, {ShapeOf(*nodes.variable)});
  }
}

const VariableNodes* TrainingStep::Find(const std::string& name) const {
  const auto found = std::find_if(variables_.begin(), variables_.end(),
                                  [&](const VariableNodes& nodes) { return nodes.variable->name == name; });
  return found == variables_.end() ? nullptr : &*found;
}

void TrainingStep::FindLayers() {
  for (int number = 1;; ++number) {
    const LayerNames names = LayerNamesOf(config_.model, static_cast<size_t>(number));
    const VariableNodes* weights = Find(names.weights);
    const VariableNodes* biases = Find(names.biases);
    if (weights == nullptr || biases == nullptr) break;
    layers_.push_back({fmt::format("layer_{}", number), weights, biases, "", "", ""});
  }
  DT_CHECK(!layers_.empty());
  layers_.back().scope = "output";
}

// The sums of weights, and what the layers take: embeddings, and behind them numbers.
std::string TrainingStep::AddEmbeddings() {
  const ModelConfig& model = config_.model;
  const int64_t columns = model.columns > 0 ? model.columns : -1;
  const std::string weights =
      graph_.Add("wide/GatherV2", "GatherV2", {Find(kTableWeights)->read, kInput}, {{-1, columns, 1}});
  const std::string sum = graph_.Add("wide/Sum", "Sum", {weights}, {Rows(1)});
  wide_ = graph_.Add("wide/Add", "Add", {sum, Find(kTableBiases)->read}, {Rows(1)});
  const bool join = model.combine == Combine::kJoin;
  const std::string embeddings = graph_.Add(
      "deep/GatherV2", "GatherV2", {Find(kEmbeddingsName)->read, kInput}, {{-1, columns, model.embedding}});
  const std::string op = join ? "Reshape" : "Sum";
  const std::string inputs =
      graph_.Add("deep/" + op, op, {embeddings}, {Rows((join ? columns : 1) * model.embedding)});
  if (layout_.form.numbers.count == 0) return inputs;
  return graph_.Add("deep/concat", "ConcatV2", {inputs, kNumbers}, {Rows(LayerInputs(model))});
}

void TrainingStep::AddForward() {
  std::string input = deep() ? AddEmbeddings() : kInput;
  for (LayerNodes& layer : layers_) {
    const Shape shape = Rows(layer.weights->variable->cols);
    layer.input = input;
    const std::string product =
        graph_.MatMul(layer.scope + "/MatMul", input, false, layer.weights->read, false, shape);
    layer.sums = graph_.Add(layer.scope + "/Add", "Add", {product, layer.biases->read}, {shape});
    const bool last = &layer == &layers_.back();
    if (last && deep()) layer.sums = graph_.Add(layer.scope + "/Wide", "Add", {layer.sums, wide_}, {shape});
    const std::string op = !last        ? ActivationOp(config_.model.activation)
                           : linear()   ? (HasLogLink(config_.model) ? "Exp" : "")
                           : logistic() ? "Sigmoid"
                                        : "Softmax";
    layer.outputs = op.empty() ? layer.sums : graph_.Add(layer.scope + "/" + op, op, {layer.sums}, {shape});
    input = layer.outputs;
  }
  predictions_ = input;
}

void TrainingStep::AddCost() {
  const std::string& sums = layers_.back().sums;
  const ModelConfig& model = config_.model;
  const std::string op = model.loss   ? gpu::LossRowOf(*model.loss).name
                         : linear()   ? "SquaredDifference"
                         : logistic() ? "SigmoidCrossEntropyWithLogits"
                                      : "SparseSoftmaxCrossEntropyWithLogits";
  const std::string losses = graph_.Add("loss/" + op, op, {sums, kTarget}, {{-1}});
  graph_.Add("loss/Mean", "Mean", {losses}, {});
}

void TrainingStep::AddAccuracy() {
  const std::string op = logistic() ? "Round" : "ArgMax";
  const std::string classes = graph_.Add("accuracy/" + op, op, {predictions_}, {{-1}, event::DT_INT32});
  const std::string equal =
      graph_.Add("accuracy/Equal", "Equal", {classes, kTarget}, {{-1}, event::DT_INT32});
  graph_.Add("accuracy/Mean", "Mean", {equal}, {});
}

void TrainingStep::AddGradients() {
  const std::string gradients = "gradients/";
  const Shape last = Rows(layers_.back().weights->variable->cols);
  // Without model.loss the difference of prediction and target is the slope of every loss, up to a factor.
  const gpu::LossKind* const loss = config_.model.loss ? &*config_.model.loss : nullptr;
  const std::string op = loss == nullptr ? "Sub" : fmt::format("{}_grad", gpu::LossRowOf(*loss).name);
  const std::string slope =
      graph_.Add(gradients + "loss/" + op, op,
                 {loss == nullptr ? predictions_ : layers_.back().sums, kTarget, "^loss/Mean"}, {last});
  std::string delta = slope;
  for (size_t i = layers_.size(); i-- > 0;) {
    const LayerNodes& layer = layers_[i];
    const Variable& weights = *layer.weights->variable;
    const Variable& biases = *layer.biases->variable;
    graph_.OnDevice(worker_);
    const std::string for_weights =
        graph_.MatMul(gradients + weights.name, layer.input, true, delta, false, ShapeOf(weights));
    const std::string for_biases =
        graph_.Add(gradients + biases.name, "BiasAddGrad", {delta}, {ShapeOf(biases)});
    if (i > 0) {
      const std::string& before = layers_[i - 1].outputs;
      const Shape shape = Rows(weights.rows);
      const std::string scope = gradients + layers_[i - 1].scope;
      const std::string op = std::string(ActivationOp(config_.model.activation)) + "Grad";
      const std::string sent_back =
          graph_.MatMul(scope + "/MatMul", delta, false, layer.weights->read, true, shape);
      delta = graph_.Add(scope + "/" + op, op, {before, sent_back}, {shape});
    }
    AddUpdates(*layer.weights, for_weights);
    AddUpdates(*layer.biases, for_biases);
  }
  if (deep()) AddRowGradients(slope, delta);
}

// `delta`: of the first layer.
void TrainingStep::AddRowGradients(const std::string& slope, const std::string& delta) {
  graph_.OnDevice(worker_);
  const LayerNodes& first = layers_.front();
  const std::string sent_back = graph_.MatMul("gradients/deep/MatMul", delta, false, first.weights->read,
                                              true, Rows(first.weights->variable->rows));
  std::vector<std::pair<const VariableNodes*, std::string>> updates;
  for (const auto& [name, from] : {std::pair(kTableWeights, slope), std::pair(kEmbeddingsName, sent_back)}) {
    const VariableNodes& nodes = *Find(name);
    updates.emplace_back(&nodes, graph_.Add(fmt::format("gradients/{}", name), "UnsortedSegmentSum",
                                            {from, kInput}, {ShapeOf(*nodes.variable)}));
  }
  const VariableNodes& bias = *Find(kTableBiases);
  updates.emplace_back(&bias, graph_.Add(fmt::format("gradients/{}", kTableBiases), "BiasAddGrad", {slope},
                                         {ShapeOf(*bias.variable)}));
  for (const auto& [nodes, gradient] : updates) AddUpdates(*nodes, gradient);
}

void TrainingStep::AddUpdates(const VariableNodes& nodes, const std::string& gradient) {
  const std::string& name = nodes.variable->name;
  const bool linear = name == kTableWeights || name == kTableBiases;
  const OptimizerConfig& optimizer =
      OptimizerOf(config_.train, linear ? ModelHalf::kLinear : ModelHalf::kOther).values;
  for (const VariablePart& part : nodes.parts) {
    graph_.OnDevice(PsDevice(part.ps));
    const std::string scope = "train/" + part.name;
    const std::string rate =
        graph_.Constant(scope + "/learning_rate", static_cast<float>(optimizer.learning_rate));
    const std::string op = UpdateOp(optimizer.kind);
    graph_.Add(scope + "/" + op, op, {part.name, rate, gradient}, {part.shape});
  }
}

void TrainingStep::AddGlobalStep() {
  graph_.OnDevice(PsDevice(0));
  const GraphBuilder::Output scalar{{}, event::DT_INT64};
  const std::string step = graph_.Variable("global_step", scalar);
  graph_.Add("train/global_step/AssignAdd", "AssignAdd", {step}, scalar);
}

}  // namespace

std::string ModelGraph(const Config& config, const Layout& layout, const std::string& device) {
  if (layout.table) {  // as if its rows were those of tensors, each ps with its part of them
    const auto ps = static_cast<int>(layout.ps.size());
    if (config.model.kind == ModelKind::kWideDeep) {
      std::vector<Layout> rows;
      for (Variable& variable : TableVariables(config.model)) {
        if (layout.has_hash_table() && !variable.bias) variable.rows = TableLayout::kHashRanges;
        rows.push_back(PlaceVariables({variable}, ps, PlacementConfig()));
      }
      return TrainingStep(config, layout, device, std::move(rows)).Build();
    }
    Config shown = config;
    if (layout.has_hash_table()) shown.model.inputs = TableLayout::kHashRanges;  // features have no number
    const Layout dense = PlaceVariables(ModelVariables(shown.model), ps, PlacementConfig());
    return TrainingStep(shown, dense, device).Build();
  }
  return TrainingStep(config, layout, device).Build();
}

}  // namespace dtrain
