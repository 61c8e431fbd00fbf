// The rows of train.optimizer in the table of keys. Only fields.cc includes this.
#pragma once

#include <vector>

#include "trainer/config/fields.h"

namespace dtrain {

std::vector<Field> OptimizerFields();

}  // namespace dtrain
