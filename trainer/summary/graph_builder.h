// GraphBuilder: a GraphDef node by node. A node's attributes are only what the Graphs tab shows.
// Owner and thread: who builds the graph.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/summary/event.pb.h"

namespace dtrain {

using Shape = std::vector<int64_t>;  // -1: any

class GraphBuilder {
 public:
  struct Output {
    Shape shape;
    event::DataType type = event::DT_FLOAT;
  };

  GraphBuilder();

  // The device of nodes that are added from now on: "/job:ps/task:0/cpu:0".
  void OnDevice(std::string device) { device_ = std::move(device); }

  // Each returns the new node's name, for the inputs of others.
  std::string Add(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
                  const Output& output);
  std::string Placeholder(const std::string& name, const Output& output);
  std::string Variable(const std::string& name, const Output& output);
  std::string Constant(const std::string& name, float value);
  // a times b; either may be transposed.
  std::string MatMul(const std::string& name, const std::string& a, bool transpose_a, const std::string& b,
                     bool transpose_b, const Shape& shape);

  std::string Serialise() const;

 private:
  event::NodeDef& AddNode(const std::string& name, const std::string& op,
                          const std::vector<std::string>& inputs, const Output& output);

  event::GraphDef graph_;
  std::string device_;
};

}  // namespace dtrain
