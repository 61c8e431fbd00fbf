// The parser of libsvm's text: LABEL INDEX:VALUE INDEX:VALUE ..., with blanks or tabs between them. "#"
// begins a comment, which ends with the line; one that says that indexes begin elsewhere than data.index_base
// is a fault. Indexes need no order, and one that comes twice counts twice. With data.weight the label may be
// LABEL:WEIGHT, in each row for itself. A group of rows, qid:NUMBER behind the label, is left out: no model
// here ranks.
//
// Where labels are not needed a row may begin with 1, with 1.5:2, which is a label and a weight, or with 7:2,
// which is a feature if the model has no label 7. What may be both is as the first row, or there a fault.
#pragma once

#include <cstdint>
#include <memory>

#include "trainer/config/config.h"
#include "trainer/rows/sparse_line.h"

namespace dtrain {

// The label stays a text, which RowLabels reads.
std::unique_ptr<LineParser> MakeLibsvmParser(const DataConfig& data, const LineRules& rules);

}  // namespace dtrain
