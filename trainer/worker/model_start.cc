#include "trainer/worker/model_start.h"

#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "trainer/checkpoint/bad_checkpoint.h"
#include "trainer/checkpoint/check_meaning.h"
#include "trainer/checkpoint/pieces.h"
#include "trainer/optim/optimizer.h"

namespace dtrain {

StartedFrom ModelStart::Fill(bool again, const LoadedData& data) {
  const std::optional<int64_t> train_rows = data.train->rows();
  StartedFrom from;
  from.positions = StartOfData(config_, train_rows);
  const TimePoint begun = Clock::now();
  const std::optional<Restored> restored = config_.checkpoint.writer == CheckpointWriter::kPs
                                               ? LoadByPs(again, data.form)
                                               : SendOwn(again, data.form);
  if (restored) {
    from.path = restored->path;
    from.step = restored->step;
    if (restored->inputs) from.scale = restored->inputs->scale;
    Positions saved;
    if (!FromJson(restored->positions, &saved)) {
      throw UserError("{}: manifest: the positions of its workers cannot be read. Name another one.",
                      from.path);
    }
    Resumption resumption = Resume(saved, config_, train_rows);
    if (!resumption.said.empty()) log_.Info("{}", resumption.said);
    from.positions = std::move(resumption.positions);
    log_.Info("restored {} in {:.2f} s: global step {}", from.path, SecondsSince(begun), from.step);
  }
  const auto ask = [&](auto& builder) {
    return wire::CreateInitialise(builder, restored.has_value(), static_cast<uint64_t>(from.step));
  };
  client_.CallAll("initialise", ask, [](size_t, const wire::Envelope&) {});
  if (!restored) log_.Info("initialised {} variables, {} values", layout_.variables.size(), layout_.size);
  return from;
}

// The run has written one before its first step. Beginning anew would lose all of it without a word.
void ModelStart::NothingToGoBackTo() const {
  throw IoError(
      "{}: no complete checkpoint of this run is here to go back to. If another worker was the chief, its "
      "disk may "
      "have one: start the run again there, or give all workers one directory (checkpoint.dir).",
      config_.checkpoint.dir.empty() ? "checkpoint.dir is not set" : config_.checkpoint.dir);
}

// The ps have it by then; what it is of is for the chief to see, who has the data.
std::optional<Restored> ModelStart::LoadByPs(bool again, const InputForm& form) {
  std::optional<Restored> restored = AskPs(again);
  if (!restored || again) return restored;
  if (restored->inputs) {
    CheckForm(restored->path, *restored->inputs, form);
  } else {
    log_.Info("{} does not say of which columns and classes it is: they are not compared", restored->path);
  }
  return restored;
}

std::optional<Restored> ModelStart::AskPs(bool again) {
  PsRestore ps(config_, client_, log_);
  const std::string& resume = config_.checkpoint.resume;
  if (again || resume == "auto") {
    if (std::optional<Restored> newest = ps.Newest()) return newest;
    if (again) NothingToGoBackTo();
  }
  if (resume == "auto" || resume == "never") return std::nullopt;
  return ps.Named(resume);
}

std::optional<Restored> ModelStart::SendOwn(bool again, const InputForm& form) {
  const std::optional<std::string> path = Choose(again);
  if (!path) return std::nullopt;
  CheckpointReader checkpoint(*path);
  checkpoint.CheckFits(layout_, SlotNames(config_));
  if (!again) CheckMeaning(*path, checkpoint.manifest(), config_, form);
  Send(checkpoint);
  const Manifest& manifest = checkpoint.manifest();
  return Restored{*path, manifest.step, manifest.positions, manifest.inputs};
}

std::optional<std::string> ModelStart::Choose(bool again) {
  const std::string& resume = config_.checkpoint.resume;
  const bool named = resume != "auto" && resume != "never";
  if (directory_ != nullptr && (again || resume == "auto")) {
    if (std::optional<std::string> newest = Newest()) return newest;
  }
  if (again) NothingToGoBackTo();
  if (!named) return std::nullopt;
  CheckpointReader(resume).Verify();
  return resume;
}

std::optional<std::string> ModelStart::Newest() {
  std::vector<std::string> skipped;
  std::optional<std::string> path = directory_->FindNewest(&skipped);
  for (const std::string& line : skipped) log_.Warning("{}: {}", directory_->path(), line);
  if (!path && !skipped.empty()) throw NoneComplete(directory_->path());
  return path;
}

void ModelStart::Send(CheckpointReader& checkpoint) {
  for (size_t ps = 0; ps < client_.ps_count(); ++ps) SendShard(checkpoint, ps);
}

void ModelStart::SendShard(CheckpointReader& checkpoint, size_t ps) {
  const std::vector<std::string> slots = SlotNames(config_);
  for (const Piece& piece : PiecesOf(layout_, static_cast<int>(ps), static_cast<int>(slots.size()))) {
    const net::LentBuffer values(static_cast<size_t>(piece.count) * sizeof(float));
    const std::string& slot =
        piece.slot == 0 ? CheckpointReader::kWeights : slots[static_cast<size_t>(piece.slot) - 1];
    checkpoint.Read(layout_.variables[static_cast<size_t>(piece.variable)].name, slot, piece.first,
                    piece.count, values.floats());
    client_.Restore(ps, static_cast<uint32_t>(piece.slot), static_cast<uint64_t>(piece.begin), values);
  }
}

}  // namespace dtrain
