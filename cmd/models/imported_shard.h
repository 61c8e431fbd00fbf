// The shard file of an imported model: its weights and slots are read in pieces, and written as they come, so
// that no more than a piece of them is in memory. Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/tf/tf_vocabulary.h"

namespace dtrain {

// What a file gives.
struct ImportedValues {
  // Reads values of a variable, or of its slot from 1 on, in turn, and checks them.
  std::function<void(size_t variable, size_t slot, int64_t first, int64_t count, float* out)> read;
  bool has_slots = false;  // else they are as before the first update
  int64_t step = 0;
  Origin origin = {};
  // The columns, where a table has a row for each text; empty: it has a row for each number.
  std::vector<VocabularyColumn> columns = {};
};

// Returns the layout with the tensors of its table, if it has one, behind the flat vector.
Layout WithTable(const Config& config, const std::vector<VocabularyColumn>& columns, Layout layout);

// Writes the file of the one ps of `layout` in `directory`.
std::vector<WrittenPart> WriteShard(const std::string& directory, const Config& config, const Layout& layout,
                                    const ImportedValues& taken);

}  // namespace dtrain
