// Lines of Criteo's click logs, as the Kaggle files of 2014 and the terabyte have them: a label, 13 whole
// numbers (I1 to I13, also as 5.0) and 26 categories (C1 to C26), separated by tabs. Any of them may be
// empty. Where labels are not needed the lines of a file may have 39 fields, all of them or none, as Criteo's
// own test file has. Each of the 39 columns is one feature with value 1, whose number is a hash of the column
// and a text (hashed_feature.h):
//   - of a category the text that stands there;
//   - of a number x above 2 its bucket, floor(log(x)^2), as ">5" for bucket 5; of any other x its digits. So
//   a
//     linear model can follow counts that spread over powers of ten, and few of them fall together;
//   - of a missing value no text. That it is missing tells something too.
// These are the features of the usual baselines of that competition. With data.by_column a number x is no
// category: it is a feature of its own, whose value is ln(1 + x) or x itself (data.numbers), or 0 where it is
// missing. The column that data.weight names is no feature: it must be a number of at least 0 where labels
// are needed.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "trainer/config/choices.h"
#include "trainer/rows/sparse_line.h"

namespace dtrain {

std::unique_ptr<LineParser> MakeCriteoParser(const DataConfig& data, const LineRules& rules);

// Whether these are fields of Criteo's own files, perhaps without those at the end: a label of 0 or 1, if
// there is one, whole numbers, and categories as eight hexadecimal digits. Empty ones fit anywhere, but there
// is a category.
bool FitsCriteo(const std::vector<std::string_view>& fields, bool labelled);

}  // namespace dtrain
