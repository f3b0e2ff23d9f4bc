"""The decorators for handlers, such as `@fnop.on.create("pods")`.

Each has the options and the handlers of its kind as types, so that editors complete
them and type checkers refuse others; it gives back the function that it was given.
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

# pytest leaves these frames out of tracebacks, and shows the author's line.
__tracebackhide__ = True

# Decorators return the function itself, which tests can call as it was written.
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
    """Declare a reconcile handler: it says what should exist for an object.

    It is called when the operator starts, and whenever the object, or anything that it
    owns, has changed: a burst of changes is one call. For one object it is never called
    twice at once, nor beside handlers of its changes. `words` name the kind. `options`:
    `owns` names the kinds of which the object owns something; those are watched, and
    are the `children` that the handler gets. `resync` calls it again after so many
    seconds without a change. A failed call is tried again after a time that grows
    (`backoff`, by default from 1 s to 60 s). The other options are in `fnop.on`.

    The handler returns `fnop.desired(...)`. Raises `RegistrationError` for an unknown
    argument or option.

        @fnop.reconcile("databases", owns=["services", "statefulsets.apps"])
        def database(spec, name, **_):
            return fnop.desired([service(name), stateful_set(name, spec["size"])])
    """
    return declare(Role.RECONCILE, words, options)


def maps(*words: Word, **options: Unpack[MapOptions]) -> Callable[[MapFn], MapFn]:
    """Declare a mapping: which objects have to be looked at again for another one.

    The function is called for each watch event of the kind that `words` name, and
    answers names of objects of the kind in `to`: their reconcile handlers are called,
    without any write. For an object that has changed it is called as it was, too: so
    whom it named before is looked at, though it names another now, or matches no more.
    One that fails is called again for the same state, after a backoff: in the seconds
    of a `TemporaryError`, or after growing waits; a `PermanentError` ends it.
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
    """Declare an index: a function whose answers are kept for all objects of a kind.

    Handlers that are declared after it ask for the index by the function's name.
    `words` name the kind. `options`: `field` gives the function a part of the object;
    `errors` is an `ErrorsMode`: an exception is logged and leaves the object's values
    as they are, or with PERMANENT removes them. The other options are in `fnop.on`.

    The function answers a mapping of keys to values, or one value for the key None;
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
    """Declare a conversation that goes on for as long as the object exists.

    `words` name the kind. `options`: `initial_delay` is seconds before the first call,
    or a function of the object; `finalizer` holds the object until the daemon has
    ended, True by default; once told to stop, it has `cancellation_backoff` seconds to
    end by itself (10), and a request under way has `cancellation_timeout` seconds (60).
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

    `words` name the kind. `options`: `interval` is seconds from the end of a call to
    the next one, or a function of the object; with `sharp` they count from its start;
    `cron` is a schedule in UTC instead, such as "*/5 * * * *"; with `idle` a call waits
    until the object has been unchanged for so many seconds. `initial_delay`,
    `finalizer` (False by default), `cancellation_backoff` and `cancellation_timeout`
    are those of a daemon. The other options are in `fnop.on`. Raises
    `RegistrationError` for a declaration that cannot work.

        @fnop.timer("databases", interval=60)
        def count(spec, patch, **_):
            patch.status["tables"] = len(spec["tables"])
    """
    return declare(Role.TIMER, words, options)


class OnCluster:
    """The decorators of handlers for changes of the cluster itself: `fnop.on.cluster`.

    fnop compares each discovery with the one before; what the first one finds is no
    change. A replica that stands by, or is frozen, calls none of them. The changes are
    handled beside each other, and beside all objects. The options are `id`, `param`,
    `registry`, `impure`, `errors`, `backoff`, `retries` and `timeout`, as in `fnop.on`;
    progress is kept in the process.
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

        `words` name kinds, as in `fnop.on`; without any all are meant. The `options`
        are in `fnop.on.cluster`.

            @fnop.on.cluster.kind_added("certificates.cert-manager.io")
            def issued(resource, **_):
                return fnop.create(certificate())
        """
        return declare(Role.KIND_ADDED, words, options)

    def kind_removed(
        self, *words: Word, **options: Unpack[ActivityOptions]
    ) -> Callable[[KindFn], KindFn]:
        """Call the function when the API server does not serve a kind any more.

        An API server that starts does not know all kinds at once, so a kind is missed
        for 15 seconds before it counts as removed. `words` and `options` are those of
        `kind_added`.

            @fnop.on.cluster.kind_removed("certificates.cert-manager.io")
            def gone(resource, logger, **_):
                logger.warning(f"there are no {resource.label} any more")
        """
        return declare(Role.KIND_REMOVED, words, options)

    def kind_changed(
        self, *words: Word, **options: Unpack[ActivityOptions]
    ) -> Callable[[KindFn], KindFn]:
        """Call the function when a kind has other versions, names or another schema.

        Schemas are compared by digests, without texts for people, and only those of
        kinds that are not Kubernetes' own. `words` and `options` are those of
        `kind_added`.

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

        It takes no `words`. Of the `options`, `after` is that while in seconds, 30 by
        default; the others are in `fnop.on.cluster`. What the function wants of the API
        server has to wait, and `fnop.call` has not.

            @fnop.on.cluster.unreachable(after=60)
            async def alarmed(downtime, **_):
                await fnop.call(page, text=f"no API server for {downtime}")
        """
        return declare(Role.UNREACHABLE, words, options)

    def reached(
        self, *words: Never, **options: Unpack[ReachOptions]
    ) -> Callable[[ReachFn], ReachFn]:
        """Call the function when the API server answers after it was unreachable.

        It takes no `words`; the `options` are those of `unreachable`.

            @fnop.on.cluster.reached()
            def back(downtime, logger, **_):
                logger.info(f"the API server was away for {downtime}")
        """
        return declare(Role.REACHED, words, options)


class On:
    """The decorators of handlers: `@fnop.on.create("pods")`, `@fnop.on.startup()`, …

    Each returns the function unchanged, and raises `RegistrationError` for a
    declaration that cannot work. A kind is named by one to three words, as in
    `kubectl`: `"pods"`, `"deployments.apps"`, `"apps/v1", "deployments"`, by
    `fnop.EVERYTHING`, by a class that `fnop.definition` has made a kind, by a function
    of the `Resource`, or by the options `group`, `version`, `kind`, `plural`,
    `singular`, `shortcut` and `category`.

    The options that most decorators share:

    - `id`: the handler's name in state, results and logs; the function's name by
      default.
    - `param`: any value; handlers get it as the argument of that name.
    - `registry`: the `Registry` that collects the handler; the global one by default.
    - `labels`, `annotations`: mappings of names to a text, `PRESENT`, `ABSENT` or a
      function of the value; the object must fit them all.
    - `fields`: a mapping of dotted paths to a text, `PRESENT`, `ABSENT` or a function,
      compared as field selectors do. The API server selects, if it can.
    - `when`: a function of the object's arguments that answers True or False.
    - `field` with `value`, and in changes `old` and `new`: a dotted path, or a list of
      keys, and what must be there.
    - `owner`: the kind of an owner that the object must have.
    - `impure`: whether the handler acts on the world by itself; it then runs outside of
      the core. False by default.
    - `errors`: an `ErrorsMode`, for exceptions other than fnop's; TEMPORARY by default.
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

        It takes no `words`. The `options` are those of `fnop.on` but the kind and the
        filters. The function may return changed settings. The operator does not start
        before it has succeeded, and ends if it fails for good.

            @fnop.on.startup()
            def configure(settings, **_):
                return settings.replace(request_concurrency=8)
        """
        return declare(Role.STARTUP, words, options)

    def cleanup(
        self, *words: Never, **options: Unpack[ActivityOptions]
    ) -> Callable[[CleanupFn], CleanupFn]:
        """Call the function when the operator ends, after all else has stopped.

        It takes no `words`. The `options` are those of `fnop.on` but the kind and the
        filters.

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
        `backoff`, `retries` and `timeout`. The function may act on the world. It
        answers a `ConnectionInfo`, or None where it knows no credentials.

            @fnop.on.login()
            def login(**_):
                return fnop.ConnectionInfo(server="https://10.0.0.1:6443", token="...")
        """
        return declare(Role.LOGIN, words, options)

    def probe(
        self, *words: Never, **options: Unpack[ProbeOptions]
    ) -> Callable[[ProbeFn], ProbeFn]:
        """Call the function when the liveness endpoint is asked, at most every 10
        seconds.

        It takes no `words`. The `options` are `id`, `param`, `registry` and `timeout`
        (5 seconds by default). The function may act on the world. Its answer, a JSON
        value, is shown under the handler's id; an exception makes the endpoint answer
        503.

            @fnop.on.probe(id="time")
            def time_of_probe(now, **_):
                return now.isoformat()
        """
        return declare(Role.PROBE, words, options)

    def create(
        self, *words: Word, **options: Unpack[CreateOptions]
    ) -> Callable[[ChangeFn], ChangeFn]:
        """Call the function for an object that is new to this operator.

        `words` name the kind; the `options` are those of `fnop.on`.

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
        the kind; the `options` are those of `fnop.on`, and `write_ahead`: with True a
        note on the object is written before the first effect on anything else, so that
        not even a crash lets a change that was begun and taken back be missed.

        `requeue_on` is an index, or its name: the function is called again for an
        object when the values of the index under its name change, `namespace/name` or
        a pair of both. With a mapping from the index to a function of the object, that
        function returns the keys. What changes while the operator is down counts, too.

            @fnop.on.update("databases", when=lambda old, new, **_: old != new)
            def updated(diff, **_):
                return fnop.log("info", f"{len(diff)} changes")
        """
        return declare(Role.UPDATE, words, options)

    def delete(
        self, *words: Word, **options: Unpack[DeleteOptions]
    ) -> Callable[[ChangeFn], ChangeFn]:
        """Call the function when the object is being deleted.

        A finalizer keeps the object until the function has succeeded, or failed for
        good. `words` name the kind; the `options` are those of `fnop.on`, and
        `optional`: with True there is no finalizer, and the function is called only if
        the object happens to stay for another reason.

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

        `words` name the kind; the `options` are those of `fnop.on`, and `deleted`: with
        True it is called for objects that are being deleted, too.

            @fnop.on.resume("databases")
            def resumed(name, patch, **_):
                patch.status["seen"] = name
        """
        return declare(Role.RESUME, words, options)

    def field(
        self, *words: Word, **options: Unpack[FieldOptions]
    ) -> Callable[[ChangeFn], ChangeFn]:
        """Call the function when a field has changed, or is there in a new object.

        `words` name the kind; the `options` are those of `fnop.on`, of which `field` is
        required, and `write_ahead` and `requeue_on` as of `on.update`. The arguments
        `old`, `new` and `diff` are about the field.

            @fnop.on.field("databases", field="spec.size")
            def resized(old, new, **_):
                return fnop.event("Resized", f"from {old} to {new}")
        """
        return declare(Role.FIELD, words, options)

    def event(
        self, *words: Word, **options: Unpack[EventOptions]
    ) -> Callable[[EventFn], EventFn]:
        """Call the function for every watch event of an object.

        `words` name the kind; the `options` are those of `fnop.on` without `errors`,
        `backoff`, `retries` and `timeout`: an error is logged, and nothing is stored or
        tried again.

            @fnop.on.event("pods")
            def seen(type, name, logger, **_):
                logger.info("%s: %s", name, type)
        """
        return declare(Role.EVENT, words, options)

    def log(
        self, *words: Word, **options: Unpack[LogOptions]
    ) -> Callable[[LogFn], LogFn]:
        """Call the function for lines of the logs of pods.

        `words` are "pods", or nothing; the other `options` of `fnop.on` select pods,
        but `errors`, `backoff`, `retries` and `timeout`: an error is logged, and the
        line is not tried again. A handler is called at least once for each line, and
        for one pod for one line after the other. Beside them:

        - `container`: a name, a pattern such as "app-*", or several in a list; also of
          init and ephemeral containers. All by default.
        - `regex`: the line has to match this regular expression (`re.search`).
        - `when`: a function of the line's arguments that answers True or False.
        - `since`: the lines of running containers that are read first: "now", "start",
          seconds, a time, or a function of the pod that answers one. The default is
          "now". Containers that start later are read from their first line.
        - `rate`: so many lines a second of one container; the others are counted in
          the log.
        - `multiline`: True makes a traceback of Python or Java one event; a regular
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
        """Ask the function before a write is stored: it raises to deny it.

        `fnop.Denied`, `fnop.AdmissionError` and `fnop.PermanentError` deny; any other
        exception counts as no answer. What it appends to `warnings` the user is shown.
        It stores nothing and is never tried again. A conversation may await reads.

        `words` name the kind; of the `options` of `fnop.on` it takes `id`, `param`,
        `registry`, `labels`, `annotations`, `when`, `field`, `value` and `impure`.
        Beside them:

        - `operations`: some of "CREATE", "UPDATE", "DELETE" and "CONNECT"; all by
          default.
        - `subresource`: one such as "status", or "*" for all and the object itself.
        - `ignore_failures`: without an answer the write is admitted, with a warning. By
          default it is denied.
        - `timeout`: whole seconds for the answer, from 1 to 30; 10 by default.
        - `side_effects`: it acts on the world, but not under a `dryrun`.
        - `persistent`: the webhook stays registered while the operator is down.
        - `match_conditions` (CEL), `match_policy`, `namespace_selector`,
          `object_selector`: as in the API, they choose what the API server asks about.
        - `deleted`: it is asked about objects that are being deleted, too.
        - `own_writes`: it is asked about this operator's own writes, too.
        - `ratcheting`: an update or a deletion is not denied in words in which the
          stored object itself would be denied; these are warnings. True by default.

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

        It writes to `patch`, or returns `fnop.patch(...)`. Functions of one kind are
        called in the order of their declaration, and each sees what those before it
        have changed. It is asked about deletions where `operations` is ["DELETE"].

        `words` name the kind; the `options` are those of `on.validate`, and
        `reinvocation`: with True it is called once more if a later webhook, of whatever
        program, has changed the object.

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

    `options` are `id`, `param`, the filters and the retrying ones of `fnop.on`, and
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

    `fn` is the part, and is returned; `options` are those of `subhandler`.

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
    """Run the sub-handlers now: these, and those that were declared so far.

    `fns` are functions, or a mapping of ids to functions; it may be empty. Awaited, it
    answers when all have ended: a mapping of their ids to `{"finished": "success"}`, or
    to "failure" with a `message`.

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
