"""The rules about libraries: which names act on the world or ask it, and the advice.

The longest path decides: `os.path` before `os`. A library without a rule is unknown,
and its calls are never judged as pure.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Mapping

from msgspec import Struct

from fnop.adapters.kopf.porting.findings import Verdict

__all__ = [
    "BUILTINS",
    "CREATES",
    "MUTATORS",
    "READERS",
    "TRANSPARENT",
    "Rule",
    "rule_for",
    "rule_of_use",
]


class Rule(Struct, frozen=True):
    """A verdict about a name, with the advice.

    The rule holds for calls with at most `most` arguments. One that is `only_pure` asks
    for nothing if the handler stays impure. With `gives_data`, the result of a call is
    plain data: a module may ask once, and handlers use the answer.
    """

    verdict: Verdict
    advice: str = ""
    only_pure: bool = False
    most: int = 1000
    gives_data: bool = False


def _acts(advice: str) -> Rule:
    return Rule(Verdict.IMPURE, advice)


def _asks(advice: str, most: int = 1000) -> Rule:
    return Rule(Verdict.IMPURE, advice, most=most, gives_data=True)


_PURE = Rule(Verdict.PURE)
_OUTSIDE = "await fnop.call(function, ...) with the calls in a function, or impure=True"
_CLOCK = _asks("it reads the clock: take the argument `now`, which stays the same")
_CLOCK_WITHOUT = _asks(_CLOCK.advice, most=0)
_TIME_OF_NOW = _asks(_CLOCK.advice, most=1)
_DURATION = _asks(
    "it reads the clock: take `now`, or `runtime` for the time since the first attempt"
)
_SLEEP = Rule(
    Verdict.CHANGES,
    "it blocks the operator: write async def and await fnop.sleep(seconds)",
    only_pure=True,
)
_ASYNC_SLEEP = Rule(
    Verdict.CHANGES, "await fnop.sleep(seconds), which needs no event loop", True
)
_RANDOM = _asks(
    "it draws random numbers: await fnop.random(size), or derive them from `uid`"
)
_RANDOM_WITHOUT = _asks(_RANDOM.advice, most=0)
_ENVIRONMENT = _asks(
    "it asks the environment: read it into a constant at the top of the module"
)
_FILE = _acts(
    "it uses files: read them at the top of the module, or await fnop.call(...)"
)
_PROGRAM = _acts(f"it starts a program: {_OUTSIDE}")
_PROCESS = _acts(f"it acts on the process or the system: {_OUTSIDE}")
_THREAD = _acts(f"it uses threads, or waits for them: {_OUTSIDE}")
_NETWORK = _acts(f"it uses the network: {_OUTSIDE}")
_HTTP = _acts(f"it sends HTTP requests: {_OUTSIDE}")
_SERVICE = _acts(f"it talks to a system outside of the cluster: {_OUTSIDE}")
_DATABASE = _acts(f"it uses a database: {_OUTSIDE}")
_RETRYING = _acts(
    "it waits between attempts: raise fnop.TemporaryError(..., delay=...) instead"
)
_METRIC = _acts("it keeps a state of the process, which a replay would change again")
_LOCK = _acts(
    "a pure handler needs no lock and no event: fnop runs no two of them at once"
)
_LOOP = _acts("fnop drives a pure handler without an event loop: keep impure=True")
_PER_PROCESS = _asks("its value differs from process to process: derive it from `uid`")
_CODE = _acts("it runs code that was not found")

CREATES = _acts(
    "fnop.adopt(child) or fnop.create(manifest) creates it: await it for the object"
)
_CLIENT_OBJECT = Rule(
    Verdict.CHANGES, "effects of fnop need no client and no connection", True
)
_CLIENT_GET = _acts("the client reads: await fnop.get(...) or await fnop.list(...)")
_CLIENT_PATCH = _acts(
    "the client writes: fnop.patch(target, ...), or fnop.apply(manifest)"
)
_CLIENT_DELETE = _acts("the client deletes: return fnop.delete(fnop.target(...))")
_CLIENT_OTHER = _acts(f"it uses a client of Kubernetes: {_OUTSIDE}")

# The beginnings of the clients' names, with underscores as separators.
_VERBS: Mapping[str, Rule] = {
    **dict.fromkeys(("create", "post"), CREATES),
    **dict.fromkeys(
        ("read", "get", "list", "objects", "query", "filter", "exists", "reload"),
        _CLIENT_GET,
    ),
    **dict.fromkeys(
        ("patch", "replace", "update", "apply", "set", "annotate", "label", "scale"),
        _CLIENT_PATCH,
    ),
    "delete": _CLIENT_DELETE,
    **dict.fromkeys(("load", "from", "close", "new"), _CLIENT_OBJECT),
}
# The parts of an object that a client has read.
_CONTENTS = ("annotations", "data", "labels", "metadata", "obj", "spec", "status")
_CLIENTS = (
    *("kubernetes", "kubernetes_asyncio", "kubernetes_dynamic", "openshift"),
    *("pykube", "lightkube", "kr8s", "hikaru", "krake"),
)


def _table(*rows: tuple[Rule, str]) -> dict[str, Rule]:
    return {path: rule for rule, paths in rows for path in paths.split()}


# Rules for a path alone, and not for what is below it.
_EXACT = _table(
    (_CLOCK, "time.time time.time_ns"),
    (_CLOCK, "datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today"),
    (_CLOCK, "datetime.date.today"),
    (_CLOCK_WITHOUT, "time.gmtime time.localtime time.ctime time.asctime"),
    (_TIME_OF_NOW, "time.strftime"),
    (_DURATION, "time.monotonic time.monotonic_ns time.perf_counter"),
    (_DURATION, "time.perf_counter_ns time.process_time time.process_time_ns"),
    (_DURATION, "time.thread_time time.clock_gettime"),
    (_SLEEP, "time.sleep"),
    (_ASYNC_SLEEP, "asyncio.sleep"),
    (_LOCK, "asyncio.Lock asyncio.Event asyncio.Semaphore asyncio.Condition"),
    (_LOCK, "threading.Lock threading.RLock threading.Event"),
    (_RANDOM, "uuid.uuid1 uuid.uuid4 uuid.uuid6 uuid.uuid7 os.urandom os.getrandom"),
    (_RANDOM_WITHOUT, "random.Random"),
    (_ENVIRONMENT, "uuid.getnode socket.gethostname socket.getfqdn"),
    (_ENVIRONMENT, "os.getenv os.getenvb os.getcwd os.getpid os.uname os.cpu_count"),
    (_ENVIRONMENT, "os.path.expandvars os.path.expanduser"),
    (_FILE, "os.path.exists os.path.isfile os.path.isdir os.path.getmtime"),
    (_FILE, "os.path.getsize os.path.islink os.path.realpath os.path.abspath"),
    (_FILE, "os.listdir os.walk os.scandir os.stat os.access builtins.open io.open"),
    (_FILE, "logging.FileHandler"),
    (_PROGRAM, "os.system os.popen os.fork os.posix_spawn"),
    (_PURE, "os.fspath os.fsencode os.fsdecode secrets.compare_digest"),
    (_PURE, "sys.exc_info sys.getsizeof sys.intern"),
    (_PER_PROCESS, "builtins.hash builtins.id"),
    (_CODE, "builtins.exec builtins.eval builtins.compile builtins.__import__"),
    (_CODE, "builtins.globals builtins.locals"),
    (_CODE, "importlib.import_module"),
    (_PROCESS, "builtins.input builtins.breakpoint builtins.exit builtins.quit"),
)

_PREFIXES = _table(
    (_PURE, "builtins __future__ abc ast array base64 binascii bisect calendar"),
    (_PURE, "collections colorsys contextlib copy csv dataclasses datetime decimal"),
    (_PURE, "difflib email enum errno fnmatch fractions functools graphlib hashlib"),
    (_PURE, "heapq hmac html http.HTTPStatus inspect io.BytesIO io.StringIO"),
    (_PURE, "ipaddress itertools json keyword logging math cmath numbers operator"),
    (_PURE, "os.path pathlib posixpath pprint random.Random re reprlib shlex stat"),
    (_PURE, "statistics string stringprep struct textwrap time tomllib traceback"),
    (_PURE, "types typing typing_extensions unicodedata urllib.parse uuid warnings"),
    (_PURE, "zlib zoneinfo"),
    (_PURE, "attr attrs deepdiff dictdiffer jinja2.Template jsonpatch jsonpointer"),
    (_PURE, "jsonschema loguru markupsafe orjson packaging pydantic pyrsistent"),
    (_PURE, "pytimeparse semver structlog toml ujson yaml"),
    (_RANDOM, "random secrets numpy.random"),
    (_ENVIRONMENT, "os.environ os.environb sys.argv platform getpass"),
    (_FILE, "fileinput glob jinja2 linecache shutil tempfile zipfile tarfile"),
    (_PROGRAM, "subprocess pexpect plumbum sh"),
    (_PROCESS, "ctypes gc os pty resource signal sys"),
    (_THREAD, "concurrent multiprocessing queue sched threading"),
    (_NETWORK, "ftplib imaplib poplib select selectors smtplib socket"),
    (_NETWORK, "socketserver ssl telnetlib websocket websockets xmlrpc"),
    (_HTTP, "aiohttp grpc http httplib2 httpx pycurl requests urllib urllib3"),
    (_SERVICE, "ansible azure boto3 botocore celery consul digitalocean docker"),
    (_SERVICE, "fabric git github gitlab google googleapiclient hvac jenkins"),
    (_SERVICE, "kafka keystoneauth1 ldap ldap3 minio nats openstack paho paramiko"),
    (_SERVICE, "pika slack slack_sdk snowflake winrm"),
    (_DATABASE, "aiomysql aioredis asyncpg cassandra dbm django elasticsearch"),
    (_DATABASE, "influxdb motor mysql MySQLdb peewee psycopg psycopg2 pymongo"),
    (_DATABASE, "pymysql redis shelve sqlalchemy sqlite3"),
    (_RETRYING, "backoff retry retrying tenacity"),
    (_METRIC, "opentelemetry prometheus_client sentry_sdk statsd"),
    (_LOOP, "anyio asyncio trio"),
    # The effects of fnop itself, in an operator with handlers of both kinds.
    (_PURE, "fnop"),
)

# Methods by their last name, of libraries that are pure otherwise.
_METHODS: Mapping[str, Mapping[str, Rule]] = {
    "pathlib": dict.fromkeys(
        (
            *("absolute", "chmod", "cwd", "exists", "expanduser", "glob", "home"),
            *("hardlink_to", "is_dir", "is_file", "is_symlink", "iterdir", "lchmod"),
            *("link_to", "lstat", "mkdir", "open", "owner", "read_bytes", "read_text"),
            *("readlink", "rename", "replace", "resolve", "rglob", "rmdir", "samefile"),
            *("stat", "symlink_to", "touch", "unlink", "walk", "write_bytes"),
            "write_text",
        ),
        _FILE,
    ),
}
# Names that act when they are looked up, and need no call.
_USED = ("os.environ", "os.environb", "sys.argv")


def rule_for(path: str, arguments: int = 0) -> Rule | None:
    """The rule for a call of this path; None if the library is unknown.

    >>> rule_for("json.dumps").verdict.name, rule_for("os.getenv").verdict.name
    ('PURE', 'IMPURE')
    >>> rule_for("acme.connect")
    """
    exact = _EXACT.get(path)
    if exact is not None and arguments <= exact.most:
        return exact
    top, _, _ = path.partition(".")
    if top in _CLIENTS:
        return _rule_of_client(path)
    last = path.rpartition(".")[2]
    method = _METHODS.get(top, {}).get(last)
    if method is not None:
        return method
    for prefix in _prefixes_of(path):
        if prefix in _PREFIXES:
            return _PREFIXES[prefix]
    return None


def rule_of_use(path: str) -> Rule | None:
    """The rule for a name that acts without a call; None for all others."""
    return _PREFIXES[path] if path in _USED else None


def _prefixes_of(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition(".")[0]


def _rule_of_client(path: str) -> Rule:
    """The rule by the verb in the client's name; classes and models only hold data."""
    *before, last = path.split(".")
    is_content = any(each in _CONTENTS for each in before)
    if is_content or last[:1].isupper() or last in ("config", "to_dict"):
        return _CLIENT_OBJECT
    return _VERBS.get(last.partition("_")[0], _CLIENT_OTHER)


