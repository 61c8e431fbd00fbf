// The state of an object, as another process gets it (base/archive.h).
#pragma once

#include "base/archive.h"
#include "base/check.h"

namespace dtrain {

template <typename Type>
void CopyState(Type& from, Type* to) {
  Archive written;
  written(from);
  Archive read(written.bytes());
  read(*to);
  DT_CHECK(!read.failed(), written.bytes().size());
}

}  // namespace dtrain
