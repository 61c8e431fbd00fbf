// The rows of device in the table of keys. Only fields.cc includes this.
#pragma once

#include <vector>

#include "trainer/config/fields.h"

namespace dtrain {

std::vector<Field> DeviceFields();

}  // namespace dtrain
