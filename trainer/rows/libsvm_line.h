// The parser of libsvm's text: LABEL INDEX:VALUE INDEX:VALUE ..., with blanks or tabs between them. "#"
// begins a comment, which ends with the line. Indexes need no order, and one that comes twice counts twice. A
// group of rows, qid:NUMBER behind the label, is left out: no model here ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "trainer/config/config.h"
#include "trainer/rows/sparse_line.h"

namespace dtrain {

// `inputs` and `labels`: as for MakeLineParser(). The label stays a text, which RowLabels reads.
std::unique_ptr<LineParser> MakeLibsvmParser(const DataConfig& data, std::optional<int64_t> inputs,
                                             bool labels);

}  // namespace dtrain
