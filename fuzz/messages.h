// Messages made of an Input: of every kind, with fields that are mostly plausible. Thread: any.
#pragma once

#include <string>
#include <vector>

#include "fuzz/input.h"
#include "net/codec.h"
#include "trainer/config/cluster_config.h"

namespace dtrain::fuzz {

// Returns a message of this kind. `tensor_bytes`: what a tensor has unless the input says otherwise. A Hello
// has the settings of `config` and is for ps `ps`.
net::Message MakeMessage(Input& input, wire::Body kind, const net::Envelope& envelope, size_t tensor_bytes,
                         const Config& config, TaskId from, int ps);

// Returns the message with some bytes of its header changed.
net::Message Damaged(Input& input, const net::Message& message);

}  // namespace dtrain::fuzz
