// Plain IDX files of images that are mapped into memory, not read (data.cache: none or file): files of any
// size, whose pages the system keeps or drops. Their labels, a byte each, are in memory. Thread: any; a free
// function. Errors are UserErrors with file, byte and value.
#pragma once

#include "trainer/rows/idx.h"
#include "trainer/rows/label_rules.h"
#include "trainer/sets/data_set.h"

namespace dtrain {

// Maps the images of data.train. `rules.classes` must be set.
DataSet MapImages(const IdxFiles& files, const LabelRules& rules);

}  // namespace dtrain
