"""Messages of the Language Server Protocol: JSON behind a header, on streams of bytes."""
import json
import threading

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
NOT_INITIALIZED, CANCELLED = -32002, -32800
_LONGEST = 1 << 26


class BadMessage(Exception):
    """What was read is no message; the next one may be."""


def read(stream):
    """The next message, or None at the end."""
    length = None
    while True:
        line = stream.readline(4096)
        if not line:
            return None
        if line in (b"\r\n", b"\n"):
            if length is not None:
                break
            continue
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            if not value.strip().isdigit() or int(value) > _LONGEST:
                raise BadMessage(f"Content-Length is to be a number up to {_LONGEST}, not {value.strip().decode(errors='replace')}")
            length = int(value)
    body = stream.read(length)
    if len(body) < length:
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadMessage(f"the message is no JSON: {error}") from None


class Writer:
    """Writes messages whole, from any thread."""

    def __init__(self, stream):
        self._stream, self._lock = stream, threading.Lock()

    def send(self, **message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        with self._lock:
            try:
                self._stream.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
                self._stream.flush()
            except (BrokenPipeError, ValueError):
                pass  # the editor has gone; reading ends as well
