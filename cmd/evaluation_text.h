// What dtrain eval prints of an evaluation.
#pragma once

#include <string>

#include "cmd/evaluation.h"
#include "trainer/task/run_summary.h"

namespace dtrain {

// The figures and, of a model that classifies, a table of the classes and their confusion.
std::string EvaluationText(const EvaluationOutcome& outcome);
// The figures on one line: with --follow.
std::string EvaluationLine(const EvaluationOutcome& outcome);
// All of it as one line of JSON.
std::string EvaluationJson(const EvaluationOutcome& outcome);
// For --result.
RunSummary EvaluationSummary(const EvaluationOutcome& outcome);

}  // namespace dtrain
