// The rows of model and data in the table of keys. Only fields.cc includes this.
#pragma once

#include <vector>

#include "trainer/config/fields.h"

namespace dtrain {

std::vector<Field> ModelFields();
// data.train and data.test, then what both share.
std::vector<Field> DataFields();

}  // namespace dtrain
