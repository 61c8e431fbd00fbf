// StepRows: which rows a worker's local step reads, of a finite set in epochs or of one without end. A
// BatchSource gathers them; where worker 0 feeds the others, it does so for each of them.
// Owner: a BatchSource, or a Feeder. Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/data/order.h"

namespace dtrain {

class StepRows {
 public:
  // `rows` of data.train; unset: without end. `permutations` as for BatchOrder. UserError where some worker
  // would have no batch.
  StepRows(const Config& config, std::optional<int64_t> rows, int worker, int workers,
           std::shared_ptr<Permutations> permutations = nullptr);
  // As `spec` says, for so many epochs; unset: without end.
  StepRows(const OrderSpec& spec, std::optional<int64_t> epochs);

  // False when the worker's epochs are over before `local_step`. `rows` is valid until the next call.
  bool Read(int64_t local_step, gpu::Span<const int64_t>* rows);

  StepPlace PlaceOf(int64_t local_step) const;

  // What `dealt` leaves of these data, to be shared by the workers of one run. Failure where it is not of
  // these data. Thread: any.
  std::shared_ptr<const Rest> RestOf(const Dealt& dealt) const;
  // From here on for what is left; null: for all data.
  void Deal(std::shared_ptr<const Rest> rest);

 private:
  OrderSpec spec_;
  std::optional<int64_t> epochs_;
  std::optional<BatchOrder> order_;  // unset: a set without end
  int64_t first_batch_ = 0;          // of a set without end, as the one below
  std::vector<int64_t> rows_;
};

}  // namespace dtrain
