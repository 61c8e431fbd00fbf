// The rows of train in the table of keys. Only fields.cc includes this.
#pragma once

#include <vector>

#include "trainer/config/fields.h"

namespace dtrain {

std::vector<Field> TrainFields();

}  // namespace dtrain
