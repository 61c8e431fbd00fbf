#include "trainer/worker/closing_report.h"

namespace dtrain {
namespace {

TimeSpread Spread(const LogHistogram& nanos) {
  const HistogramFigures figures = nanos.Figures();
  return {figures.sum * 1e-9, figures.p50 * 1e-6, figures.p95 * 1e-6};
}

net::ChannelStats Sum(const net::ChannelStats& a, const net::ChannelStats& b) {
  return {a.bytes_sent + b.bytes_sent, a.bytes_received + b.bytes_received,
          a.frames_dropped + b.frames_dropped};
}

}  // namespace

WorkerFigures FiguresOf(const StepTimes& times, const Staleness& staleness) {
  WorkerFigures figures;
  figures.steps = times.Of(StepPart::kCompute).count();
  figures.data = Spread(times.Of(StepPart::kData));
  figures.compute = Spread(times.Of(StepPart::kCompute));
  figures.hooks = Spread(times.Of(StepPart::kHooks));
  figures.wait = Spread(times.Of(StepPart::kWait));
  figures.network = Spread(times.Of(StepPart::kNetwork));
  const HistogramFigures all = staleness.all().Figures();
  if (all.count > 0) figures.staleness = StalenessSpread{all.mean, all.p50, all.p95, all.max};
  return figures;
}

void ClosingReport::SayDone(const Own& own) {
  const std::string figures = FiguresToJson(own.figures);
  // ps 0 last: when it knows, all know.
  for (size_t ps = client_.ps_count(); ps-- > 0;) {
    told_ = Sum(channel_.stats(), data_.fed_stats());
    client_.Call(ps, false, "done", [&](auto& builder) {
      return wire::CreateDone(builder, static_cast<uint64_t>(own.local_steps), own.loss, own.first_step_nanos,
                              own.last_step_nanos, told_.bytes_sent, told_.bytes_received, own.accuracy,
                              builder.CreateString(figures), builder.CreateString(own.device),
                              own.first_loss);
    });
  }
}

net::ChannelStats ClosingReport::SinceDone() const {
  const net::ChannelStats all = Sum(channel_.stats(), data_.feeding_stats());
  return {all.bytes_sent - told_.bytes_sent, all.bytes_received - told_.bytes_received, 0};
}

}  // namespace dtrain
