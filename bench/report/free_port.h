// A port for a task that is started with a fixed address.
#pragma once

namespace dtrain::bench {

// Of 127.0.0.1, free a moment ago. Throws std::runtime_error where there is none.
int FreePort();

}  // namespace dtrain::bench
