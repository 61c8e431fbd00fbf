// The rows of the table of keys for launch.*: how `dtrain launch` reaches the machines.
#pragma once

#include <vector>

#include "trainer/config/fields.h"

namespace dtrain {

std::vector<Field> LaunchFields();

}  // namespace dtrain
