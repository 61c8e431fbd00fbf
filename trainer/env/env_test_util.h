// Helpers for the tests of schedulers.
#pragma once

#include <string>

#include "base/error.h"

namespace dtrain {

// Returns the text of the UserError that `assign` throws; empty if it throws none.
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
