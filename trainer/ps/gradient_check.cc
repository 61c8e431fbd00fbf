#include "trainer/ps/gradient_check.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>

#include "base/error.h"
#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/model/finite.h"
#include "trainer/model/layout.h"

namespace dtrain {

GradientCheck::GradientCheck(const Config& config, TaskId self, const Layout& layout, const Shard& shard,
                             const UpdateRule& rule)
    : config_(config), self_(self), layout_(layout), shard_(shard), rule_(rule) {}

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
  const bool of_rows = shard_.table(push.block()) != nullptr;
  const auto form = static_cast<net::Compression>(push.form());
  const net::Compression push_form = config_.net.compress.push;
  const net::Compression expected = of_rows                 ? net::FormOfRows(push_form)
                                    : shard_.reads_values() ? push_form
                                                            : net::Compression::kNone;
  if (form != expected) {
    return fmt::format("block {} has its values as {}, and must have them as {} (net.compress.push)",
                       push.block(), net::CompressionName(form), net::CompressionName(expected));
  }
  const size_t values = HasValues(push) ? shard_.tensor_bytes(push.block()) / sizeof(float) : 0;
  const size_t bytes = net::CompressedBytes(form, static_cast<int64_t>(values));
  if (of_rows) {
    if (std::string wrong = WhyNotRows(member, push, gradient); !wrong.empty()) return wrong;
  } else if (gradient.size != bytes) {
    return fmt::format("block {} of {} has {} bytes, that of {} has {}", push.block(),
                       Plural(push.examples(), "row"), gradient.size, TaskName(self_), bytes);
  }
  return std::string();
}

// Each row that the gradient is of was asked for by an earlier request of this worker.
std::string GradientCheck::WhyNotRows(const Member& member, const wire::Push& push,
                                      net::TensorView payload) const {
  const RowDesk::Keys keys = rule_.rows().Find(member.task.index, push.block(), push.of());
  if (keys == nullptr) return fmt::format("it is of the rows of request {}, which are not here", push.of());
  RowDesk::Parts parts;
  const int64_t values =
      HasValues(push) ? static_cast<int64_t>(keys->size()) * shard_.table(push.block())->width() : 0;
  const size_t bytes = net::CompressedBytes(static_cast<net::Compression>(push.form()), values);
  if (RowDesk::Split(payload, push.key_bytes(), &parts) && parts.values.size == bytes) return "";
  return fmt::format("block {} has {} bytes, {} of them of keys, and is of {} rows, which take {}",
                     push.block(), payload.size, push.key_bytes(), keys->size(), bytes);
}

std::string GradientCheck::WhereNotFinite(const Member& member, const wire::Push& push,
                                          net::TensorView gradient) const {
  if (shard_.table(push.block()) == nullptr) {
    const Range range = BlockOf(layout_.ps[static_cast<size_t>(self_.index)], push.block());
    return FirstNonFinite(layout_, range, gradient.data).value_or("");
  }
  const RowDesk::Keys keys = rule_.rows().Find(member.task.index, push.block(), push.of());
  return FirstNonFinite(*shard_.table(push.block()), *keys, gradient.data, layout_.factors_name())
      .value_or("");
}

void GradientCheck::CheckFinite(const Member& member, const wire::Push& push,
                                net::TensorView gradient) const {
  if (!config_.hooks.checks_finite() || !shard_.reads_values() || !HasValues(push)) return;
  const std::string wrong = WhereNotFinite(member, push, gradient);
  if (wrong.empty()) return;
  throw Diverged(fmt::format("{}, local step {}, at version {} of {}: in its gradient {}",
                             TaskName(member.task), member.taken + 1, shard_.version(push.block()),
                             TaskName(self_), wrong));
}

}  // namespace dtrain
