// What a job of the real binary must not leave behind: processes, ports, files that are not finished.
// Process, Cluster and LocalJob look for these when they are gone, so that every test of theirs does.
#pragma once

#include <string>

#include "base/clock.h"

namespace dtrain::testing {

// "NAME=VALUE" for the environment of a process under test: unlike any other, and its children inherit it.
std::string NewMark();
// True when no process that carries the mark is alive by the deadline, whoever its parent is.
bool NoneCarries(const std::string& mark, milliseconds patience);
// Kills each of them, one by one, until there is none: of programs that start others which outlive them.
void KillCarriers(const std::string& mark);

// Whether any process listens at "127.0.0.1:40001".
bool IsListening(const std::string& address);

// Below `directory`: what is written under another name first, and has not got its own, a line for each.
std::string UnfinishedFiles(const std::string& directory);

}  // namespace dtrain::testing
