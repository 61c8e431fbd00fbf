// A model as a checkpoint of TensorFlow, V2: PREFIX.index and PREFIX.data-00000-of-00001, which
// tf.train.load_checkpoint and a Saver restore. Thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/export/exported_model.h"
#include "trainer/tf/tf_vocabulary.h"

namespace dtrain {

// What was written.
struct TfWritten {
  int64_t bytes = 0;              // of both files
  int64_t slots = 0;              // tensors of the optimizer
  std::vector<std::string> said;  // ColumnRows::said
};

// TfColumns: a table whose rows are those of texts, and the order of the first layer's inputs.
struct TfColumns {
  std::vector<VocabularyColumn> columns;
  std::optional<InputOrder> order;
};

// Writes the model's tensors as float32, the step as global_step, and the optimizer's slots as TF1's
// optimizers call them, with Adam's powers, if the optimizer of `model.config` is that of the checkpoint. Of
// a table model.variables has its tensors last (TableVariables(), or of
// `columns` ColumnVariables()), and these rows are in memory. `names`: how
// tensors are called there, by our names; others keep these. The files get their names when both are
// complete. Throws UserError for two tensors of one name.
TfWritten WriteTfCheckpoint(const ExportedModel& model, const std::map<std::string, std::string>& names,
                            const TfColumns& columns, const std::string& prefix);

}  // namespace dtrain
