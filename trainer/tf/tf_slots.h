// What the slots of optimizers are called in a checkpoint of TensorFlow, and where a row of a table has them.
// Thread: any; plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/model/layout.h"
#include "trainer/optim/model_slots.h"

namespace dtrain {

// The names of a slot. "": it is no slot there that means the same.
struct SlotName {
  const char* ours;
  const char* saver;       // TF1's optimizers, behind the name of the weights
  const char* checkpoint;  // those of TF2's Checkpoint
  const char* keras;       // those of Keras's lists, as TfMeaning::slot has them
};
// Throws nothing; `ours` is a slot of ours.
const SlotName& SlotNameOf(const std::string& ours);

// Whether a variable of a table is of its linear part, the first value of each row.
bool IsLinear(const Variable& of_table);

// Returns the names of the slots of each variable. From `of_table` on they are those of a table.
std::vector<std::vector<std::string>> SlotsByVariable(const ModelSlots& slots,
                                                      const std::vector<Variable>& variables,
                                                      size_t of_table);

// TableColumns: where a row of a table has the values of a variable, or of one of its slots.
struct TableColumns {
  size_t variable = 0;  // index into the table's variables
  size_t slot = 0;      // 0: the weights; then the slots, from 1
  int64_t at = 0;       // the first of them in a row
  int64_t count = 0;
};
// Returns those of rows of features, or of the row of the bias.
std::vector<TableColumns> TableColumnsOf(const ModelSlots& slots, const std::vector<Variable>& of_table,
                                         int64_t width, bool bias);

}  // namespace dtrain
