// Copies of packed IDX files of images as plain ones, which can be mapped (data.cache: file). They are files
// under data.cache_dir that the first task of a machine makes, and later runs use again. Thread: any; a free
// function.
#pragma once

#include "trainer/config/config.h"
#include "trainer/rows/idx.h"

namespace dtrain {

// Returns the files of data.train with the copy in place of each packed file of images; plain ones are mapped
// where they are. A copy of a file that has changed since is made anew and replaces the old one. Throws
// UserError for damaged files, and for a directory that cannot be written or is full; a copy that is not
// whole is never left under its name.
IdxFiles UnpackImages(const DataConfig& data, IdxFiles files);

}  // namespace dtrain
