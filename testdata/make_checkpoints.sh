#!/usr/bin/env bash
# make_checkpoints.sh DTRAIN: makes the checkpoints of testdata/checkpoints/ anew with that binary, and records
# what it says about each: NAME/inspect.txt and NAME/expected.json. Needs jq.
#
# A checkpoint's config.yaml has absolute paths, so all of it is made below /tmp/dtrain-checkpoints, which looks the
# same on every machine. It must not be there before, and is removed in the end.
set -euo pipefail
dtrain=$(realpath "$1")
source=$(realpath "$(dirname "$0")/..")
root=/tmp/dtrain-checkpoints
cases=testdata/checkpoints

mkdir "$root"
tasks=()
trap 'kill "${tasks[@]}" 2>/dev/null || true; rm -rf "$root"' EXIT
mkdir -p "$root/configs/data" "$root/$cases"
cp "$source/configs/data/flowers.csv" "$root/configs/data/"
(cd "$source/$cases" && cp --parents ./*/job.yaml "$root/$cases/")
cd "$root"

fail() {
  echo "make_checkpoints.sh: $*" >&2
  exit 1
}

# FILE TEXT: until the file has it. tail ends by its next line, or in time.
await_line() {
  (set +o pipefail && timeout 60 tail -n +1 -F "$1" 2>> tail.log | grep -q -m 1 "$2") || fail "$1 has no \"$2\""
}

# NAME ARGUMENTS...: runs the job to half of its steps and keeps its last checkpoint, or the best one.
train() {
  local name=$1
  shift
  "$dtrain" local --config "$cases/$name/job.yaml" --set checkpoint.dir="$name" --set train.steps=20 \
    --result result.json "$@" 2> log || { cat log >&2; fail "$name"; }
  if [ -e "$name/best" ]; then keep "$name" "$(cat "$name/best")"; else keep "$name" step-000000020; fi
}

# NAME CHECKPOINT: of all checkpoints of the run this one stays; with `best`, where the run has chosen one.
keep() {
  mkdir "$cases/$1/ckpt"
  cp -r "$1/$2" "$cases/$1/ckpt/"
  if [ -e "$1/best" ]; then cp "$1/best" "$cases/$1/ckpt/"; fi
}

# The run has 20,000 steps, so that worker 1 is lost in its middle.
train_and_lose_worker() {
  local name=$1
  "$dtrain" local --config "$cases/$name/job.yaml" --ps 2 --workers 3 --set checkpoint.dir="$name" \
    --set train.steps=20000 --set hooks.log_every_steps=10 --result result.json 2> log &
  local run=$!
  tasks+=("$run")
  await_line log 'worker 1 |.* global step'
  kill -9 "$(pgrep -P "$run" -f 'role worker --index 1 ')"
  wait "$run" || true
  jq -e '.global_step == 20000 and .lost_workers == [1]' result.json > result.check || { cat log >&2; fail "$name"; }
  keep "$name" step-000020000
}

# Worker 2 comes late, and worker 1 never. The ports of the job's file are free.
train_elastic() {
  local name=$1
  local task=("$dtrain" --config "$cases/$name/job.yaml" --set checkpoint.dir="$name" --set train.steps=20000
    --set hooks.log_every_steps=10)
  local index
  for index in 0 1; do
    "${task[@]}" --role ps --index "$index" 2> "ps-$index.log" &
    tasks+=("$!")
  done
  "${task[@]}" --role worker --index 0 --result result.json 2> log &
  local chief=$!
  tasks+=("$chief")
  await_line log 'global step'
  "${task[@]}" --role worker --index 2 2> late.log &
  tasks+=("$!")
  wait "$chief" || { cat log >&2; fail "$name"; }
  wait "${tasks[@]}" || true
  jq -e '.global_step == 20000 and .local_steps[1] == 0 and .local_steps[2] > 0' result.json > result.check ||
    { cat result.json log >&2; fail "$name"; }
  keep "$name" step-000020000
}

# NAME PS WORKERS: what this binary says about the checkpoint. It is resumed with so many ps and workers.
record() {
  local name=$1 ps=$2 workers=$3
  local here=$cases/$name
  "$dtrain" inspect "$here/ckpt" | sed -E 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.+-]{18}/TIME/' > "$here/inspect.txt"
  "$dtrain" eval "$here/ckpt" --config "$here/job.yaml" --result eval.json > eval.txt
  local form
  for form in safetensors npz onnx; do
    "$dtrain" export "$here/ckpt" --config "$here/job.yaml" --out "model.$form" 2>> log
  done
  "$dtrain" local --config "$here/job.yaml" --ps "$ps" --workers "$workers" --set checkpoint.dir=resumed \
    --set checkpoint.resume="$(echo "$here"/ckpt/step-*)" --result resumed.json 2> log || { cat log >&2; fail "$name"; }
  jq -n --slurpfile eval eval.json --slurpfile resumed resumed.json \
    --arg kernels "$("$dtrain" --version | grep -o 'kernels for .*')" \
    --arg safetensors "$(sha256sum < model.safetensors)" --arg npz "$(sha256sum < model.npz)" \
    --arg onnx "$(sha256sum < model.onnx)" --argjson ps "$ps" --argjson workers "$workers" '{
      kernels: $kernels,
      eval: $eval[0] | {global_step, model_crc, test_loss, test_accuracy, test_auc} | with_entries(select(.value != null)),
      export_sha256: {safetensors: $safetensors, npz: $npz, onnx: $onnx} | map_values(.[:64]),
      resume: ({ps: $ps, workers: $workers} + ($resumed[0] | {global_step, deterministic, model_crc, test_loss}))
    } | if .resume.deterministic or $workers == 1 then . else del(.resume.model_crc, .resume.test_loss) end' \
    > "$here/expected.json"
  rm -rf resumed "$name"
}

# NAME PS WORKERS RESUME_PS ARGUMENTS...: one that `dtrain local` makes without an incident.
make_case() {
  train "$1" --ps "$2" --workers "$3" "${@:5}"
  record "$1" "$4" "$3"
}

make_case async 2 2 1
make_case async_one_worker 2 1 3
make_case async_one_worker_ps_writes 3 1 2 --set checkpoint.writer=ps
make_case ssp 1 2 2
make_case ssp_ps_writes 2 2 1 --set checkpoint.writer=ps
make_case sync_adagrad 2 2 3
make_case sync_adam_mlp 3 2 2
make_case sync_adam_mlp_ps_writes 3 2 1 --set checkpoint.writer=ps
make_case sync_best 2 2 1 --set eval.keep_best=true
make_case sync_ftrl 1 2 2
make_case sync_linear 2 3 1
make_case sync_momentum_mlp 3 2 1
make_case sync_rmsprop_ps_writes 2 2 3 --set checkpoint.writer=ps
train_and_lose_worker sync_lost_worker
record sync_lost_worker 1 3
train_elastic elastic
record elastic 1 3

for name in "$cases"/*; do
  rm -rf "${source:?}/$name/ckpt"
  cp -r "$name/." "$source/$name/"
done
