// --from tf_config: TensorFlow's description of a cluster, which Kubeflow's TFJob gives to each of its pods.
//   {"cluster": {"chief": ["a:2222"], "ps": ["b:2222"], "worker": ["c:2222"]}, "task": {"type": "ps",
//   "index": 0}}
// chief 0 (or master 0) is worker 0 and worker i is worker i + 1; without a chief worker i is worker i.
#pragma once

#include "trainer/scheduler/assignment.h"

namespace dtrain {

// Throws UserError with the place in TF_CONFIG and the remedy.
Assignment AssignFromTfConfig(const Environment& environment);

}  // namespace dtrain
