"""The decorators for handlers, such as `@fnop.on.create("pods")`.

Each decorator has the options and the handlers of its kind as types. So editors
complete them, and type checkers refuse others. It returns the function that it was
given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Never, TypeVar, Unpack, overload

from fnop.core.handlers.declare.declaring import declare, declaring
from fnop.core.handlers.declare.options import (
    ActivityOptions,
    AdmissionOptions,
    CreateOptions,
    DaemonOptions,
    DeleteOptions,
    EventOptions,
    FieldOptions,
    IndexOptions,
    LoginOptions,
    LogOptions,
    MapOptions,
    ProbeOptions,
    ReachOptions,
    ReconcileOptions,
    ResumeOptions,
    SubhandlerOptions,
    TimerOptions,
    UpdateOptions,
    Word,
)
from fnop.core.handlers.declare.roles import Role
from fnop.core.handlers.declare.signatures import (
    AdmissionHandler,
    ChangeHandler,
    CleanupHandler,
    DaemonHandler,
    EventHandler,
    IndexHandler,
    KindHandler,
    LogHandler,
    LoginHandler,
    MapHandler,
    ProbeHandler,
    ReachHandler,
    ReconcileHandler,
    StartupHandler,
    TimerHandler,
    UpgradeHandler,
)
from fnop.effects import Execute

__all__ = [
    "daemon",
    "execute",
    "index",
    "maps",
    "on",
    "reconcile",
    "register",
    "subhandler",
    "timer",
]

# pytest omits these frames from tracebacks, and shows the author's line.
__tracebackhide__ = True

# Decorators return the function itself, so that tests can call it as written.
StartupFn = TypeVar("StartupFn", bound=StartupHandler)
CleanupFn = TypeVar("CleanupFn", bound=CleanupHandler)
LoginFn = TypeVar("LoginFn", bound=LoginHandler)
ProbeFn = TypeVar("ProbeFn", bound=ProbeHandler)
ChangeFn = TypeVar("ChangeFn", bound=ChangeHandler)
EventFn = TypeVar("EventFn", bound=EventHandler)
LogFn = TypeVar("LogFn", bound=LogHandler)
IndexFn = TypeVar("IndexFn", bound=IndexHandler)
DaemonFn = TypeVar("DaemonFn", bound=DaemonHandler)
TimerFn = TypeVar("TimerFn", bound=TimerHandler)
ReconcileFn = TypeVar("ReconcileFn", bound=ReconcileHandler)
MapFn = TypeVar("MapFn", bound=MapHandler)
AdmissionFn = TypeVar("AdmissionFn", bound=AdmissionHandler)
UpgradeFn = TypeVar("UpgradeFn", bound=UpgradeHandler)
KindFn = TypeVar("KindFn", bound=KindHandler)
ReachFn = TypeVar("ReachFn", bound=ReachHandler)


def reconcile(
    *words: Word, **options: Unpack[ReconcileOptions]
) -> Callable[[ReconcileFn], ReconcileFn]:
    """Declare a reconciler: it returns the objects that should exist for an object.

    fnop calls it when the operator starts, and whenever the object, or anything that it
    owns, has changed. A burst of changes is one call. For one object it is never called
    twice at once, nor at the same time as handlers of its changes.

    `words` name the kind. The `options` are:

    - `owns`: the kinds of objects that the object owns. fnop watches them and passes
      them as the `children` argument.
    - `resync`: fnop calls it again after this many seconds without a change.
    - `backoff`: the growing wait before a failed call is tried again, by default from 1
      s to 60 s.

    The other options are in `fnop.on`.

    The handler returns `fnop.desired(...)`. Raises `RegistrationError` for an unknown
    argument or option.

        @fnop.reconcile("databases", owns=["services", "statefulsets.apps"])
        def database(spec, name, **_):
            return fnop.desired([service(name), stateful_set(name, spec["size"])])
    """
    return declare(Role.RECONCILE, words, options)


def maps(*words: Word, **options: Unpack[MapOptions]) -> Callable[[MapFn], MapFn]:
    """Declare a mapping: the objects to reconcile again because of another object.

    fnop calls the function for each watch event of the kind that `words` name. The
    function returns names of objects of the kind in `to`. fnop then calls their
    reconcilers, without any write.

    For a changed object, fnop also calls the function with the object as it was. So the
    objects that it named before are reconciled, even if it now names others, or has
    stopped matching.

    A failed mapping is called again for the same state, after a backoff: the seconds of
    a `TemporaryError`, or growing waits. A `PermanentError` ends it.

    Of the `options`, `to` is required; the others are in `fnop.on`. Raises
    `RegistrationError` for an unknown argument or option.

        @fnop.maps("configmaps", to="tenants", labels={"template": fnop.PRESENT})
        def tenants_of(name, tenants_by_template=fnop.INDEX, **_):
            return tenants_by_template.get(name, ())
    """
    return declare(Role.MAP, words, options)


def index(
    *words: Word, **options: Unpack[IndexOptions]
) -> Callable[[IndexFn], IndexFn]:
    """Declare an index: a function whose results are kept for all objects of a kind.

    Handlers that are declared after it get the index through an argument with the
    function's name. `words` name the kind. The `options` are:

    - `field`: gives the function a part of the object.
    - `errors`: an `ErrorsMode`. fnop logs an exception and keeps the object's values as
      they are; with PERMANENT it removes them.

    The other options are in `fnop.on`.

    The function returns a mapping of keys to values, or one value for the key None.
    None changes nothing, and `{}` removes the object's values. The index maps each key
    to a tuple of the values of all objects that have it. Raises `RegistrationError` for
    a declaration that cannot work.

        @fnop.index("pods", labels={"app": fnop.PRESENT})
        def pods_by_app(labels, name, **_):
            return {labels["app"]: name}
    """
    return declare(Role.INDEX, words, options)


def daemon(
    *words: Word, **options: Unpack[DaemonOptions]
) -> Callable[[DaemonFn], DaemonFn]:
    """Declare a conversation that continues for as long as the object exists.

    `words` name the kind. The `options` are:

    - `initial_delay`: seconds before the first call, or a function of the object.
    - `finalizer`: holds the object until the daemon has ended, True by default.
    - `cancellation_backoff`: the seconds that the daemon has to end by itself after the
      request to stop (10).
    - `cancellation_timeout`: the seconds that a request under way then has (60).

    The other options are in `fnop.on`. Raises `RegistrationError` for a declaration
    that cannot work.

        @fnop.daemon("databases")
        async def watch(stopped, name, **_):
            while not await stopped.wait(30):
                await fnop.info("Alive", name)
    """
    return declare(Role.DAEMON, words, options)


def timer(
    *words: Word, **options: Unpack[TimerOptions]
) -> Callable[[TimerFn], TimerFn]:
    """Declare a handler that is called again and again while the object exists.

    `words` name the kind. The `options` are:

    - `interval`: seconds from the end of a call to the next one, or a function of the
      object.
    - `sharp`: with True, `interval` counts from the start of the call.
    - `cron`: a schedule in UTC instead, such as `*/5 * * * *`.
    - `idle`: a call waits until the object has been unchanged for this many seconds.
    - `initial_delay`, `finalizer` (False by default), `cancellation_backoff` and
      `cancellation_timeout`: as in `fnop.daemon`.

    The other options are in `fnop.on`. Raises `RegistrationError` for a declaration
    that cannot work.

        @fnop.timer("databases", interval=60)
        def count(spec, patch, **_):
            patch.status["tables"] = len(spec["tables"])
    """
    return declare(Role.TIMER, words, options)


class OnCluster:
    """The decorators of handlers for changes of the cluster itself: `fnop.on.cluster`.

    fnop compares each discovery with the previous one. The findings of the first
    discovery are not changes. A replica that stands by, or is frozen, calls none of
    these handlers. fnop handles the changes concurrently with each other, and with all
    objects. The options are `id`, `param`, `registry`, `impure`, `errors`, `backoff`,
    `retries` and `timeout`, as in `fnop.on`. Progress is kept in the process.
    """

    def __repr__(self) -> str:
        return "fnop.on.cluster"

    def upgraded(
        self, *words: Never, **options: Unpack[ActivityOptions]
    ) -> Callable[[UpgradeFn], UpgradeFn]:
        """Call the function when the API server has another version.

        It takes no `words`; the `options` are in `fnop.on.cluster`.

            @fnop.on.cluster.upgraded()
            def upgraded(old, new, logger, **_):
                logger.info(f"the API server was {old}, and is {new}")
        """
        return declare(Role.UPGRADED, words, options)

    def kind_added(
        self, *words: Word, **options: Unpack[ActivityOptions]
    ) -> Callable[[KindFn], KindFn]:
        """Call the function when the API server serves a kind that it did not serve.

        `words` name kinds, as in `fnop.on`; without words, all kinds are meant. The
        `options` are in `fnop.on.cluster`.

            @fnop.on.cluster.kind_added("certificates.cert-manager.io")
            def issued(resource, **_):
                return fnop.create(certificate())
        """
        return declare(Role.KIND_ADDED, words, options)

    def kind_removed(
        self, *words: Word, **options: Unpack[ActivityOptions]
    ) -> Callable[[KindFn], KindFn]:
        """Call the function when the API server has stopped serving a kind.

        An API server that is starting does not know all kinds at once. So a kind must
        be missing for 15 seconds before it counts as removed. `words` and `options` are
        as in `kind_added`.

            @fnop.on.cluster.kind_removed("certificates.cert-manager.io")
            def gone(resource, logger, **_):
                logger.warning(f"there are no {resource.label} any more")
        """
        return declare(Role.KIND_REMOVED, words, options)

    def kind_changed(
        self, *words: Word, **options: Unpack[ActivityOptions]
    ) -> Callable[[KindFn], KindFn]:
        """Call the function when a kind has other versions, names or another schema.

        fnop compares schemas by digests, without texts for people. It compares only
        schemas of kinds that are not built into Kubernetes. `words` and `options` are
        as in `kind_added`.

            @fnop.on.cluster.kind_changed("databases.example.com")
            def changed(old, new, logger, **_):
                if "v1" not in new.versions:
                    logger.error("this operator needs version v1")
        """
        return declare(Role.KIND_CHANGED, words, options)

    def unreachable(
        self, *words: Never, **options: Unpack[ReachOptions]
    ) -> Callable[[ReachFn], ReachFn]:
        """Call the function when the API server has not answered for a while.

        It takes no `words`. Of the `options`, `after` is the length of that while in
        seconds, 30 by default; the others are in `fnop.on.cluster`. Requests of the
        function to the API server have to wait, but `fnop.call` does not.

            @fnop.on.cluster.unreachable(after=60)
            async def alarmed(downtime, **_):
                await fnop.call(page, text=f"no API server for {downtime}")
        """
        return declare(Role.UNREACHABLE, words, options)

    def reached(
        self, *words: Never, **options: Unpack[ReachOptions]
    ) -> Callable[[ReachFn], ReachFn]:
        """Call the function when the API server answers after it was unreachable.

        It takes no `words`; the `options` are as in `unreachable`.

            @fnop.on.cluster.reached()
            def back(downtime, logger, **_):
                logger.info(f"the API server was away for {downtime}")
        """
        return declare(Role.REACHED, words, options)


class On:
    """The decorators of handlers: `@fnop.on.create("pods")`, `@fnop.on.startup()`, …

    Each returns the function unchanged, and raises `RegistrationError` for a
    declaration that cannot work. A kind is named in one of these ways:

    - one to three words, as in `kubectl`: `"pods"`, `"deployments.apps"`, `"apps/v1",
      "deployments"`
    - `fnop.EVERYTHING`
    - a class that `fnop.definition` has made a kind
    - a function of the `Resource`
    - the options `group`, `version`, `kind`, `plural`, `singular`, `shortcut` and
      `category`

    Most decorators share these options:

    - `id`: the handler's name in state, results and logs; the function's name by
      default.
    - `param`: any value; handlers get it as the argument of that name.
    - `registry`: the `Registry` that collects the handler; the global one by default.
    - `labels`, `annotations`: mappings of names to a text, `PRESENT`, `ABSENT` or a
      function of the value; the object must match them all.
    - `fields`: a mapping of dotted paths to a text, `PRESENT`, `ABSENT` or a function,
      compared as field selectors do. The API server applies the selection, if it can.
    - `when`: a function of the object's arguments that returns True or False.
    - `field` with `value`, and in changes `old` and `new`: a dotted path, or a list of
      keys, and the value that it must have.
    - `owner`: the kind of an owner that the object must have.
    - `impure`: whether the handler itself has side effects on the world. It then runs
      outside of the core. False by default.
    - `errors`: an `ErrorsMode` for exceptions that are not fnop's own; TEMPORARY by
      default.
    - `backoff`: seconds, or a `Backoff`, before the attempt after such an exception.
    - `retries`: the number of attempts; no limit by default.
    - `timeout`: seconds from the first attempt; no limit by default.

        @fnop.on.update("databases", field="spec.size", retries=5, backoff=10)
        def resize(new, name, **_):
            return fnop.event("Resized", f"{name} has {new} now")
    """

    index = staticmethod(index)
    daemon = staticmethod(daemon)
    timer = staticmethod(timer)
    reconcile = staticmethod(reconcile)
    map = staticmethod(maps)
    cluster = OnCluster()

    def __repr__(self) -> str:
        return "fnop.on"

    def startup(
        self, *words: Never, **options: Unpack[ActivityOptions]
    ) -> Callable[[StartupFn], StartupFn]:
        """Call the function when the operator starts, before it serves any object.

        It takes no `words`. The `options` are as in `fnop.on`, except for the kind and
        the filters. The function may return changed settings. The operator does not
        start before the function has succeeded. If the function fails permanently, the
        operator ends.

            @fnop.on.startup()
            def configure(settings, **_):
                return settings.replace(request_concurrency=8)
        """
        return declare(Role.STARTUP, words, options)

    def cleanup(
        self, *words: Never, **options: Unpack[ActivityOptions]
    ) -> Callable[[CleanupFn], CleanupFn]:
        """Call the function when the operator ends, after all else has stopped.

        It takes no `words`. The `options` are as in `fnop.on`, except for the kind and
        the filters.

            @fnop.on.cleanup()
            def farewell(logger, **_):
                logger.info("goodbye")
        """
        return declare(Role.CLEANUP, words, options)

    def login(
        self, *words: Never, **options: Unpack[LoginOptions]
    ) -> Callable[[LoginFn], LoginFn]:
        """Call the function when credentials are needed or have been rejected.

        It takes no `words`. The `options` are `id`, `param`, `registry`, `errors`,
        `backoff`, `retries` and `timeout`. The function may have side effects. It
        returns a `ConnectionInfo`, or None if it has no credentials.

            @fnop.on.login()
            def login(**_):
                return fnop.ConnectionInfo(server="https://10.0.0.1:6443", token="...")
        """
        return declare(Role.LOGIN, words, options)

    def probe(
        self, *words: Never, **options: Unpack[ProbeOptions]
    ) -> Callable[[ProbeFn], ProbeFn]:
        """Call the function when the liveness endpoint is asked, at most every 10 s.

        It takes no `words`. The `options` are `id`, `param`, `registry` and `timeout`
        (5 seconds by default). The function may have side effects. The endpoint shows
        its result, a JSON value, under the handler's id. An exception makes the
        endpoint respond with 503.

            @fnop.on.probe(id="time")
            def time_of_probe(now, **_):
                return now.isoformat()
        """
        return declare(Role.PROBE, words, options)

    def create(
        self, *words: Word, **options: Unpack[CreateOptions]
    ) -> Callable[[ChangeFn], ChangeFn]:
        """Call the function for an object that is new to this operator.

        `words` name the kind; the `options` are as in `fnop.on`.

            @fnop.on.create("databases")
            def created(name, **_):
                return [fnop.event("Created", name), fnop.patch(status={"size": 1})]
        """
        return declare(Role.CREATE, words, options)

    def update(
        self, *words: Word, **options: Unpack[UpdateOptions]
    ) -> Callable[[ChangeFn], ChangeFn]:
        """Call the function when the object's essence has changed.

        The essence is everything but the status and bookkeeping fields. `words` name
        the kind. The `options` are as in `fnop.on`, and `write_ahead`. With
        `write_ahead=True`, fnop writes a note on the object before the first effect on
        anything else. Then even after a crash it cannot miss a change that was begun
        and reverted.

        `requeue_on` is an index, or its name. fnop calls the function again for an
        object when the values of the index under the object's name change. The name is
        `namespace/name`, or a pair of both. With a mapping from the index to a function
        of the object, that function returns the keys. Changes while the operator is
        down count, too.

            @fnop.on.update("databases", when=lambda old, new, **_: old != new)
            def updated(diff, **_):
                return fnop.log("info", f"{len(diff)} changes")
        """
        return declare(Role.UPDATE, words, options)

    def delete(
        self, *words: Word, **options: Unpack[DeleteOptions]
    ) -> Callable[[ChangeFn], ChangeFn]:
        """Call the function when the object is being deleted.

        A finalizer keeps the object until the function has succeeded, or failed
        permanently. `words` name the kind. The `options` are as in `fnop.on`, and
        `optional`. With `optional=True`, fnop adds no finalizer, and calls the function
        only if the object happens to stay for another reason.

            @fnop.on.delete("databases")
            async def deleted(name, **_):
                await fnop.delete("persistentvolumeclaims", name=name)
        """
        return declare(Role.DELETE, words, options)

    def resume(
        self, *words: Word, **options: Unpack[ResumeOptions]
    ) -> Callable[[ChangeFn], ChangeFn]:
        """Call the function for an object that an earlier process handled, once in this
        one.

        `words` name the kind. The `options` are as in `fnop.on`, and `deleted`. With
        `deleted=True`, the function is also called for objects that are being deleted.

            @fnop.on.resume("databases")
            def resumed(name, patch, **_):
                patch.status["seen"] = name
        """
        return declare(Role.RESUME, words, options)

    def field(
        self, *words: Word, **options: Unpack[FieldOptions]
    ) -> Callable[[ChangeFn], ChangeFn]:
        """Call the function when a field has changed, or is present in a new object.

        `words` name the kind. The `options` are as in `fnop.on`, with `field` required.
        `write_ahead` and `requeue_on` are as in `on.update`. The arguments `old`, `new`
        and `diff` are about the field.

            @fnop.on.field("databases", field="spec.size")
            def resized(old, new, **_):
                return fnop.event("Resized", f"from {old} to {new}")
        """
        return declare(Role.FIELD, words, options)

    def event(
        self, *words: Word, **options: Unpack[EventOptions]
    ) -> Callable[[EventFn], EventFn]:
        """Call the function for every watch event of an object.

        `words` name the kind. The `options` are as in `fnop.on`, without `errors`,
        `backoff`, `retries` and `timeout`. fnop logs an error. It stores nothing and
        does not retry.

            @fnop.on.event("pods")
            def seen(type, name, logger, **_):
                logger.info("%s: %s", name, type)
        """
        return declare(Role.EVENT, words, options)

    def log(
        self, *words: Word, **options: Unpack[LogOptions]
    ) -> Callable[[LogFn], LogFn]:
        """Call the function for lines of the logs of pods.

        `words` are "pods", or nothing. The other `options` of `fnop.on` select pods.
        `errors`, `backoff`, `retries` and `timeout` do not apply: fnop logs an error
        and does not retry the line. fnop calls a handler at least once for each line,
        and for one pod one line after the other. Further options:

        - `container`: a name, a pattern such as "app-*", or a list of these; init and
          ephemeral containers count, too. All by default.
        - `regex`: the line must match this regular expression (`re.search`).
        - `when`: a function of the line's arguments that returns True or False.
        - `since`: the lines of running containers that are read first: "now", "start",
          seconds, a time, or a function of the pod that returns one. The default is
          "now". Containers that start later are read from their first line.
        - `rate`: this many lines per second of one container; the log counts the
          others.
        - `multiline`: True makes a Python or Java traceback one event; a regular
          expression matches the first line of each event.

            @fnop.on.log("pods", labels={"model": fnop.PRESENT}, regex="loss=([0-9.]+)")
            def loss(match, labels, **_):
                model = fnop.target("models", name=labels["model"])
                return fnop.patch(model, status={"loss": match[1]})
        """
        return declare(Role.LOG, words, options)

    def validate(
        self, *words: Word, **options: Unpack[AdmissionOptions]
    ) -> Callable[[AdmissionFn], AdmissionFn]:
        """Call the function before a write is stored: it raises an error to deny it.

        `fnop.Denied`, `fnop.AdmissionError` and `fnop.PermanentError` deny; any other
        exception counts as no answer. The user sees the texts that the function appends
        to `warnings`. fnop stores nothing and never retries. A conversation may await
        reads.

        `words` name the kind. Of the `options` of `fnop.on` it takes `id`, `param`,
        `registry`, `labels`, `annotations`, `when`, `field`, `value` and `impure`.
        Further options:

        - `operations`: some of "CREATE", "UPDATE", "DELETE" and "CONNECT"; all by
          default.
        - `subresource`: one such as "status", or "*" for all and the object itself.
        - `ignore_failures`: without an answer, the write is admitted, with a warning.
          By default it is denied.
        - `timeout`: whole seconds for the answer, from 1 to 30; 10 by default.
        - `side_effects`: the function has side effects, but not under a `dryrun`.
        - `persistent`: the webhook stays registered while the operator is down.
        - `match_conditions` (CEL), `match_policy`, `namespace_selector`,
          `object_selector`: as in the API, they select the requests that the API server
          sends.
        - `deleted`: it is also called for objects that are being deleted.
        - `own_writes`: it is also called for this operator's own writes.
        - `ratcheting`: if the stored object itself would be denied with the same text,
          an update or a deletion is not denied; the text becomes a warning. True by
          default.

            @fnop.on.validate("databases", operations=["UPDATE"])
            def shrinks_not(spec, old, **_):
                if spec["size"] < old["spec"]["size"]:
                    raise fnop.Denied("it must not shrink", field="spec.size")
        """
        return declare(Role.VALIDATE, words, options)

    def mutate(
        self, *words: Word, **options: Unpack[AdmissionOptions]
    ) -> Callable[[AdmissionFn], AdmissionFn]:
        """Let the function change an object before it is stored, or deny the write.

        It writes to `patch`, or returns `fnop.patch(...)`. fnop calls the functions of
        one kind in the order of their declaration. Each function sees the changes of
        those before it. It is called for deletions if `operations` is ["DELETE"].

        `words` name the kind. The `options` are as in `on.validate`, and
        `reinvocation`. With `reinvocation=True`, the function is called once more if a
        later webhook, of any program, has changed the object.

            @fnop.on.mutate("databases", operations=["CREATE"])
            def sized(spec, patch, **_):
                if "size" not in spec:
                    patch.spec["size"] = 1
        """
        return declare(Role.MUTATE, words, options)

    if not TYPE_CHECKING:  # a type checker knows that there is no such decorator

        def __getattr__(self, name: str) -> Any:
            known = ", ".join(sorted(role.value for role in Role))
            raise AttributeError(
                f"fnop.on has no decorator {name!r}; there are {known}"
            )


on = On()


def subhandler(
    **options: Unpack[SubhandlerOptions],
) -> Callable[[ChangeFn], ChangeFn]:
    """Declare a part of the running handler that succeeds or fails by itself.

    `options` are `id`, `param`, the filters and the retry options of `fnop.on`, and
    `impure`. Each part has its own progress, retries and result; the handler has
    succeeded when all of its parts have. Raises `RegistrationError` for a declaration
    that cannot work, and outside of a handler.

        @fnop.on.create("databases")
        def created(spec, **_):
            for table in spec["tables"]:
                @fnop.subhandler(id=table)
                def make(name, table=table, **_):
                    return fnop.event("Table", f"{table} of {name}")
    """
    collecting = declaring()

    def decorate(fn: ChangeFn) -> ChangeFn:
        collecting.add(fn, options)
        return fn

    return decorate


def register(fn: ChangeFn, **options: Unpack[SubhandlerOptions]) -> ChangeFn:
    """Declare a function as a part of the running handler: `subhandler` as a call.

    `fn` is the part, and is returned; `options` are as in `subhandler`.

        @fnop.on.create("databases")
        def created(spec, **_):
            for table in spec["tables"]:
                fnop.register(functools.partial(make, table), id=table)
    """
    declaring().add(fn, options)
    return fn


@overload
def execute(fns: Mapping[str, ChangeHandler]) -> Execute: ...


@overload
def execute(fns: Iterable[ChangeHandler] = ()) -> Execute: ...


def execute(
    fns: Mapping[str, ChangeHandler] | Iterable[ChangeHandler] = (),
) -> Execute:
    """Run the sub-handlers now: these, and those declared so far.

    `fns` are functions, or a mapping of ids to functions; it may be empty. When
    awaited, it returns after all have ended. The result is a mapping of their ids to
    `{"finished": "success"}`, or to "failure" with a `message`.

        @fnop.on.create("databases")
        async def created(**_):
            ended = await fnop.execute({"disk": make_disk, "user": make_user})
            return {"parts": len(ended)}
    """
    collecting = declaring()
    if isinstance(fns, Mapping):
        for name, fn in fns.items():
            collecting.add(fn, {"id": name})
    else:
        for fn in fns:
            collecting.add(fn, {})
    prefix = len(collecting.parent.id) + 1
    return Execute(tuple(each.id[prefix:] for each in collecting.children))
