#include "trainer/monitor/metrics_port.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "net/tcp.h"

namespace dtrain {
namespace {

constexpr char kEnd[] = "\r\n\r\n";
constexpr int kPause = 100;  // ms

// RFC 4648, section 4.
std::string Base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t at) {
      return at < bytes.size() ? uint32_t{static_cast<unsigned char>(bytes[at])} : 0;
    };
    const uint32_t bits = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (int digit = 0; digit < 4; ++digit) text += kDigits[bits >> (18 - 6 * digit) & 63];
  }
  for (size_t i = 0; i < (3 - bytes.size() % 3) % 3; ++i) text[text.size() - 1 - i] = '=';
  return text;
}

// Takes as long for a wrong text as for a right one of its length.
bool Same(std::string_view a, std::string_view b) {
  unsigned char differs = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    differs |= static_cast<unsigned char>(a[i] ^ b[i]);
  return differs == 0;
}

// The value of a header of a request; empty: it has none. `head`: to the end of the last header. Names are in
// lower case.
std::string_view HeaderOf(std::string_view head, std::string_view name) {
  for (size_t line = head.find("\r\n"); line != head.npos; line = head.find("\r\n", line + 2)) {
    const std::string_view rest = head.substr(line + 2, head.find("\r\n", line + 2) - line - 2);
    const bool same = rest.size() > name.size() && rest[name.size()] == ':' &&
                      std::equal(name.begin(), name.end(), rest.begin(), [](char wanted, char said) {
                        return wanted == (said >= 'A' && said <= 'Z' ? said - 'A' + 'a' : said);
                      });
    if (!same) continue;
    const size_t begin = rest.find_first_not_of(" \t", name.size() + 1);
    return begin == rest.npos ? "" : rest.substr(begin, rest.find_last_not_of(" \t") - begin + 1);
  }
  return "";
}

std::string Response(const char* status, const char* more, const std::string& body, bool with_body = true) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n"
      "Connection: close\r\n{}\r\n{}",
      status, body.size(), more, with_body ? body : "");
}

}  // namespace

MetricsPort::MetricsPort(int listener, const std::string& password, std::function<std::string()> text,
                         milliseconds patience)
    : authorization_(password.empty() ? "" : "Basic " + Base64("dtrain:" + password)),
      text_(std::move(text)),
      patience_(patience),
      listener_(listener),
      address_(net::ListeningAddress(listener_)),
      stop_(eventfd(0, EFD_CLOEXEC)) {
  DT_CHECK(stop_ >= 0 && fcntl(listener_, F_SETFL, O_NONBLOCK) == 0, errno);
  thread_ = std::thread([this] { Run(); });
}

MetricsPort::~MetricsPort() {
  const uint64_t one = 1;
  DT_CHECK(write(stop_, &one, sizeof one) == sizeof one, errno);
  thread_.join();
  for (const Reader& reader : readers_) close(reader.fd);
  close(listener_);
  close(stop_);
}

void MetricsPort::Run() {
  std::vector<pollfd> items;
  while (true) {
    const bool has_room = readers_.size() < kMaxReaders || OldestAsker() != readers_.end();
    items = {{stop_, POLLIN, 0}, {listener_, static_cast<short>(has_room ? POLLIN : 0), 0}};
    const TimePoint now = Clock::now();
    TimePoint deadline = TimePoint::max();
    for (const Reader& reader : readers_) {
      items.push_back({reader.fd, static_cast<short>(reader.answer.empty() ? POLLIN : POLLOUT), 0});
      deadline = std::min(deadline, reader.deadline);
    }
    poll(items.data(), items.size(), readers_.empty() ? -1 : net::MillisecondsUntil(deadline, now));
    if (items[0].revents != 0) return;
    size_t at = 2;
    const TimePoint after = Clock::now();
    const auto served = [&](Reader& reader) {
      const bool ready = items[at++].revents != 0;
      const bool goes_on = after < reader.deadline && (!ready || Serve(&reader));
      if (!goes_on) close(reader.fd);
      return !goes_on;
    };
    readers_.erase(std::remove_if(readers_.begin(), readers_.end(), served), readers_.end());
    if (items[1].revents != 0) Accept();
  }
}

std::vector<MetricsPort::Reader>::iterator MetricsPort::OldestAsker() {
  return std::find_if(readers_.begin(), readers_.end(),
                      [](const Reader& reader) { return reader.answer.empty(); });
}

// One for each turn, so that a crowd at the door does not keep those inside from being served.
void MetricsPort::Accept() {
  if (const auto oldest = OldestAsker(); readers_.size() >= kMaxReaders) {
    if (oldest == readers_.end()) return;  // its request has just become whole
    close(oldest->fd);
    readers_.erase(oldest);
  }
  const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0) return readers_.push_back({fd, Clock::now() + patience_, "", "", 0});
  // The process has no descriptors left, say: the reader stays at the door, and looking again at once is in
  // vain.
  pollfd stop{stop_, POLLIN, 0};
  if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) poll(&stop, 1, kPause);
}

bool MetricsPort::Serve(Reader* reader) const {
  if (reader->answer.empty()) {
    char part[2048];
    const ssize_t got = read(reader->fd, part, sizeof part);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    reader->request.append(part, static_cast<size_t>(got));
    const bool whole = reader->request.find(kEnd) != std::string::npos;
    if (whole) reader->answer = Answer(reader->request);
    if (!whole && reader->request.size() > kMaxRequest) {
      reader->answer = Response("431 Request Header Fields Too Large", "", "");
    }
    if (reader->answer.empty()) return true;
  }
  const ssize_t sent = send(reader->fd, reader->answer.data() + reader->sent,
                            reader->answer.size() - reader->sent, MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  reader->sent += static_cast<size_t>(sent);
  return reader->sent < reader->answer.size();
}

std::string MetricsPort::Answer(const std::string& request) const {
  const std::string_view head(request.data(), request.find(kEnd));
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const size_t space = line.find(' '), second = line.find(' ', space + 1);
  const std::string_view method = line.substr(0, space);
  if (space == line.npos || second == line.npos) return Response("400 Bad Request", "", "");
  if (method != "GET" && method != "HEAD")
    return Response("405 Method Not Allowed", "Allow: GET, HEAD\r\n", "");
  const std::string_view target = line.substr(space + 1, second - space - 1);
  if (target.substr(0, target.find('?')) != "/metrics")
    return Response("404 Not Found", "", "See /metrics.\n");
  if (!authorization_.empty() && !Same(HeaderOf(head, "authorization"), authorization_)) {
    return Response("401 Unauthorized", "WWW-Authenticate: Basic realm=\"dtrain\"\r\n", "");
  }
  return Response("200 OK", "", text_(), method == "GET");
}

}  // namespace dtrain
