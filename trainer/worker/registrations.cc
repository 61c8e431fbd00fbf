#include "trainer/worker/registrations.h"

#include <algorithm>

#include "trainer/worker/exchanges.h"

namespace dtrain {

Registrations::Registrations(const Config& config, TaskId self, const Layout& layout, net::Channel& channel) {
  const uint64_t incarnation = net::NewNodeId();
  for (size_t ps = 0; ps < config.cluster.ps.size(); ++ps) {
    const int64_t window = Exchanges::WindowOf(config.train, layout.ps[ps]);
    all_.push_back(
        std::make_unique<Registration>(config, self, static_cast<int>(ps), incarnation, channel, window));
  }
}

std::vector<PeerLink*> Registrations::links() const {
  std::vector<PeerLink*> links;
  for (const auto& registration : all_) links.push_back(&registration->link());
  return links;
}

size_t Registrations::IndexOf(net::NodeId node) const {
  size_t ps = 0;
  while (ps < all_.size() && all_[ps]->link().node() != node) ++ps;
  return ps;
}

bool Registrations::AllAnswered() const {
  return std::all_of(all_.begin(), all_.end(), [](const auto& one) { return one->welcomed(); });
}

bool Registrations::welcomed() const {
  return AllAnswered() &&
         std::all_of(all_.begin(), all_.end(), [&](const auto& one) { return one->run() == run(); });
}

std::string Registrations::SayHello(bool tell) {
  std::string waiting;
  for (const auto& registration : all_) {
    if (registration->welcomed()) continue;
    registration->SayHello();
    if (tell) waiting += (waiting.empty() ? "" : ", ") + registration->Waiting();
  }
  return waiting;
}

void Registrations::ForgetOtherRuns() {
  if (!AllAnswered() || welcomed()) return;
  for (const auto& registration : all_) registration->Forget();
}

void Registrations::BeginAnew(bool was_in_run) {
  const uint64_t incarnation = net::NewNodeId();
  for (const auto& registration : all_) {
    registration->link().Clear();
    registration->BeginAnew(incarnation);
    if (was_in_run) registration->set_was_in_run();
  }
}

}  // namespace dtrain
