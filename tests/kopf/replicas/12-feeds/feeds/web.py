"""A server of feeds on streams, and a client of it. `slow` hangs, `gone` is a 404."""

import asyncio
import contextlib
import json


class ServerError(Exception):
    def __init__(self, path, status):
        super().__init__(f"{path} answered {status}")
        self.status = status


class Server:
    def __init__(self):
        self.requests = 0
        self._server = None

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *exc_info):
        self._server.close()

    @property
    def address(self):
        return self._server.sockets[0].getsockname()[:2]

    async def _serve(self, reader, writer):
        try:
            line = await reader.readline()
            while (await reader.readline()).strip():
                pass
            self.requests += 1
            path = line.split()[1].decode()
            if path == "/slow":
                await asyncio.sleep(3600)
            status = 404 if path == "/gone" else 200
            body = json.dumps({"path": path, "items": len(path)}).encode()
            writer.write(
                f"HTTP/1.1 {status} -\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            )
            writer.write(body)
            await writer.drain()
        finally:
            writer.close()


async def fetch(address, path, timeout=10.0):
    async with asyncio.timeout(timeout):
        reader, writer = await asyncio.open_connection(*address)
        try:
            writer.write(f"GET /{path} HTTP/1.1\r\nHost: feeds\r\n\r\n".encode())
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head.split()[1])
            if status != 200:
                raise ServerError(path, status)
            length = int(head.split(b"Content-Length:")[1].split()[0])
            return json.loads(await reader.readexactly(length))
        finally:
            writer.close()
            with contextlib.suppress(Exception):
                await writer.wait_closed()
