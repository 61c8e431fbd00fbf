// MakeUpdateRule: the rule that train.mode names.
// Thread: the ps loop.
#pragma once

#include <memory>

#include "trainer/ps/update_rule.h"

namespace dtrain {

std::unique_ptr<UpdateRule> MakeUpdateRule(const PsParts& parts);

}  // namespace dtrain
