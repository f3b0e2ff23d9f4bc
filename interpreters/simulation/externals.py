"""Models of external systems, which answer `fnop.call` in a test and in `fnop check`.

A model is a value. It can be forked, so that events after a fault happen to a copy. It
can be digested, so that two ends can be compared. Its methods are the functions that
the operator calls. They raise what a client of the real system would: `LookupError` for
a missing thing, `ConnectionError` for a system that is down.

A call that times out although it was done needs no support by a model. The code that
runs the operator calls the model and drops the answer.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Self

import orjson
from msgspec import Struct

from fnop.core.values.errors import text_of
from fnop.effects.structs import replace
from fnop.effects.values import canonical

__all__ = [
    "External",
    "JobService",
    "PostService",
    "PutService",
    "externals_of",
    "forked",
    "model_of",
    "set_now",
]

Function = Callable[..., Any]
_Listed = list[dict[str, Any]]


class External:
    """A model of a system outside of the cluster, whose methods an operator calls.

    Your own model keeps its state in attributes and counts its creations by
    `created(key)`. Its methods have the arguments of the functions that they replace.
    List them in `calls=` of a `Simulation`, and in `CALLS` for `fnop check`:

        class Mail(External):
            keeps_records = True

            def __init__(self):
                self.sent = []

            def send(self, to, text):
                self.created(to)
                self.sent.append([to, text])

        MAIL = Mail()
        CALLS = {"send_mail": MAIL.send}

    `now` is the virtual wall time in seconds; it is set before each call. If `down` is
    set to True, the reference models refuse every call with a `ConnectionError`. A
    class that `keeps_records` has nothing that must be removed again, such as letters
    that were sent, and jobs that were done.
    """

    now: float = 0.0
    down: bool = False
    keeps_records: bool = False

    _creations: dict[str, int]

    def __new__(cls, *args: Any, **named: Any) -> Self:
        """Make one that counts, even if its class omits `super().__init__()`."""
        made = super().__new__(cls)
        made._creations = {}
        return made

    def fork(self) -> Self:
        """A separate copy of the system: changes to one do not affect the other.

        >>> a = PutService()
        >>> b = a.fork()
        >>> _ = b.put("x", {"size": 1})
        >>> a.keys(), b.keys()
        ([], ['x'])
        """
        made = object.__new__(type(self))
        # A bound method that the model stores belongs to the fork there.
        made.__dict__.update(copy.deepcopy(self.__dict__, {id(self): made}))
        return made

    def at_rest(self) -> External:
        """The same system once everything that it does by itself has ended.

        It is this one, unless a class says otherwise. This one does not change.
        """
        return self

    def digest(self) -> Any:
        """The state as plain JSON, equal for two systems that behave alike from now on.

        Times are relative to `now`, and generated ids are replaced (`aliases`). The
        state of your own model is its attributes without `now`, which have to be JSON
        values; any other model overrides this. Raises `TypeError` if they are not JSON.
        """
        state = {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("now", "_creations")
        }
        try:
            return orjson.loads(orjson.dumps(state, option=orjson.OPT_SORT_KEYS))
        except orjson.JSONEncodeError as problem:
            raise TypeError(
                f"the state of {type(self).__name__} is not plain JSON ({problem}); "
                "give the class a method digest() of its own"
            ) from None

    def visible(self) -> Any:
        """The part of the state that a client can read, as plain JSON.

        fnop compares two ends by it; by default it is the `digest`. It leaves out what
        is only remembered, such as the first request of a token.
        """
        return self.digest()

    def creations(self) -> dict[str, int]:
        """The number of all creations so far, by the thing that is meant.

        Two entries of one thing under two ids count as two creations of one.
        """
        return dict(sorted(self._creations.items()))

    def aliases(self) -> dict[str, str]:
        """Generated ids, each with a text for the thing that it stands for.

        If two runs draw ids in different orders, they have different ids and equal
        aliases.
        """
        return {}

    def created(self, key: str) -> None:
        """Count a creation of the thing that `key` means."""
        self._creations[key] = self._creations.get(key, 0) + 1

    def reached(self) -> None:
        """Raise `ConnectionError` if the system is down."""
        if self.down:
            raise ConnectionError(f"{type(self).__name__} is down")


# -------------------------------------------------------------------- stored things


class _Thing(Struct, frozen=True):
    """An entry of a service; its body is JSON text, so that it never changes."""

    id: str
    body: bytes
    at: float  # virtual wall seconds
    tags: tuple[tuple[str, str], ...] = ()
    token: str | None = None
    sent: bytes = b""  # the body that came with the token


class _Service(External):
    """A service that stores things by their ids."""

    def __init__(self) -> None:
        self._things: dict[str, _Thing] = {}

    def fork(self) -> Self:
        """A separate copy of the system, which shares what never changes.

        It costs a copy of the values that an attribute holds directly. An attribute
        that a subclass adds may hold JSON values, also nested ones.
        """
        made = object.__new__(type(self))
        mine, memo = made.__dict__, {id(self): made}
        for name, value in self.__dict__.items():
            if name in _SHALLOW:
                mine[name] = value.copy()
            else:
                is_atom = type(value) in _ATOMS
                mine[name] = value if is_atom else copy.deepcopy(value, memo)
        return made

    def _thing(self, id: str) -> _Thing:
        self.reached()
        found = self._things.get(id)
        if found is None:
            raise LookupError(f"{type(self).__name__} has no {id}")
        return found


_ATOMS = frozenset((str, int, float, bool, bytes, type(None), FunctionType))
# The attributes of this module's classes, whose values never change.
_SHALLOW = frozenset(("_things", "_creations", "_meanings", "_cancelled"))


# ----------------------------------------------------------- the caller gives the key


class PutService(_Service):
    """A REST service whose caller gives the key: to put twice is to put once.

    `put(key, body)` creates or replaces, `get(key)` reads, `delete(key)` removes, and
    `keys()` lists. It is the model of DNS records, of users of a database, of buckets:
    nothing is lost if an answer is lost.

    >>> dns = PutService()
    >>> dns.put("www", {"address": "10.0.0.1"})
    {'address': '10.0.0.1'}
    >>> dns.put("www", {"address": "10.0.0.2"}), dns.keys(), dns.creations()
    ({'address': '10.0.0.2'}, ['www'], {'www': 1})
    """

    def put(self, key: str, body: Any = None) -> Any:
        """Let the thing of this `key` have this `body`, of JSON values; return it."""
        self.reached()
        text, found = canonical(body), self._things.get(key)
        if found is None:
            self.created(key)
            found = _Thing(key, text, self.now)
        self._things[key] = replace(found, body=text)
        return orjson.loads(text)

    def get(self, key: str) -> Any:
        """Read a body. Raises `LookupError` for a missing thing."""
        return orjson.loads(self._thing(key).body)

    def delete(self, key: str) -> None:
        """Remove a thing. Raises `LookupError` for a missing thing."""
        del self._things[self._thing(key).id]

    def keys(self) -> list[str]:
        """List the keys, sorted."""
        self.reached()
        return sorted(self._things)

    def digest(self) -> Any:
        """The bodies by their keys."""
        return {key: orjson.loads(each.body) for key, each in self._things.items()}

    def visible(self) -> Any:
        """The digest, with {} instead of null for a thing without a body.

        >>> users = PutService()
        >>> users.put("ann"), users.visible()
        (None, {'ann': {}})
        """
        found = self.digest()
        if not isinstance(found, dict):  # a subclass has its own form
            return found
        return {key: {} if body is None else body for key, body in found.items()}


# --------------------------------------------------------- the service makes the id


class _Numbered(_Service):
    """A service that generates the ids of its things from a counter."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self.prefix = prefix
        # The meaning of each id, and a text that distinguishes things of one meaning,
        # including removed ones.
        self._meanings: dict[str, tuple[str, str]] = {}

    def _new_or_known_thing(
        self,
        body: Any,
        token: str | None,
        tags: Mapping[str, str] | None,
        key: Callable[[], str],
    ) -> _Thing:
        """A new thing, or the one that this token has created.

        Raises `ValueError` if the token was used for another request, like services
        that support tokens.
        """
        self.reached()
        text, marks = canonical(body), tuple(sorted((tags or {}).items()))
        for each in self._things.values() if token is not None else ():
            if each.token == token:
                if (each.sent, each.tags) != (text, marks):
                    raise ValueError(f"the token {token} is that of another request")
                return each
        id, meaning = f"{self.prefix}-{len(self._meanings) + 1:08x}", key()
        made = self._things[id] = _Thing(id, text, self.now, marks, token, text)
        apart = f"{token or ''} {self._pattern_of_ids.sub('', text.decode())}"
        self._meanings[id] = meaning, apart
        self.created(meaning)
        return made

    @property
    def _pattern_of_ids(self) -> re.Pattern[str]:
        return re.compile(rf"\b{re.escape(self.prefix)}-[0-9a-f]{{8}}\b")

    def aliases(self) -> dict[str, str]:
        """Generated ids, each with its purpose; removed things are marked.

        >>> cloud = PostService("vpc")
        >>> cloud.aliases(), cloud.create({}, tags={"owner": "u-1"})["id"]
        ({}, 'vpc-00000001')
        >>> cloud.aliases()
        {'vpc-00000001': '<vpc owner=u-1 #1>'}
        """
        found, alive = {}, Counter[str]()
        for id, (key, _) in sorted(self._meanings.items(), key=lambda each: each[1]):
            if id in self._things:
                alive[key] += 1
                found[id] = f"<{self.prefix} {key} #{alive[key]}>"
            else:
                found[id] = f"<{self.prefix} {key} gone>"
        return found

    def visible(self) -> Any:
        """The digest without what clients never see: the tokens, and the sent bodies.

        A thing that was updated equals one that had the new body from the beginning.
        """
        found = self.digest()
        if not isinstance(found, list):  # a subclass has its own form
            return found
        return [
            {name: value for name, value in each.items() if name not in _REMEMBERED}
            if isinstance(each, dict)
            else each
            for each in found
        ]

    def _things_with_facts(
        self, facts: Callable[[_Thing], dict[str, Any]]
    ) -> list[Any]:
        """The things with their facts, in an order that does not depend on their ids.

        Bodies may name the ids of others; they are replaced by their aliases.
        """
        aliases = self.aliases()
        shown = [
            {
                "id": aliases[id],
                "body": orjson.loads(each.body),
                "tags": dict(each.tags),
                "token": each.token,
                # The body decides how a repeated token is answered.
                "sent": None if each.token is None else orjson.loads(each.sent),
                **facts(each),
            }
            for id, each in self._things.items()
        ]
        text = orjson.dumps(
            sorted(shown, key=lambda each: each["id"]), option=orjson.OPT_SORT_KEYS
        ).decode()
        # An alias holds the author's own texts, so it is escaped as in JSON.
        spelled = {id: _json_inner_text(alias) for id, alias in aliases.items()}
        found = self._pattern_of_ids.sub(
            lambda each: spelled.get(each[0], each[0]), text
        )
        return list(orjson.loads(found))


