// Addresses as users and peers write them.
#include "net/address.h"
#include "base/error.h"
#include "fuzz/input.h"
#include "fuzz/target.h"

namespace dtrain::fuzz {
namespace {

int FuzzOne(const uint8_t* data, size_t size) {
  try {
    const net::Address address = net::ParseAddress(Input(data, size).Rest());
    const net::Address again = net::ParseAddress(net::AddressText(address));
    Require(again.host == address.host && again.port == address.port && again.is_ipv6 == address.is_ipv6,
            "an address that was written is the one that was read");
    net::IsLoopback(address.host);
    net::IsWildcard(address.host);
  } catch (const UserError&) {
  }
  return 0;
}

const AddTarget added("address", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
