#include "cmd/command_line.h"

#include "cmd/grammar/grammar.h"

namespace dtrain {

Arguments ParseCommandLine(int argc, const char* const* argv) { return Grammar().Parse(argc, argv); }

}  // namespace dtrain
