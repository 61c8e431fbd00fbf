// The commands about tables of text: a first look at one, a config for it, and tables with a known truth.
#pragma once

#include "cmd/common/arguments.h"
#include "cmd/common/report.h"

namespace dtrain {

// dtrain check TABLE: prints what is in a table, its faults, and a config that would train on it. Returns 0,
// also if the table has faults. Throws UserError for a file that is no table.
int RunCheckTableCommand(const CheckTableArguments& arguments);

// dtrain init: writes a config that trains on a table. Replaces no file. Returns 0.
int RunInitCommand(const InitArguments& arguments, const ErrorLines& errors);

// dtrain synth: writes the rows of a table that is made. Returns 0, also if the reader goes away. Throws
// IoError if the disk is full, and removes the part of a file.
int RunSynthCommand(const SynthArguments& arguments);

}  // namespace dtrain
