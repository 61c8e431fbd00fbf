// What the tests of schedulers share.
#pragma once

#include <string>

#include "base/error.h"

namespace dtrain {

// The UserError that `assign` ends with; empty where it has none.
template <typename Function>
std::string ErrorOf(const Function& assign) {
  try {
    assign();
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

inline bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace dtrain