BUILTINS = frozenset(vars(builtins))

# Decorators that leave the function what it is.
TRANSPARENT = frozenset(
    f"{module}.{name}"
    for module, names in {
        "functools": "cache lru_cache wraps singledispatch total_ordering",
        "contextlib": "contextmanager asynccontextmanager",
        "abc": "abstractmethod",
        "typing": "final overload no_type_check override runtime_checkable",
        "dataclasses": "dataclass",
        "enum": "unique",
    }.items()
    for name in names.split()
)

# Methods of data, which do nothing else: those that change it, and the others.
_DATA_TYPES = (dict, list, set, frozenset, tuple, str, bytes, bytearray, int, float)
MUTATORS = frozenset(
    (
        *("add", "append", "appendleft", "clear", "difference_update", "discard"),
        *("extend", "extendleft", "insert", "intersection_update", "pop", "popitem"),
        *("popleft", "remove", "reverse", "rotate", "setdefault", "sort"),
        *("symmetric_difference_update", "update", "__setitem__", "__delitem__"),
    )
)
READERS = (
    frozenset(name for each in _DATA_TYPES for name in dir(each))
    | frozenset(
        # Of times, matches, numbers, counters and bytes.
        (
            *("astimezone", "date", "isoformat", "timestamp", "strftime", "timetuple"),
            *("total_seconds", "utctimetuple", "utcoffset", "weekday", "isoweekday"),
            *("group", "groupdict", "groups", "span", "start", "end"),
            *("elements", "most_common", "total", "hexdigest", "quantize", "value"),
        )
    )
) - MUTATORS
