"""The example 19-database as the sync hook of a Metacontroller CompositeController.

Metacontroller keeps the order, the watches, the retries and the children; the hook is a
function from the present to the desired state. metacontroller.yaml declares it.
"""

import hashlib
import json
import secrets
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PORT = 5432
MADE = "databases.fnop.dev/made"
ADDRESS = ("", 8080)


def sync(request: Any, now: datetime, drawn: str) -> dict[str, Any]:
    """The children and the status that a database desires.

    `drawn` is a new password, in case one is needed.
    """
    parent, children = request["parent"], request["children"]
    spec, meta = parent["spec"], parent["metadata"]
    name, size = meta["name"], spec["size"]
    stateful_set = children["StatefulSet.apps/v1"].get(name, {})
    period = timedelta(seconds=spec["rotateSeconds"])
    password, made = password_in(children["Secret.v1"].get(name))
    if not password or made + period <= now:
        password, made = b64encode(drawn.encode()).decode(), now
    settings = {key: str(value) for key, value in spec.get("settings", {}).items()}
    desired = [
        config_map(name, settings),
        secret(name, password, made),
        service(name),
    ]
    # A volume's size is immutable in a StatefulSet. Metacontroller deletes objects
    # missing here; the next call names it again, and it finds the existing volumes.
    if not stateful_set or disk_of(stateful_set) == spec["disk"]:
        replicas = next_size(size, stateful_set)
        desired.append(workload(name, replicas, spec["disk"], settings))
    ready = stateful_set.get("status", {}).get("readyReplicas", 0)
    return {
        "children": desired,
        # It replaces the present status, with others' conditions.
        "status": {
            "conditions": with_ready(parent, ready == size, f"{ready}/{size}", now),
            "endpoint": f"{name}.{meta['namespace']}.svc:{PORT}",
        },
        "resyncAfterSeconds": (made + period - now).total_seconds(),
    }


def with_ready(
    parent: Any, is_ready: bool, message: str, now: datetime
) -> list[dict[str, Any]]:
    """The present conditions, with Ready updated."""
    status = "True" if is_ready else "False"
    found = {e["type"]: e for e in parent.get("status", {}).get("conditions", ())}
    before = found.get("Ready", {})
    since = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    found["Ready"] = {
        "type": "Ready",
        "status": status,
        "reason": "Replicas",
        "message": message,
        "observedGeneration": parent["metadata"]["generation"],
        "lastTransitionTime": (
            before["lastTransitionTime"] if before.get("status") == status else since
        ),
    }
    return [*found.values()]


def disk_of(stateful_set: Any) -> str:
    (claim,) = stateful_set["spec"]["volumeClaimTemplates"]
    size: str = claim["spec"]["resources"]["requests"]["storage"]
    return size


class Hook(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        """Metacontroller calls again, later each time, unless the answer is a 200."""
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = sync(given, datetime.now(UTC), secrets.token_hex(16))
        body = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def password_in(secret: Any) -> tuple[str, datetime]:
    """The password, and when it was made; "" where there is none."""
    try:
        made = datetime.fromisoformat(secret["metadata"]["annotations"][MADE])
        return secret["data"]["password"], made.replace(tzinfo=UTC)
    except (TypeError, KeyError, ValueError):
        return "", datetime.fromtimestamp(0, UTC)


def next_size(wanted: int, stateful_set: Any) -> int:
    """The replicas to request now: decrease one by one, each after the last is gone."""
    asked: int = stateful_set.get("spec", {}).get("replicas", 0)
    if wanted >= asked:
        return wanted
    seen = stateful_set.get("status", {})
    is_seen = seen.get("observedGeneration") == stateful_set["metadata"]["generation"]
    return asked - 1 if is_seen and seen["replicas"] <= asked else asked


def config_map(name: str, settings: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": settings,
    }


def secret(name: str, password: str, made: datetime) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "annotations": {MADE: made.isoformat()}},
        "data": {"password": password},
    }


def service(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {
            "clusterIP": "None",
            "selector": {"database": name},
            "ports": [{"name": "sql", "port": PORT, "protocol": "TCP"}],
        },
    }


def workload(
    name: str, size: int, disk: str, settings: dict[str, str]
) -> dict[str, Any]:
    """Its pods are made again when the settings change."""
    text = json.dumps(settings, sort_keys=True).encode()
    mark = {"databases.fnop.dev/settings": hashlib.sha256(text).hexdigest()[:8]}
    password = {"secretKeyRef": {"name": name, "key": "password"}}
    container = {
        "name": "database",
        "image": "database:1",
        "ports": [{"containerPort": PORT, "protocol": "TCP"}],
        "env": [{"name": "PASSWORD", "valueFrom": password}],
        "envFrom": [{"configMapRef": {"name": name}}],
    }
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": disk}},
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "serviceName": name,
            "replicas": size,
            "selector": {"matchLabels": {"database": name}},
            "template": {
                "metadata": {"labels": {"database": name}, "annotations": mark},
                "spec": {"containers": [container]},
            },
            "volumeClaimTemplates": [claim],
        },
    }


if __name__ == "__main__":
    ThreadingHTTPServer(ADDRESS, Hook).serve_forever()
