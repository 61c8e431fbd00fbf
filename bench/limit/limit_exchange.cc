// The limit that dtrain's exchanges are compared with: one ROUTER and some DEALERs in processes of their own
// over TCP loopback, with the frames, open exchanges, matrix products and passes over memory that the flags
// give. It shares no code with net/, trainer/ or gpu/. Prints one JSON object. See docs/performance.md.
#include <cblas.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "bench/limit/limit.h"

namespace dtrain::bench {
namespace {

void AddFlags(CLI::App& app, LimitPlan* plan) {
  app.add_option("--clients", plan->clients, "processes that exchange with the server");
  app.add_option("--exchanges", plan->exchanges, "of each client");
  app.add_option("--warm-up", plan->warm_up, "exchanges of all clients before the clock starts");
  app.add_option("--open", plan->open, "exchanges that a client has open");
  app.add_option("--request-header", plan->request_header, "bytes")->check(CLI::Range(8, 1 << 20));
  app.add_option("--reply-header", plan->reply_header, "bytes")->check(CLI::Range(8, 1 << 20));
  app.add_option("--parameters", plan->parameters, "floats that the server holds");
  app.add_option("--block", plan->block, "floats of a payload frame, a part of the parameters; 0: none");
  app.add_flag("!--no-gradients", plan->gradients, "requests are headers alone");
  app.add_flag("--rounds", plan->rounds, "the sum of all clients' gradients is applied once");
  app.add_flag("--alone", plan->alone, "one thread computes --layers and applies, and exchanges nothing");
  app.add_flag("!--no-passes", plan->passes, "blocks are moved, not applied and copied");
  app.add_option("--layers", plan->layers, "sizes, such as 784,100,10; left out: nothing is computed")
      ->delimiter(',');
  app.add_option("--batch", plan->batch, "rows of a step");
}

}  // namespace
}  // namespace dtrain::bench

int main(int argc, char** argv) {
  dtrain::bench::LimitPlan plan;
  CLI::App app("What raw ZeroMQ, OpenBLAS and plain passes do with dtrain's bytes");
  dtrain::bench::AddFlags(app, &plan);
  CLI11_PARSE(app, argc, argv);
  openblas_set_num_threads(1);
  const dtrain::bench::LimitResult result = dtrain::bench::RunLimit(plan);
  fmt::print("{{\"exchanges_per_s\": {:.3f}, \"bytes_per_exchange\": {:.1f}}}\n", result.exchanges_per_s,
             result.bytes_per_exchange);
  return 0;
}
