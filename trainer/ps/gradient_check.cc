#include "trainer/ps/gradient_check.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <optional>

#include "base/error.h"
#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/model/finite.h"

namespace dtrain {

std::string GradientCheck::WhyNot(const Member& member, const wire::Push& push,
                                  net::TensorView gradient) const {
  if (std::string wrong = WhyMalformed(member, push, gradient); !wrong.empty()) return wrong;
  if (!shard_.initialised()) return "there are no initial values yet";
  if (!rule_.MayPush(member)) return "its step was not granted";
  if (rule_.Waits(member, push.block())) return "the one before it is not answered yet";
  if (push.checksum() != 0 && push.checksum() != net::PayloadChecksum(gradient.data, gradient.size)) {
    return "its bytes do not have the checksum that it names (net.checksum)";
  }
  return std::string();
}

std::string GradientCheck::WhyMalformed(const Member& member, const wire::Push& push,
                                        net::TensorView gradient) const {
  if (const int64_t next = shard_.InOrder(member.blocks_come); push.block() != next) {
    return fmt::format("it has block {}, and block {} is the next", push.block(), next);
  }
  if (const double weight = push.weight().value_or(0); !std::isfinite(weight) || weight < 0) {
    return fmt::format("its rows weigh {}", weight);
  }
  const auto form = static_cast<net::Compression>(push.form());
  const net::Compression expected = shard_.FormOf(push.block(), config_.net.compress.push);
  if (form != expected) {
    return fmt::format("block {} has its values as {}, and must have them as {} (net.compress.push)",
                       push.block(), net::CompressionName(form), net::CompressionName(expected));
  }
  // Each row that the gradient is of was asked for by an earlier request of this worker.
  const RowDesk::Keys keys = rule_.rows().KeysNamedBy(member.task.index, push);
  if (keys == nullptr) return fmt::format("it is of the rows of request {}, which are not here", push.of());
  const size_t values = HasValues(push) ? shard_.bytes(push.block(), keys->size()) / sizeof(float) : 0;
  const size_t bytes = net::CompressedBytes(form, static_cast<int64_t>(values));
  RowDesk::Parts parts;
  if (RowDesk::Split(gradient, push.key_bytes(), &parts) && parts.values.size == bytes) return std::string();
  if (shard_.table(push.block()) == nullptr) {
    return fmt::format("block {} of {} has {} bytes, that of {} has {}", push.block(),
                       Plural(push.examples(), "row"), gradient.size, TaskName(self_), bytes);
  }
  return fmt::format("block {} has {} bytes, {} of them of keys, and is of {} rows, which take {}",
                     push.block(), gradient.size, push.key_bytes(), keys->size(), bytes);
}

void GradientCheck::CheckFinite(const Member& member, const wire::Push& push,
                                const BlockGradient& gradient) const {
  if (!config_.hooks.checks_finite() || !HasValues(push)) return;
  const std::optional<std::string> wrong = shard_.WhereNotFinite(push.block(), gradient);
  if (!wrong) return;
  throw Diverged(fmt::format("{}, local step {}, at version {} of {}: in its gradient {}",
                             TaskName(member.task), member.taken + 1, shard_.version(push.block()),
                             TaskName(self_), *wrong));
}

}  // namespace dtrain