# The facts of a thing that matter only for a repeated token.
_REMEMBERED = frozenset(("token", "sent"))


def _json_inner_text(text: str) -> str:
    """A text within JSON, without the quotes."""
    return orjson.dumps(text).decode()[1:-1]


class PostService(_Numbered):
    """A REST service that generates the ids: to post twice is to create two things.

    `create(body, token=, tags=)` returns the thing, `{"id", "body", "tags"}`. `get(id)`
    reads it, `find(tag=value)` lists those with these tags, `list()` lists all.
    `update(id, body)` replaces a body, and `delete(id)` removes one. A `token` makes a
    repeated request harmless while the thing lives; the same token with another body is
    a `ValueError`.

    `prefix` begins all ids. For `lag` seconds of `now`, a new thing is neither listed
    nor found by its tags, while `get` reads it at once. `identity` names the tags, or
    else the fields of the body, that identify a thing. By default all its tags do, else
    its token, else its body. `creations` counts by this identity.

    >>> cloud = PostService("vpc", lag=5)
    >>> vpc = cloud.create({"cidr": "10.0.0.0/16"}, tags={"owner": "u-1"})
    >>> vpc["id"], cloud.find(owner="u-1")
    ('vpc-00000001', [])
    >>> cloud.now += 5
    >>> [each["id"] for each in cloud.find(owner="u-1")]
    ['vpc-00000001']
    >>> cloud.creations()
    {'owner=u-1': 1}
    """

    def __init__(
        self, prefix: str = "thing", *, lag: float = 0.0, identity: Iterable[str] = ()
    ) -> None:
        super().__init__(prefix)
        self.lag = lag
        self.identity = tuple(identity)

    def create(
        self,
        body: Any = None,
        *,
        token: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Create a thing with this `body`; return it with its id.

        If a living thing was created with the same `token`, that one is returned.
        `tags` are texts by which it is found.
        """
        return _shown_thing(
            self._new_or_known_thing(
                body, token, tags, lambda: self.meaning(body, token, tags)
            )
        )

    def meaning(
        self, body: Any, token: str | None, tags: Mapping[str, str] | None
    ) -> str:
        """Return the logical key of a thing: the identity that is meant.

        It follows from the `body`, the `token` and the `tags` of its creation.

        >>> PostService().meaning({"size": 1}, None, None)
        '{"size":1}'
        >>> PostService(identity=["name"]).meaning({"name": "a", "size": 1}, "t", {})
        'name=a'
        """
        known: dict[str, Any] = dict(tags or {})
        if self.identity:
            fields = body if isinstance(body, Mapping) else {}
            known = {name: known.get(name, fields.get(name)) for name in self.identity}
        if known:
            return ",".join(f"{name}={known[name]}" for name in sorted(known))
        return token if token is not None else canonical(body).decode()

    def get(self, id: str) -> dict[str, Any]:
        """Read a thing. Raises `LookupError` for a missing thing."""
        return _shown_thing(self._thing(id))

    def update(self, id: str, body: Any) -> dict[str, Any]:
        """Let the thing of this `id` have this `body`.

        Raises `LookupError` for a missing thing.
        """
        made = self._things[id] = replace(self._thing(id), body=canonical(body))
        return _shown_thing(made)

    def delete(self, id: str) -> None:
        """Remove a thing. Raises `LookupError` for a missing thing."""
        del self._things[self._thing(id).id]

    def list(self) -> _Listed:
        """List the things in the order of creation, without those that are too new."""
        self.reached()
        return [
            _shown_thing(each)
            for each in self._things.values()
            if not self._seconds_hidden(each)
        ]

    def find(self, **tags: str) -> _Listed:
        """List the things that have these `tags`, without those that are too new."""
        wanted = tags.items()
        return [each for each in self.list() if wanted <= each["tags"].items()]

    def _seconds_hidden(self, thing: _Thing) -> float:
        """The number of seconds until it is listed."""
        return max(0.0, thing.at + self.lag - self.now)

    def at_rest(self) -> PostService:
        """The same service once it lists all its things."""
        made = self.fork()
        made.now += max(map(self._seconds_hidden, self._things.values()), default=0.0)
        return made

    def digest(self) -> Any:
        """The things, with aliases for ids, and the seconds until they are listed.

        Removed things leave no trace in it.
        """
        return self._things_with_facts(
            lambda each: {"hidden_for": round(self._seconds_hidden(each), 6)}
        )


def _shown_thing(thing: _Thing) -> dict[str, Any]:
    body = orjson.loads(thing.body)
    return {"id": thing.id, "body": body, "tags": dict(thing.tags)}


# ------------------------------------------------------------------- work takes time


def _no_result(request: Any) -> None:
    """Return None, for work without a result."""


class JobService(_Numbered):
    """A service whose work takes time: clients submit it, and poll it until it ends.

    `submit(request, token=)` returns an id. `poll(id)` returns `{"id", "state",
    "result", "error"}`. For `pending` seconds of `now` the state is "pending", for
    `running` seconds more "running", then "succeeded" or "failed". `cancel(id)` makes
    an unfinished job "cancelled", and returns what `poll` does. `jobs()` lists the ids.
    A `token` makes a repeated request harmless.

    `work` computes the result, of JSON values, from the request; if it raises, the job
    fails with the text of that error. `prefix` begins all ids.

    >>> backups = JobService("backup", work=lambda request: request["volume"] + ".tar")
    >>> id = backups.submit({"volume": "v"}, token="u-1/1")
    >>> backups.poll(id)["state"]
    'pending'
    >>> backups.now += 40
    >>> backups.poll(id)
    {'id': 'backup-00000001', 'state': 'succeeded', 'result': 'v.tar', 'error': None}
    """

    keeps_records = True

    def __init__(
        self,
        prefix: str = "job",
        *,
        pending: float = 5.0,
        running: float = 30.0,
        work: Callable[[Any], Any] = _no_result,
    ) -> None:
        super().__init__(prefix)
        self.pending, self.running = pending, running
        self._work = work
        self._cancelled: set[str] = set()

    def submit(self, request: Any = None, *, token: str | None = None) -> str:
        """Begin the work of a `request`; return its id.

        If another request has this `token`, it is a `ValueError`. If an equal request
        has it, the result is the id of that one.
        """
        text = canonical(request).decode()
        return self._new_or_known_thing(request, token, None, lambda: token or text).id

    def poll(self, id: str) -> dict[str, Any]:
        """Return the state of a job. Raises `LookupError` for a missing job."""
        job = self._thing(id)
        state, result, error = self._state_of_job(job), None, None
        if state == "succeeded":
            try:
                result = orjson.loads(canonical(self._work(orjson.loads(job.body))))
            except Exception as problem:
                state, error = "failed", text_of(problem) or type(problem).__name__
        return {"id": id, "state": state, "result": result, "error": error}

    def cancel(self, id: str) -> dict[str, Any]:
        """End a job that has not ended; an ended one stays as it is.

        Raises `LookupError` for a missing job.
        """
        if self._seconds_left(self._thing(id)) > 0:
            self._cancelled.add(id)
        return self.poll(id)

    def jobs(self) -> list[str]:
        """List the ids of all jobs, in the order of their submission."""
        self.reached()
        return [*self._things]

    def _seconds_left(self, job: _Thing) -> float:
        """The seconds until it ends."""
        return max(0.0, job.at + self.pending + self.running - self.now)

    def _state_of_job(self, job: _Thing) -> str:
        if job.id in self._cancelled:
            return "cancelled"
        left = self._seconds_left(job)
        if left <= 0:
            return "succeeded"
        return "pending" if left > self.running else "running"

    def at_rest(self) -> JobService:
        """The same service once all its jobs have ended.

        >>> jobs = JobService()
        >>> id = jobs.submit()
        >>> jobs.at_rest().poll(id)["state"], jobs.poll(id)["state"]
        ('succeeded', 'pending')
        """
        made = self.fork()
        made.now += max(map(self._seconds_left, self._things.values()), default=0.0)
        return made

    def digest(self) -> Any:
        """The jobs, with aliases for ids, and the seconds that they still run."""

        def facts(job: _Thing) -> dict[str, Any]:
            gone = job.id in self._cancelled
            left = 0.0 if gone else round(self._seconds_left(job), 6)
            return {"is_cancelled": gone, "left": left}

        return self._things_with_facts(facts)


# ------------------------------------------------------------------- a whole mapping


def _functions_beside(calls: Mapping[Any, Function]) -> dict[str, Function] | None:
    """The functions that a mapping finds next to its own, as a file's mapping does."""
    return getattr(calls, "others", None)


def _external_in(function: Any) -> External | None:
    """The model whose method a function of a mapping is."""
    while isinstance(function, partial):
        function = function.func
    owner = getattr(function, "__self__", None)
    return owner if isinstance(owner, External) else None


def externals_of(calls: Mapping[Any, Function]) -> list[External]:
    """The models behind a mapping of `calls`, each once, in the order of `calls`.

    Raises `TypeError` for a function that uses a model without being its method, and
    for a model that holds another one. A fork would share the model that it uses.

    >>> cloud, mail = PostService(), PutService()
    >>> calls = {"a": mail.put, "b": cloud.create, "c": mail.get, "d": len}
    >>> externals_of(calls) == [mail, cloud]
    True
    """
    found: dict[int, External] = {}
    for name, function in (*calls.items(), *(_functions_beside(calls) or {}).items()):
        _refuse_shared(name, function)
        external = _external_in(function)
        if external is not None:
            found[id(external)] = external
    return [*found.values()]


def model_of(calls: Mapping[Any, Function], name: str) -> Any:
    """The model that answers the function `name`, or `module:name`, in a mapping.

    It is the `External` whose method answers, or the function itself. Raises `KeyError`
    if the mapping has none.

    >>> cloud = PutService()
    >>> model_of({"billing:charge": cloud.put}, "charge") is cloud
    True
    """
    for each, function in (*calls.items(), *(_functions_beside(calls) or {}).items()):
        if name in (each, str(each).rpartition(":")[2]):
            return _external_in(function) or function
    raise KeyError(f"no model answers {name}; name it in CALLS or --calls")


def _refuse_shared(name: Any, function: Any) -> None:
    external = _external_in(function)
    if external is not None:
        held = next((k for k, v in vars(external).items() if _is_model(v)), None)
        if held is not None:
            raise TypeError(
                f"the model {type(external).__name__} holds another one in {held}: "
                "make both one class, for they are forked as one"
            )
    elif isinstance(function, FunctionType):
        used = next((k for k, v in _names_used_by(function) if _is_model(v)), None)
        if used is not None:
            raise TypeError(
                f"the model of {name} is a function that uses {used}: make it a method "
                f"of the class of {used}, so that a fork has its own"
            )


def _is_model(value: Any) -> bool:
    return isinstance(value, External)


def _names_used_by(function: FunctionType) -> Iterable[tuple[str, Any]]:
    """The globals and the outer variables that a function names, and its defaults."""
    code = function.__code__
    for name in code.co_names:
        yield name, function.__globals__.get(name)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # it has no value yet
            continue
    names = code.co_varnames[: code.co_argcount][-len(function.__defaults__ or ()) :]
    yield from zip(names, function.__defaults__ or (), strict=False)
    yield from (function.__kwdefaults__ or {}).items()


def forked(calls: Mapping[Any, Function]) -> dict[Any, Function]:
    """A mapping of `calls` whose models are forks, each forked once.

    Functions that are not methods of a model stay the same. Raises `TypeError` as
    `externals_of` does.

    >>> cloud = PostService()
    >>> calls = {"make": cloud.create, "all": cloud.list}
    >>> apart = forked(calls)
    >>> _ = apart["make"]({"size": 1})
    >>> len(apart["all"]()), len(calls["all"]())
    (1, 0)
    """
    forks = {id(each): each.fork() for each in externals_of(calls)}

    def apart(functions: Mapping[Any, Function]) -> dict[Any, Function]:
        return {
            name: _rebound_function(each, forks) for name, each in functions.items()
        }

    others = _functions_beside(calls)
    if others is None:
        return apart(calls)
    copied: Any = copy.copy(calls)
    copied.update(apart(calls))
    copied.others = apart(others)
    found: dict[Any, Function] = copied
    return found


def _rebound_function(function: Any, forks: Mapping[int, External]) -> Any:
    external = _external_in(function)
    if external is None:
        return function
    if isinstance(function, partial):
        inner = _rebound_function(function.func, forks)
        return partial(inner, *function.args, **function.keywords)
    return MethodType(function.__func__, forks[id(external)])


def set_now(function: Function, now: float) -> None:
    """Set the virtual wall time on the model whose method a function is."""
    external = _external_in(function)
    if external is not None:
        external.now = now
