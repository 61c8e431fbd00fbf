// The limit of sparse models: a server with a table of rows and one client in a process of its own over TCP
// loopback, with the frames, the sort of keys, the reads and updates of rows, and the products of layers that
// a step needs. It shares no code with net/, trainer/ or gpu/. Prints one JSON object. See
// docs/performance.md.
#include <cblas.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "bench/limit/rows.h"

int main(int argc, char** argv) {
  dtrain::bench::RowPlan plan;
  CLI::App app("What raw ZeroMQ, a radix sort, OpenBLAS and plain passes over rows do with dtrain's bytes");
  app.add_option("--exchanges", plan.exchanges, "how many");
  app.add_option("--open", plan.open, "exchanges that are open at a time");
  app.add_option("--batch", plan.batch, "rows of a batch");
  app.add_option("--features", plan.features, "of a row");
  app.add_option("--rows", plan.rows, "of the table");
  app.add_option("--width", plan.width, "floats of a row of the table");
  app.add_flag("--adagrad", plan.adagrad, "updates are adagrad's; left out: sgd's");
  app.add_option("--layers", plan.layers, "sizes, such as 221,64,32,1; the inputs are rows and then numbers")
      ->delimiter(',');
  app.add_option("--used-rows", plan.used_rows, "that features are drawn from");
  app.add_option("--pool", plan.pool, "rows of data that are there in advance");
  app.add_option("--ids", plan.ids, "a file of their features, uint32; left out: they are drawn");
  app.add_option("--blocks", plan.blocks, "messages of an exchange");
  app.add_option("--request-header", plan.request_header, "bytes")->check(CLI::Range(16, 1 << 20));
  app.add_option("--reply-header", plan.reply_header, "bytes")->check(CLI::Range(16, 1 << 20));
  CLI11_PARSE(app, argc, argv);
  openblas_set_num_threads(1);
  const dtrain::bench::LimitResult result = dtrain::bench::RunRowLimit(plan);
  fmt::print("{{\"exchanges_per_s\": {:.3f}, \"bytes_per_exchange\": {:.1f}}}\n", result.exchanges_per_s,
             result.bytes_per_exchange);
  return 0;
}
