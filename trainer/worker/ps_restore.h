// PsRestore: with checkpoint.writer: ps, the chief's part in a restore: it asks ps 0 which checkpoints there
// are and has every ps load its own range of the newest that is complete.
// Owner and thread: the worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "trainer/config/config.h"
#include "trainer/data/input_form.h"
#include "trainer/worker/ps_client.h"

namespace dtrain {

// A checkpoint whose values every ps has.
struct Restored {
  std::string path;
  int64_t step = 0;
  std::string positions;            // JSON
  std::optional<InputForm> inputs;  // unset: it does not say of which columns and classes it is
};

class PsRestore {
 public:
  PsRestore(const Config& config, PsClient& client, Logger& log)
      : config_(config), client_(client), log_(log) {}

  // The newest that every ps could load, each newer one logged with the reason; unset: there is none at all.
  // UserError where one is of another model, and where all are damaged.
  std::optional<Restored> Newest();
  // This one. UserError where it is damaged or of another model.
  Restored Named(const std::string& path);

 private:
  // Why it could not be loaded; empty: every ps has its range.
  std::string Load(const std::string& name, Restored* restored);

  const Config& config_;
  PsClient& client_;
  Logger& log_;
};

}  // namespace dtrain
