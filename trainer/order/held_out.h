// Held-out rows: how many of the training rows are held out and which (data.validation, data.validation_by).
// A data set has them in front: the first rows as they come, or those that were drawn. Thread: any; free
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/data_config.h"

namespace dtrain {

// Whether rows are held out at all.
inline bool HoldsOut(const DataConfig& data) { return data.validation > 0 || data.validation_share > 0; }

// Returns how many of `rows` training rows are held out; of data without end data.validation.
int64_t HeldOutRows(const DataConfig& data, std::optional<int64_t> rows);

// Returns data.validation as the config has it: "100", "0.2".
std::string HeldOutText(const DataConfig& data);

// Returns for each row whether it is held out. `classes` are the rows' classes, by any numbers; only
// validation_by: stratified looks at them. Rows are drawn evenly over the table: the rows of a class are cut
// into as many equal runs as rows of it are held out, and data.seed draws one row of each. As many are marked
// as HeldOutRows() says; each class has its share of them, rounded up or down.
std::vector<bool> HeldOutMarks(const DataConfig& data, const std::vector<int32_t>& classes);

}  // namespace dtrain
