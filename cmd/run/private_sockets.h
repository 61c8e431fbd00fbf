// PrivateSockets: the sockets over which the processes of one user talk on this machine. They are Unix
// sockets in a directory that no other user can enter, so the tasks need no keys, and nobody finds a port to
// try. Owner: dtrain local. Thread: any, one at a time.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

class PrivateSockets {
 public:
  // Makes a directory in $TMPDIR or, where that is not set, in /tmp. Removes those that killed processes of
  // this user have left there. Throws IoError.
  PrivateSockets();
  ~PrivateSockets();  // closes the sockets and removes the directory
  PrivateSockets(const PrivateSockets&) = delete;
  PrivateSockets& operator=(const PrivateSockets&) = delete;

  // Makes a socket that listens. Its descriptor is not inherited unless the caller says so. Throws IoError.
  struct Listening {
    int fd = -1;
    std::string address;  // "unix:/tmp/dtrain-local-Ab12Cd/ps-0"
  };
  Listening Listen(const std::string& name);
  // Why no task that comes back can connect: somebody has removed the directory. Empty: it is there.
  std::string WhyGone() const;
  // Closes the sockets here: a process that has inherited one goes on listening.
  void Close();

 private:
  std::string directory_;
  int lock_fd_ = -1;  // of the directory; locked as long as this process lives
  std::vector<int> fds_;
};

}  // namespace dtrain
