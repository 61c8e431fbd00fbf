// Command line -> Arguments. The parser library is known in grammar/ alone.
#pragma once

#include "cmd/arguments.h"

namespace dtrain {

// Throws UserError with the remedy where the line cannot be understood. No arguments at all ask for help.
Arguments ParseCommandLine(int argc, const char* const* argv);

}  // namespace dtrain
