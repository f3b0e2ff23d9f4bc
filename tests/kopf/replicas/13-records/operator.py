"""DNS records of Services and Ingresses. Annotations are the API: there is no kind.

The zone is a small HTTP server in a thread of the operator, and answers 503 once.
"""

import http.server
import json
import logging
import threading
import urllib.error
import urllib.request

import kopf

PREFIX = "dns.fnop.dev"
OWN = "records.fnop.dev"  # of the operator's own annotations
# Kopf takes annotations with the prefix of its storages for its own: `paused` is one.
HOST, TTL, PAUSED = f"{PREFIX}/hostname", f"{PREFIX}/ttl", f"{OWN}/paused"

logger = logging.getLogger(__name__)
zone: dict = {}
busy = {"busy.example.org"}
server = None


class Zone(http.server.BaseHTTPRequestHandler):
    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_PUT(self):
        host = self.path.strip("/")
        record = self.rfile.read(int(self.headers["Content-Length"]))
        if host in busy:
            busy.discard(host)
            return self.answer(503)
        zone[host] = json.loads(record)
        return self.answer(204)

    def do_DELETE(self):
        found = zone.pop(self.path.strip("/"), None)
        self.answer(404 if found is None else 204)

    def log_message(self, *args):
        pass


def send(method, host, record=None):
    url = "http://{}:{}/{}".format(*server.server_address, host)
    data = None if record is None else json.dumps(record).encode()
    request = urllib.request.Request(url, data=data, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.status


@kopf.on.startup()
def start(settings: kopf.OperatorSettings, **_):
    global server
    settings.persistence.finalizer = f"{OWN}/hold"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=OWN)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(
        prefix=OWN, key="seen", ignored_fields=["metadata.labels.owner"]
    )
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Zone)
    threading.Thread(target=server.serve_forever, daemon=True).start()


@kopf.on.cleanup()
def stop(**_):
    logger.info("the zone has %s", json.dumps(zone, sort_keys=True))
    server.shutdown()


@kopf.index("services")
def services_by_name(name, namespace, spec, **_):
    return {(namespace, name): [port["port"] for port in spec.get("ports", [])]}


@kopf.index("v1", "services", annotations={HOST: kopf.PRESENT})
def hosts(annotations, name, **_):
    return {host.strip(): name for host in annotations[HOST].split(",")}


def is_paused(annotations, **_):
    return annotations.get(PAUSED)  # a text or None


def is_headless(spec, **_):
    return spec.get("clusterIP") == "None" and spec


def is_internal(labels, **_):
    return labels.get("scope") == "internal"


PUBLIC = kopf.all_([is_headless, kopf.none_([is_paused, is_internal])])


@kopf.on.create("", "v1", "services", annotations={HOST: kopf.PRESENT}, when=PUBLIC)
@kopf.on.update("", "v1", "services", annotations={HOST: kopf.PRESENT}, when=PUBLIC)
@kopf.on.resume("", "v1", "services", annotations={HOST: kopf.PRESENT}, when=PUBLIC)
def publish(name, namespace, annotations, hosts: kopf.Index, reason, logger, **kwargs):
    wanted = [each.strip() for each in annotations[HOST].split(",")]
    ttl = annotations.get(TTL, "300")
    if not ttl.isdigit():
        raise kopf.PermanentError(f"{ttl!r} is no number of seconds")
    for host in wanted:
        rivals = sorted(set(hosts.get(host, [])) - {name})
        if rivals:
            logger.warning(f"{host} is of {rivals}, too")
        record = {"to": f"{name}.{namespace}", "ttl": int(ttl)}
        try:
            send("PUT", host, record)
        except urllib.error.HTTPError as error:
            raise kopf.TemporaryError(f"{host}: {error.code}", delay=1) from error
    logger.info(
        f"{reason}: {', '.join(wanted)} -> {kwargs['spec']['ports'][0]['port']}"
    )
    kopf.info(kwargs["body"], reason="Published", message=",".join(wanted))
    return len(wanted)


@kopf.on.update("services", field=("metadata", "annotations", HOST), old=kopf.PRESENT)
def renamed(old, new, hosts, logger, **_):
    gone = {each.strip() for each in old.split(",")}
    gone -= {each.strip() for each in (new or "").split(",")}
    for host in sorted(gone):
        if host in hosts:
            logger.info(f"{host} is still of {list(hosts[host])}")
            continue
        logger.info(f"{host} goes: {send('DELETE', host)}")


@kopf.on.field(
    "services",
    field=["metadata", "annotations", TTL],
    new=lambda value, diff, **_: isinstance(value, str) and diff and value.isdigit(),
)
def ttl_changed(old, new, diff, patch, logger, **_):
    logger.info(f"ttl {old} -> {new}: {diff}")
    patch.meta.annotations[f"{PREFIX}/former-ttl"] = str(old)


@kopf.on.create("svc", field="metadata.labels.tier", value=lambda tier, **_: tier)
def tiered(labels, logger, **_):
    logger.info(f"of the tier {labels.get('tier', 'none')}")


@kopf.on.update("Service", labels={"tier": lambda value, **_: value in ("web", None)})
async def watched(diff, logger, **_):
    for op, path, old, new in diff:
        if path[:2] != ("metadata", "annotations"):
            logger.info(f"{op} {'.'.join(path)}: {old!r} -> {new!r}")


@kopf.on.delete("services", annotations={HOST: kopf.PRESENT}, optional=True)
def withdraw(annotations, logger, **_):
    for host in annotations[HOST].split(","):
        try:
            logger.info(f"{host}: {send('DELETE', host.strip())}")
        except urllib.error.HTTPError as error:
            logger.info(f"{host}: {error}")


# ------------------------------------------------------------------------- zones

ZONE = f"{PREFIX}/zone"


@kopf.on.create("configmaps", annotations={ZONE: kopf.PRESENT})
def zone_added(annotations, body, logger, **_):
    logger.info(f"zone {annotations[ZONE]} with {sorted(body.get('data', {}))}")


@kopf.on.update("configmaps", annotations={ZONE: kopf.PRESENT})
def zone_changed(old, new, diff, logger, **_):
    logger.info(f"zone changed: {[(*item[:2],) for item in diff]}")


@kopf.on.update("cm", labels={"audit": kopf.PRESENT}, field="data.serial")
def serial_changed(old, new, logger, **_):
    logger.info(f"serial {old} -> {new}")


# --------------------------------------------------------------------- ingresses


def backends(spec):
    for rule in spec.get("rules", []):
        for path in rule.get("http", {}).get("paths", []):
            yield rule["host"], path["backend"]["service"]["name"]


@kopf.on.create("networking.k8s.io/v1", "ingresses", retries=9)
@kopf.on.update("networking.k8s.io/v1", "ingresses", field="spec.rules", retries=9)
def route(spec, namespace, services_by_name, logger, retry, **_):
    for host, service in backends(spec):
        if (namespace, service) not in services_by_name:
            raise kopf.TemporaryError(f"no service {service}", delay=1.5)
        ports, *_ = services_by_name[namespace, service]
        send("PUT", host, {"to": service, "ports": ports})
        logger.info(f"{host} -> {service}:{ports}")


@kopf.on.delete("networking.k8s.io", "ingresses")
async def unroute(spec, logger, **_):
    for host, service in backends(spec):
        zone.pop(host, None)
        logger.info(f"{host} leaves {service}")


@kopf.on.event("ingresses.v1.networking.k8s.io", field="spec.tls", value=kopf.ABSENT)
def insecure(type, name, memo, logger, **_):
    if not memo.get("told"):
        memo.told = True
        logger.warning(f"{name} has no certificate")
