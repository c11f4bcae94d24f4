#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A strict receiver of OTLP over HTTP, after OpenTelemetry's specification.

	otlp.py read FILE...	print the spans of a message, one a line
	otlp.py serve MODE OUT	print a port of 127.0.0.1; take one message there, keep it in OUT, and
				answer: ok, partial, warning, busy, lost, chunked or
				open (the connection stays open until tdt closes it)
"""

import http.server
import struct
import sys

# Number: (name, type, repeated).  Types in capitals are messages.
MESSAGES = {
    "Request": {1: ("resource_spans", "ResourceSpans", True)},
    "ResourceSpans": {
        1: ("resource", "Resource", False),
        2: ("scope_spans", "ScopeSpans", True),
        3: ("schema_url", "string", False),
    },
    "Resource": {1: ("attributes", "KeyValue", True), 2: ("dropped", "number", False)},
    "ScopeSpans": {
        1: ("scope", "Scope", False),
        2: ("spans", "Span", True),
        3: ("schema_url", "string", False),
    },
    "Scope": {1: ("name", "string", False), 2: ("version", "string", False)},
    "Span": {
        1: ("trace_id", "bytes", False),
        2: ("span_id", "bytes", False),
        3: ("trace_state", "string", False),
        4: ("parent_span_id", "bytes", False),
        5: ("name", "string", False),
        6: ("kind", "number", False),
        7: ("start", "fixed64", False),
        8: ("end", "fixed64", False),
        9: ("attributes", "KeyValue", True),
        13: ("links", "Link", True),
        15: ("status", "Status", False),
        16: ("flags", "fixed32", False),
    },
    "Link": {
        1: ("trace_id", "bytes", False),
        2: ("span_id", "bytes", False),
        3: ("trace_state", "string", False),
        4: ("attributes", "KeyValue", True),
        6: ("flags", "fixed32", False),
    },
    "Status": {2: ("message", "string", False), 3: ("code", "number", False)},
    "KeyValue": {1: ("key", "string", False), 2: ("value", "AnyValue", False)},
    "AnyValue": {
        1: ("string", "string", False),
        2: ("bool", "number", False),
        3: ("int", "number", False),
        4: ("double", "fixed64", False),
    },
}

WIRE_TYPES = {"number": 0, "fixed64": 1, "fixed32": 5}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if byte < 0x80:
            assert shift <= 70
            return value, at


def value_of(data, at, kind):
    if kind == "number":
        return varint(data, at)
    if kind in WIRE_TYPES:
        size = int(kind[5:]) // 8
        assert at + size <= len(data)
        return struct.unpack_from("<Q" if size == 8 else "<I", data, at)[0], at + size
    length, at = varint(data, at)
    assert at + length <= len(data)
    part = data[at : at + length]
    if kind == "string":
        part = part.decode("utf-8")
    elif kind != "bytes":
        part = message(part, kind)
    return part, at + length


def message(data, kind):
    result = {}
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        name, field_kind, repeated = MESSAGES[kind][tag >> 3]
        assert tag & 7 == WIRE_TYPES.get(field_kind, 2), (kind, name)
        value, at = value_of(data, at, field_kind)
        if repeated:
            result.setdefault(name, []).append(value)
        else:
            assert name not in result, (kind, name)
            result[name] = value
    return result


def attributes(owner):
    result = {}
    for attribute in owner.get("attributes", []):
        assert attribute["key"] and attribute["key"] not in result
        ((kind, value),) = attribute["value"].items()
        result[attribute["key"]] = bool(value) if kind == "bool" else value
    return result


def an_id(owner, name, size):
    value = owner[name]
    assert len(value) == size and any(value), name
    return value.hex()


def print_span(span, seen):
    trace, number = an_id(span, "trace_id", 16), an_id(span, "span_id", 8)
    assert (trace, number) not in seen
    seen.add((trace, number))
    assert span["name"] and span["kind"] == 1 and span["start"] <= span["end"]
    line = [trace, an_id(span, "parent_span_id", 8), span["start"], span["end"], span["name"]]
    line += [f"{key}={value}" for key, value in sorted(attributes(span).items())]
    for link in span.get("links", []):
        line += ["->", an_id(link, "trace_id", 16), an_id(link, "span_id", 8)]
        line += [f"{key}={value}" for key, value in attributes(link).items()]
    print(*line)


def read(data):
    seen = set()
    for resource_spans in message(data, "Request").get("resource_spans", []):
        print("resource", *(f"{key}={value}" for key, value in
                            attributes(resource_spans["resource"]).items()))
        for scope_spans in resource_spans["scope_spans"]:
            assert scope_spans["scope"]["name"] == "tdt"
            for span in scope_spans["spans"]:
                print_span(span, seen)


def text_field(number, text):
    return bytes([number << 3 | 2, len(text)]) + text.encode()


def partial(rejected, text):
    body = (bytes([1 << 3, rejected]) if rejected else b"") + text_field(2, text)
    return bytes([1 << 3 | 2, len(body)]) + body


ANSWERS = {
    "ok": (200, "application/x-protobuf", b""),
    "open": (200, "application/x-protobuf", b""),
    "chunked": (200, "application/x-protobuf", partial(2, "in chunks")),
    "partial": (200, "application/x-protobuf", partial(3, "too old")),
    "warning": (200, "application/x-protobuf", partial(0, "names are long")),
    "busy": (503, "application/x-protobuf", bytes([1 << 3, 14]) + text_field(2, "try later")),
    "lost": (404, "text/plain", b"404 page not found\n"),
}


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    mode = out = None

    def do_POST(self):
        assert self.path == "/v1/traces"
        assert self.headers["Content-Type"] == "application/x-protobuf"
        assert self.headers["Host"] == "127.0.0.1:%d" % self.server.server_port
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(self.out, "wb") as out:
            out.write(body)
        status, kind, answer = ANSWERS[self.mode]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if self.mode == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
            answer = b"".join(b"1\r\n%c\r\n" % byte for byte in answer) + b"0\r\n\r\n"
        else:
            self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
        if self.mode == "open":
            self.close_connection = False

    def log_message(self, *_):
        pass


def serve(mode, out):
    Collector.mode, Collector.out = mode, out
    server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
    print(server.server_port, flush=True)
    server.handle_request()


if sys.argv[1] == "serve":
    serve(*sys.argv[2:])
else:
    for file_name in sys.argv[2:]:
        with open(file_name, "rb") as file:
            read(file.read())
