// Lines of Criteo's click logs, as the Kaggle files of 2014 and the terabyte have them: a label, 13 whole
// numbers (I1 to I13) and 26 categories (C1 to C26), separated by tabs. Any of them may be empty; a line of
// 39 fields has no label, as in Criteo's own test file. Each of the 39 columns is one feature with value 1,
// whose number is a hash of the column and a text (hashed_feature.h):
//   - of a category the text that stands there;
//   - of a number x above 2 its bucket, floor(log(x)^2), as ">5" for bucket 5; of any other x its digits. So
//   a
//     linear model can follow counts that spread over powers of ten, and few of them fall together;
//   - of a missing value no text. That it is missing tells something too.
// These are the features of the usual baselines of that competition. With data.by_column a number x is no
// category: it is a feature of its own, whose value is ln(1 + x) or x itself (data.numbers), or 0 where it is
// missing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "trainer/config/config.h"
#include "trainer/rows/sparse_line.h"

namespace dtrain {

// For `inputs` see MakeLineParser().
std::unique_ptr<LineParser> MakeCriteoParser(const DataConfig& data, std::optional<int64_t> inputs);

}  // namespace dtrain
