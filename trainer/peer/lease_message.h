// Leases of batches (data.split: dynamic) in messages.
// Thread: any; free functions.
#pragma once

#include <deque>
#include <vector>

#include "net/codec.h"
#include "trainer/order/lease.h"

namespace dtrain {

using WireLeases = flatbuffers::Vector<flatbuffers::Offset<wire::Lease>>;

flatbuffers::Offset<WireLeases> EncodeLeases(const std::deque<Lease>& leases,
                                             flatbuffers::FlatBufferBuilder& builder);
// `said` may be null: none.
std::vector<Lease> DecodeLeases(const WireLeases* said);
// The lease in an answer of ps 0; without batches: it names none.
Lease LeaseIn(const wire::Weights& weights);

}  // namespace dtrain
