#!/usr/bin/env bash
# libzmq 4.3.5 (pyzmq 27.1.0, PyPI, Linux): ZMQ_RCVHWM set on a bound ROUTER holds for the connections that are there
# and never for those that come later, which keep the value of the time of bind(). So a server that raises its queue
# gives the long queue to its oldest clients alone. Run: findings/libzmq_receive_queue_after_bind.sh; it installs into a
# temp folder.
#
# Seen: with 2 at bind() and 1000 afterwards, nobody reading, messages of 64 KiB: a client that was connected before the
# change gets rid of some 1,000 messages more than one that connects after it; both were sent what the kernel's buffers
# hold. Reading the option back says 1000. Fails if one of this is no longer so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet pyzmq==27.1.0
cat >"$folder/queue.py" <<'PYTHON'
import time
import zmq

context = zmq.Context()
router = context.socket(zmq.ROUTER)
router.setsockopt(zmq.RCVHWM, 2)
port = router.bind_to_random_port("tcp://127.0.0.1")


def connect():
    client = context.socket(zmq.DEALER)
    client.setsockopt(zmq.SNDHWM, 1)
    client.setsockopt(zmq.LINGER, 0)
    client.connect(f"tcp://127.0.0.1:{port}")
    client.send(b"hello")
    assert router.recv_multipart()[1] == b"hello"
    return client


def sent_until_full(client):
    """How many messages leave until none has for half a second."""
    count, last = 0, time.monotonic()
    while time.monotonic() - last < 0.5:
        try:
            client.send(bytes(65536), zmq.DONTWAIT)
            count, last = count + 1, time.monotonic()
        except zmq.Again:
            time.sleep(0.001)
    return count


early = connect()
router.setsockopt(zmq.RCVHWM, 1000)
late = connect()
of_late, of_early = sent_until_full(late), sent_until_full(early)
print("libzmq", zmq.zmq_version(), "option", router.getsockopt(zmq.RCVHWM), "early", of_early, "late", of_late)
assert router.getsockopt(zmq.RCVHWM) == 1000
assert of_late < 600
assert 900 < of_early - of_late < 1100
PYTHON
"$folder/python/bin/python" "$folder/queue.py"
echo "as described"
