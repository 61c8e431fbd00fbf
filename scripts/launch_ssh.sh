#!/usr/bin/env bash
# A plain form of `dtrain launch`, to read and to change: starts every task over ssh and shows its machine before each line.
#   scripts/launch_ssh.sh cluster.yaml "node1 node2" "node3 node4 node5" [--set KEY=VALUE ...]
# The first list has the machines of ps 0, ps 1, ..., the second those of the workers, as cluster.yaml has them.
# DTRAIN is the program on the machines, DIRECTORY its working directory; SSH_OPTIONS are further options of ssh.
# Ctrl-C ends all; the exit code is that of the first task in these lists that failed.
set -eu
if (($# < 3)); then
  sed -n '2,6s/^# //p' "$0" >&2
  exit 2
fi
config=$1 ps=$2 workers=$3
shift 3
tasks=() readers=()
# Descriptor 9 never has data and ends with this shell, which alone holds the other end, 8.
# shellcheck disable=SC2094  # a pipe
exec 7<> <(:) 8> /proc/self/fd/7 9< /proc/self/fd/7 7>&-
# shellcheck disable=SC2046  # the pids that still run
trap 'kill $(jobs -pr) 2>/dev/null || true' INT TERM

# start ROLE INDEX HOST [ARGUMENT ...]
start() {
  # shellcheck disable=SC2206  # DTRAIN may be several words: env A=B dtrain
  local host=$3 words=(${DTRAIN:-dtrain} --config "$config" --role "$1" --index "$2" "${@:4}")
  local directory=${DIRECTORY:-$PWD}
  # The task ends with the connection, because cat ends with it.
  local there="exec 3<&0; cd ${directory@Q} || exit 2; ${words[*]@Q} & task=\$!
    { cat <&3; kill \$task; } >/dev/null 2>&1 & watch=\$!
    wait \$task; code=\$?; kill \$watch 2>/dev/null; exit \$code"
  exec {lines}> >(exec sed -u "s/^/[$host] /" >&2 8>&-)
  readers+=($!)
  # shellcheck disable=SC2086,SC2029  # several options; `there` is assembled and quoted here
  ssh -T -o BatchMode=yes -o ServerAliveInterval=2 -o ServerAliveCountMax=2 ${SSH_OPTIONS:-} -- "$host" "$there" \
    <&9 >&"$lines" 2>&1 8>&- 9<&- &
  tasks+=($!)
  exec {lines}>&-
}

index=0
for host in $ps; do start ps $((index++)) "$host" "$@"; done
index=0
for host in $workers; do start worker $((index++)) "$host" "$@"; done
code=0
for task in "${tasks[@]}"; do
  ended=0
  wait "$task" || ended=$?
  if ((code == 0)); then code=$ended; fi
done
wait "${readers[@]}" || true
exit "$code"
