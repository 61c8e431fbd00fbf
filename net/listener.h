// Listening TCP sockets, made here and not by libzmq: libzmq binds no names, and its errors do not tell a
// taken port from a foreign address. Thread: any.
#pragma once

#include <string>

namespace dtrain::net {

// A descriptor that listens at `address`; the caller owns it. Port 0: the system chooses. A name is looked
// up, which may wait. Throws UserError with address, errno text and remedy.
int Listen(const std::string& address);

// Where `descriptor` listens. Throws UserError when it is not a listening TCP socket.
std::string ListeningAddress(int descriptor);

}  // namespace dtrain::net
