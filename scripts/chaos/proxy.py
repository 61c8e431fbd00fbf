"""A network between tasks: forwards TCP connections, and cuts or delays them on request."""
import socket
import threading


class Proxy:
    """Listens at `address` for connections to `target`. Has threads of its own; any thread may call it."""

    def __init__(self, target):
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.open = set()
        self.flows = threading.Event()
        self.flows.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """Cuts all connections at once, in the middle of their data."""
        with self.lock:
            for end in self.open:
                _shut(end)

    def hold(self, on):
        """While on, connections stay open and nothing is forwarded."""
        self.flows.clear() if on else self.flows.set()

    def close(self):
        _shut(self.listener)
        self.hold(False)
        self.cut()

    def _accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return self.listener.close()
            threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near):
        try:
            far = socket.create_connection(self.target)
        except OSError:
            return near.close()
        ends = (near, far)
        with self.lock:
            self.open.update(ends)
        for end in ends:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=self._copy, args=(far, near), daemon=True)
        back.start()
        self._copy(near, far)
        back.join()
        with self.lock:
            self.open.difference_update(ends)
        for end in ends:
            end.close()

    def _copy(self, source, sink):
        try:
            while data := source.recv(65536):
                self.flows.wait()
                sink.sendall(data)
        except OSError:
            pass
        # When one direction ends, so does the other.
        for end in (source, sink):
            _shut(end)


def _shut(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
