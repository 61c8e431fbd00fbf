#include "trainer/peer/lease_message.h"

#include "trainer/peer/peer_limits.h"

namespace dtrain {

flatbuffers::Offset<WireLeases> EncodeLeases(const std::deque<Lease>& leases,
                                             flatbuffers::FlatBufferBuilder& builder) {
  if (leases.empty()) return 0;
  std::vector<flatbuffers::Offset<wire::Lease>> encoded;
  for (const Lease& lease : leases) {
    const auto taken = lease.taken.empty() ? 0 : builder.CreateVector(lease.taken);
    encoded.push_back(
        wire::CreateLease(builder, static_cast<uint64_t>(lease.step), static_cast<uint64_t>(lease.epoch),
                          static_cast<uint64_t>(lease.first), static_cast<uint64_t>(lease.batches), taken));
  }
  return builder.CreateVector(encoded);
}

std::vector<Lease> DecodeLeases(const WireLeases* said) {
  std::vector<Lease> leases;
  if (said == nullptr) return leases;
  for (const wire::Lease* const one : *said) {
    Lease lease{
        CountIn(one->step()), CountIn(one->epoch()), CountIn(one->first()), CountIn(one->batches()), {}};
    if (one->taken() != nullptr) lease.taken.assign(one->taken()->begin(), one->taken()->end());
    leases.push_back(std::move(lease));
  }
  return leases;
}

Lease LeaseIn(const wire::Weights& weights) {
  return {CountIn(weights.lease_step()),
          CountIn(weights.lease_epoch()),
          CountIn(weights.lease_first()),
          CountIn(weights.lease_batches()),
          {}};
}

}  // namespace dtrain
