// A model as a checkpoint of TensorFlow, V2: PREFIX.index and PREFIX.data-00000-of-00001, which
// tf.train.load_checkpoint and a Saver restore. Thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "trainer/export/exported_model.h"

namespace dtrain {

// Writes the model's tensors as float32, and the step as global_step. `names`: how they are called there, by
// our names; others keep these. Returns the bytes of both files. They get their names
// when both are complete. Throws UserError for two tensors of one name.
int64_t WriteTfCheckpoint(const ExportedModel& model, const std::map<std::string, std::string>& names,
                          const std::string& prefix);

}  // namespace dtrain
