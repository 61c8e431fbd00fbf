#include "trainer/checkpoint/directory_claim.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "trainer/checkpoint/still_there.h"

namespace dtrain {
namespace {

constexpr char kName[] = "/.in-use";
// Of a holder's name.
constexpr size_t kLongestName = 500;

std::string Holder(int fd) {
  std::string who(kLongestName, '\0');
  const ssize_t got = pread(fd, who.data(), who.size(), 0);
  who.resize(got > 0 ? static_cast<size_t>(got) : 0);
  std::replace_if(
      who.begin(), who.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return who.empty() ? "another process" : who;
}

}  // namespace

DirectoryClaim::~DirectoryClaim() {
  if (fd_ < 0) return;
  unlink(path_.c_str());
  close(fd_);
}

std::string DirectoryClaim::Take(const std::string& directory, const std::string& who) {
  if (fd_ >= 0) return "";
  while (fd_ < 0) {
    path_ = directory + kName;
    const int fd = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return "";  // what is wrong with the directory shows when something is saved
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      const std::string holder = Holder(fd);
      close(fd);
      return holder;
    }
    if (StillThere(fd)) {
      fd_ = fd;
    } else {
      close(fd);
    }
  }
  if (ftruncate(fd_, 0) == 0) WriteAll(fd_, who);  // that a killed owner left
  return "";
}

}  // namespace dtrain
