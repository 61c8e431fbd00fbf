// Plain IDX files of images that are mapped into memory, not read (data.cache: none or file): files of any
// size, whose pages the system keeps or drops. Their labels, a byte each, are in memory. With data.cache:
// file a packed file is mapped as its copy, a plain file under data.cache_dir that the first task of a
// machine makes, and later runs use again. Thread: any; a free function.
#pragma once

#include <string>

#include "trainer/config/choices.h"
#include "trainer/rows/idx.h"
#include "trainer/rows/label_rules.h"
#include "trainer/sets/data_set.h"

namespace dtrain {

// Throws UserError for a packed file, which cannot be mapped.
void CheckIsPlain(const std::string& path);

// Maps the images of data.train. `rules.classes` must be set. A copy that is damaged is made anew, and that
// of a file that has changed replaces the old one; one that is not whole is never left under its name. Throws
// UserError with file, byte and value for damaged files, and for a directory that cannot be written or is
// full.
DataSet MapImages(const DataConfig& data, IdxFiles files, const LabelRules& rules);

}  // namespace dtrain
