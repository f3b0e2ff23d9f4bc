"""A connection to the API server, as simple as aiohttp allows.

Shared by the hand-written loop and by the harness that measures it.
"""

import base64
import ssl
import tempfile
from importlib import import_module, util
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import yaml

Json = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
LONGEST_LINE = 4 * 2**20  # a watch sends each object as one line


def connect(kubeconfig: str) -> aiohttp.ClientSession:
    """A session with the server of the current context, by client certificate."""
    config = yaml.safe_load(Path(kubeconfig).read_text())
    context = named(config, "context", config["current-context"])
    cluster = named(config, "cluster", context["cluster"])
    user = named(config, "user", context["user"])
    return aiohttp.ClientSession(
        cluster["server"],
        connector=aiohttp.TCPConnector(ssl=client_tls(cluster, user)),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        read_bufsize=LONGEST_LINE,
    )


async def request(
    session: aiohttp.ClientSession,
    method: str,
    path: str,
    body: Json | None = None,
    content_type: str = "application/json",
    **query: str,
) -> tuple[int, Json]:
    """Send one request; plain text from the server becomes a message."""
    data = None if body is None else orjson.dumps(body)
    headers = {"Content-Type": content_type}
    async with session.request(
        method, path, data=data, headers=headers, params=query
    ) as response:
        content = await response.read()
        if response.content_type == "application/json":
            return response.status, orjson.loads(content)
        return response.status, {"message": content.decode(errors="replace").strip()}


def loop_factory() -> Any:
    """uvloop's factory if it is installed, as in `kopf run`; else asyncio's own."""
    found = util.find_spec("uvloop") is not None
    return import_module("uvloop").new_event_loop if found else None


def named(config: Json, kind: str, name: str) -> Json:
    found: Json = next(e[kind] for e in config[f"{kind}s"] if e["name"] == name)
    return found


def client_tls(cluster: Json, user: Json) -> ssl.SSLContext:
    context = ssl.create_default_context(
        cadata=_pem(cluster, "certificate-authority").decode()
    )
    with tempfile.NamedTemporaryFile() as file:  # Python reads these only from files
        file.write(_pem(user, "client-certificate") + _pem(user, "client-key"))
        file.flush()
        context.load_cert_chain(file.name)
    return context


def _pem(entry: Json, key: str) -> bytes:
    inline = entry.get(f"{key}-data")
    return base64.b64decode(inline) if inline else Path(entry[key]).read_bytes()
