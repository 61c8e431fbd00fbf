// The model's graph for TensorBoard's Graphs tab: which operation runs on which task, and its inputs. Thread:
// any.
#pragma once

#include <string>

#include "trainer/config/config.h"
#include "trainer/model/layout.h"

namespace dtrain {

// Returns a serialised GraphDef of one training step of the first worker: inputs, layers, loss, gradients and
// accuracy on the worker; each variable and its update on the ps that owns it, in parts if several do. The
// layers follow from the layout's variables weights/W1, biases/b1, weights/W2, ... Of wide_deep the rows of
// its table are tensors too, which the worker gathers from. `device` is that of the worker, "gpu:0".
std::string ModelGraph(const Config& config, const Layout& layout, const std::string& device);

}  // namespace dtrain
