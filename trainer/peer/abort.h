// Abort: how a failure travels: from the task that failed to ps 0, and from there to everybody.
#pragma once

#include <string>

#include "base/error.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/peer/short_text.h"

namespace dtrain {

inline flatbuffers::Offset<wire::Abort> CreateAbort(flatbuffers::FlatBufferBuilder& builder, int exit_code,
                                                    TaskId task, const std::string& text) {
  return wire::CreateAbort(builder, exit_code, task.role == Role::kPs ? wire::Role::Ps : wire::Role::Worker,
                           static_cast<uint32_t>(task.index), builder.CreateString(ShortText(text)));
}

// "worker 1 (10.0.0.4:9002) ended the run with exit code 2: ...".
std::string AbortText(const ClusterConfig& cluster, const wire::Abort& abort);

}  // namespace dtrain
