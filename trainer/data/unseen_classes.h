// Classes that training never sees although rows that it is measured by are of them, as in a file that is
// sorted by class and has its first rows held out. Thread: any; free functions.
#pragma once

#include <string>

#include "trainer/config/config.h"
#include "trainer/data/input_form.h"
#include "trainer/data/label_counts.h"

namespace dtrain {

// "class 0 is in 20 of the 20 held-out rows (data.validation) and in no row that is trained on: ...", or that
// the held-out rows are all of one class and the others of several, for a warning; empty: neither.
std::string UnseenClassesText(const DataConfig& data, const InputForm& form, const LabelCounts& counts);

}  // namespace dtrain
