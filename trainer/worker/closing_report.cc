#include "trainer/worker/closing_report.h"

#include <utility>

#include "base/error.h"

namespace dtrain {
namespace {

// `--result` shows the weights of models up to this many values.
constexpr int64_t kSmallModel = 64;

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
                              builder.CreateString(figures));
    });
  }
}

// And adds up what the ps sent and received.
std::vector<ModelPart> ClosingReport::AskForChecksums(RunSummary* report) {
  std::vector<ModelPart> parts;
  for (size_t ps = 0; ps < client_.ps_count(); ++ps) {
    const wire::ChecksumList* list =
        client_.Call(ps, false, "checksums", [](auto& builder) { return wire::CreateChecksums(builder); })
            .body_as_ChecksumList();
    if (list == nullptr) throw Failure(ExitCode::kInternal, "a ps answered Checksums with something else");
    for (const wire::Part* part : *list->parts()) {
      parts.push_back({part->name()->str(), part->first_row(), part->bytes(), part->crc()});
    }
    report->bytes_sent += static_cast<int64_t>(list->bytes_sent());
    report->bytes_received += static_cast<int64_t>(list->bytes_received());
  }
  return parts;
}

void ClosingReport::Report(const float* parameters, RunSummary report) {
  std::vector<ModelPart> parts = AskForChecksums(&report);
  const net::ChannelStats stats = Sum(channel_.stats(), data_.feeding_stats());
  report.bytes_sent += static_cast<int64_t>(stats.bytes_sent - told_.bytes_sent);
  report.bytes_received += static_cast<int64_t>(stats.bytes_received - told_.bytes_received);
  report.model_crc = ModelChecksum(std::move(parts));
  if (layout_.size <= kSmallModel) {
    for (const Variable& variable : layout_.variables) {
      const float* values = parameters + variable.offset;
      report.weights[variable.name] = std::vector<float>(values, values + variable.size());
    }
  }
  client_.Call(0, false, "report", [&](auto& builder) {
    return wire::CreateReport(builder, builder.CreateString(ToWireJson(report)));
  });
}

}  // namespace dtrain
