// The command that makes the keys of a cluster.
#pragma once

#include "cmd/common/arguments.h"

namespace dtrain {

// dtrain keygen: adds what is missing in a directory of keys: a pair for each task of the cluster, for any
// other worker and for status, and prints what to do with them. It replaces no key without being asked.
// Returns 0. Throws Failure; what has been made by then is whole, and the next call adds the rest.
int RunKeygenCommand(const KeygenArguments& arguments);

}  // namespace dtrain
