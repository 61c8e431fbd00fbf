// The report as a Markdown table and as JSON. See docs/performance.md for what the columns mean.
#pragma once

#include <string>
#include <vector>

#include "bench/report/row.h"

namespace dtrain::bench {

void PrintTableHead();
void PrintRow(const Row& row);

// One object: the machine, the rounds and every row with the values of each round.
std::string ReportJson(const std::string& machine, int rounds, const std::vector<Row>& rows);

}  // namespace dtrain::bench
