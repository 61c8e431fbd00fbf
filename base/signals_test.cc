#include "base/signals.h"

#include <doctest/doctest.h>

#include <string>

namespace dtrain {
namespace {

TEST_CASE("exit hooks: those that live run in the order of their registration") {
  ExitHooks hooks;
  std::string ran;
  const ExitHooks::Hook first(hooks, [&] { ran += "1"; });
  {
    const ExitHooks::Hook gone(hooks, [&] { ran += "x"; });
  }
  const ExitHooks::Hook last(hooks, [&] { ran += "2"; });
  hooks.Run();
  CHECK(ran == "12");
}

}  // namespace
}  // namespace dtrain
