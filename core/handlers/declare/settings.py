"""The settings of an operator: one immutable value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import Struct, StructMeta
from msgspec.structs import force_setattr

from fnop.core.api.namespaces import check_namespace
from fnop.core.api.resources import Resource, Selector, Selectors
from fnop.core.handlers.declare.lifecycles import Lifecycle, all_at_once
from fnop.core.memory.observation import Essence, Hidden, hidden_of
from fnop.core.memory.seals import seal_of
from fnop.core.memory.storage import (
    AnyStorage,
    AutoStorage,
    FormattedStorage,
    Places,
    places_of,
)
from fnop.core.memory.takeover import KOPF_FINALIZER, LAST_HANDLED, Predecessor
from fnop.core.peers.lease import Candidate
from fnop.core.peers.peers import Member
from fnop.core.values.backoff import Backoff
from fnop.core.values.diff import Path, parse_field
from fnop.core.values.label_selectors import check_selector
from fnop.core.values.similarity import similar
from fnop.effects.effects import LEVELS, Witness, label_patterns
from fnop.effects.names import check_webhooks_name
from fnop.effects.regexes import regex
from fnop.effects.structs import beside, derived, replace
from fnop.effects.values import check_seconds

__all__ = ["Settings"]

# The operator's name becomes part of an annotation's name (63 characters of
# alphanumerics, `-`, `_`, `.`; Kubernetes: labels and annotations). With a domain after
# it, it is the name of webhook configurations (a DNS subdomain).
_NAME = regex(r"(?!.*(?:\.[-.]|-\.))[a-z0-9]([-a-z0-9.]{0,48}[a-z0-9])?")


def _check_names(given: Iterable[str]) -> None:
    for name in given:
        if name not in Settings.__struct_fields__ or name in _DERIVED:
            raise TypeError(_unknown_setting(name))


def _unknown_setting(name: str) -> str:
    known = [each for each in Settings.__struct_fields__ if each not in _DERIVED]
    near = similar(name, known, 0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return f"there is no setting {name!r}; {hint}"


class _SettingsType(StructMeta):
    """The type of `Settings`, which refuses unknown ones with a helpful sentence."""

    if not TYPE_CHECKING:  # a type checker knows the settings

        def __call__(cls, *args, **given):
            _check_names(given)
            return super().__call__(*args, **given)


def _refuse_assignment(self: Settings, name: str, value: Any) -> NoReturn:
    if not hasattr(Settings, name):
        raise AttributeError(_unknown_setting(name))
    raise AttributeError(
        "settings are immutable; a startup handler returns others: "
        f"return settings.replace({name}=...)"
    )


# Labels and annotations are mappings of texts: their keys may contain dots.
_FLAT = (("metadata", "labels"), ("metadata", "annotations"))


def _path_of(field: str | Sequence[str]) -> Path:
    """The path of a field to ignore.

    >>> _path_of("spec.replicas"), _path_of("metadata.labels.example.com/tier")
    (('spec', 'replicas'), ('metadata', 'labels', 'example.com/tier'))
    """
    path = parse_field(field)
    if isinstance(field, str) and path[:2] in _FLAT and len(path) > 2:
        path = (*path[:2], ".".join(path[2:]))
    is_metadata = path[:1] == ("metadata",) and path[:2] not in _FLAT
    if not path or path[0] in ("apiVersion", "kind", "status") or is_metadata:
        raise ValueError(
            f"ignored_fields= names {field!r}, which makes no update "
            "anyhow; name a field such as 'spec.replicas' or 'metadata.labels.tier'"
        )
    return path


def _check_values(settings: Settings) -> None:
    """Refuse impossible values, in a sentence with the remedy."""
    _check_scope(settings)
    level = settings.posting_level
    if level is not None and level not in LEVELS:
        raise ValueError(
            f"posting_level= is one of {', '.join(LEVELS)}, or None, not {level!r}"
        )
    _check_durations(settings)
    if not _NAME.fullmatch(settings.operator):
        raise ValueError(
            f"the operator's name {settings.operator!r} must be a short lower-case "
            "name of letters, digits, '-' and '.', such as 'billing'"
        )
    _check_stored(settings)
    _check_webhooks(settings)
    _check_numbers(settings)


def _check_scope(settings: Settings) -> None:
    """Refuse namespaces or a selector that no object can match."""
    if isinstance(settings.namespaces, str):
        raise TypeError(
            f"namespaces= takes several namespaces, such as ({settings.namespaces!r},)"
        )
    for namespace in settings.namespaces or ():
        check_namespace(namespace)
    check_selector(settings.selector)
    for _, wanted in settings.kind_selectors:
        check_selector(wanted.labels)


_LOG_LINE_BYTES_MIN = 256
_DURATIONS = (
    "echo_timeout_seconds",
    "drain_seconds",
    "grace_period_seconds",
    "watch_timeout_seconds",
    "watch_silence_seconds",
    "log_silence_seconds",
    "rediscovery_seconds",
    "unreachable_seconds",
)


def _check_durations(settings: Settings) -> None:
    for name in _DURATIONS:
        check_seconds(getattr(settings, name), f"{name}=")
    backoff = settings.default_backoff
    if isinstance(backoff, Backoff):
        return
    if not isinstance(backoff, (int, float, timedelta)):
        raise TypeError(
            "default_backoff= is a number of seconds, or fnop.Backoff(first=1, "
            f"most=60), not {backoff!r}"
        )
    check_seconds(backoff, "default_backoff=")


def _check_stored(settings: Settings) -> None:
    """Refuse fields and storages of an object's state that are not collections."""
    ignored = settings.ignored_fields
    if isinstance(ignored, str):
        raise TypeError(f"ignored_fields= takes several fields, such as ({ignored!r},)")
    if not isinstance(settings.former_storages, tuple):
        raise TypeError(
            "former_storages= takes several storages, such as (fnop.AutoStorage(),)"
        )


def _check_webhooks(settings: Settings) -> None:
    """Refuse a server or a name that cannot serve admission handlers."""
    server, managed = settings.admission_server, settings.admission_managed
    if server is not None and not callable(server):
        raise TypeError(
            "admission_server= is a callable that serves webhooks, such as "
            f"fnop.WebhookServer(), not {server!r}"
        )
    if managed is not None:
        check_webhooks_name(managed, "admission_managed=")


def _check_numbers(settings: Settings) -> None:
    """Refuse numbers of threads, streams and bytes that are too small."""
    for name in ("call_threads", "log_streams"):
        if getattr(settings, name) < 1:
            raise ValueError(f"{name}= must be a whole number, one or more")
    if settings.log_line_bytes < _LOG_LINE_BYTES_MIN:
        raise ValueError(
            f"log_line_bytes= is at least {_LOG_LINE_BYTES_MIN}, so that lines can "
            "be told apart"
        )


_DERIVED = ("places", "ignored", "hidden")


@beside("admission_server", *_DERIVED, secret=("state_keys",))
class Settings(Struct, frozen=True, metaclass=_SettingsType):
    """The settings of an operator; immutable. Durations are in seconds.

    A startup handler returns changed settings: `settings.replace(...)`.

    - `operator`: the operator's name, which distinguishes several operators of one
      kind. The finalizer, the stored state and the field manager are
      `fnop.dev/<operator>`.
    - `namespaces`: names or patterns of the namespaces to serve; None is the whole
      cluster.
    - `selector`: a label selector that all served objects must match.
    - `kind_selectors`: label and field selectors that the objects of some kinds must
      match, too, as pairs of a `Selector` of kinds and `Selectors`. The API server has
      to know the fields.
    - `default_backoff`: the wait after an exception of a handler without a `backoff=`
      of its own: a `Backoff`, or seconds.
    - `request_concurrency`: the maximum number of requests under way at a time.
    - `requests_per_second`: the maximum average number of requests per second; None
      sets no limit.
    - `echo_timeout_seconds`: how long the watch may take to show a write of the
      operator, before fnop reads the object instead.
    - `drain_seconds`: how long a stop lets handlers of changes go on before it cancels
      them, as part of the grace period.
    - `grace_period_seconds`: how long a stop waits for attempts and requests under way,
      and for leaving the peers. Cleanup handlers have another minute.
    - `list_page_limit`: the number of objects in a page of a listing.
    - `initial_streaming`: whether existing objects arrive by the watch itself, instead
      of pages of a listing (Kubernetes 1.34: streaming lists). If a server does not
      support that, they come in pages.
    - `watch_timeout_seconds`: the time after which the server is asked to end a watch.
    - `watch_silence_seconds`: the time after which fnop gives up a silent watch.
    - `log_streams`: the maximum number of container logs that are read at once; the
      others wait.
    - `log_line_bytes`: fnop cuts a longer line of a log.
    - `log_silence_seconds`: the time after which fnop requests a silent log once more,
      in case the connection is lost.
    - `unreachable_seconds`: the time without any answer of the API server after which
      the liveness probe fails.
    - `rediscovery_seconds`: how often the operator looks for new or removed kinds, if
      no watch reports them.
    - `wait_for_kinds`: whether fnop waits for kinds that are ambiguous, or like one
      that is served. Otherwise they end the start, like typing errors.
    - `lifecycle`: selects which of several due handlers are called in one pass; one of
      `fnop.lifecycles`.
    - `conditions`: whether objects show in their status why their handlers wait, and
      which handlers have failed permanently.
    - `posting_level`: the lowest level of log lines of an object's handlers that also
      become Kubernetes Events: "debug", "info", "warning" or "error"; None: no lines
      do.
    - `finalizer`: the finalizer that holds objects; None: `fnop.dev/<operator>`.
    - `takes_over`: the prefix of the annotations of a Kopf operator that this one
      succeeds, such as "kopf.zalando.org". `takes_over_finalizer`: that operator's
      finalizer. `takes_over_key`: the name under which it kept the last handled object.
      `takes_over_field`: the status field of its storage.
    - `peering`: this operator among others that may serve the same objects. `election`:
      this process among replicas of the same operator. With None fnop looks for
      neither; the command line and `fnop.operator` set them.
    - `storage`: the place of the operator's state on objects. `former_storages`: its
      earlier places. fnop reads the state there, too, and moves it with the next write.
    - `ignored_fields`: paths, dotted or as lists of keys, whose changes are not
      updates.
    - `call_threads`: the maximum number of called functions and impure handlers in
      threads at a time.
    - `inherited_labels`: the names, or patterns, of the labels that adopted children
      inherit from their owners. None: all except the labels that other tools use to
      track the objects that they have applied (`fnop.core.api.ownership`).
    - `guard`: whether fnop notices side effects of handlers that are not impure, such
      as a connection. A simulation and a replay refuse them; on a cluster fnop warns.
    - `explain`: whether debug lines show the observed changes of each object, why its
      handlers are called, their requests, and the answers.
    - `traces`: whether a recording gets the inputs and decisions of handlers.
    - `admission_server`: the server of webhooks through which the API server calls
      admission handlers. It is a callable as Kopf's `settings.admission.server`, such
      as `fnop.WebhookServer(...)`. None: the operator serves no webhooks.
    - `admission_managed`: the name of the webhook configurations that the operator
      maintains itself; None: the user applies them (`fnop webhooks`).
    - `admission_events`: whether denials also become Kubernetes Events.
    - `state_keys`: keys that sign the stored states (`fnop.core.memory.seals`). The
      first one signs, any of them verifies. "unsigned" after the first key makes fnop
      accept states without a signature, too. Handlers cannot change them.

    Raises `ValueError` or `TypeError` for an unknown setting or an impossible value.

    >>> Settings(operator="billing", default_backoff=5.0).operator
    'billing'
    """

    operator: str = "default"
    namespaces: tuple[str, ...] | None = None
    selector: str = ""
    kind_selectors: tuple[tuple[Selector, Selectors], ...] = ()
    default_backoff: float | Backoff = Backoff()
    request_concurrency: int = 32
    echo_timeout_seconds: float = 5.0
    drain_seconds: float = 0.0
    grace_period_seconds: float = 5.0
    list_page_limit: int = 500
    initial_streaming: bool = False
    watch_timeout_seconds: int = 290
    watch_silence_seconds: float = 330.0
    rediscovery_seconds: float = 600.0
    log_streams: int = 256
    log_line_bytes: int = 64 * 1024
    log_silence_seconds: float = 600.0
    unreachable_seconds: float = 1800.0
    requests_per_second: float | None = None
    lifecycle: Lifecycle = all_at_once
    conditions: bool = True
    posting_level: str | None = None
    finalizer: str | None = None
    takes_over: str | None = None
    takes_over_finalizer: str = KOPF_FINALIZER
    takes_over_key: str = LAST_HANDLED
    takes_over_field: str | Sequence[str] = "status.kopf"
    peering: Member | None = None
    election: Candidate | None = None
    storage: AnyStorage = AutoStorage()
    former_storages: tuple[AnyStorage, ...] = ()
    ignored_fields: tuple[str | Sequence[str], ...] = ()
    call_threads: int = 32
    inherited_labels: tuple[str, ...] | None = None
    guard: bool = True
    explain: bool = False
    traces: bool = False
    state_keys: tuple[str, ...] = ()
    wait_for_kinds: bool = False
    # Each run of a startup handler makes another server: that is not a changed setting.
    admission_server: Callable[..., Any] | None = None
    admission_managed: str | None = None
    admission_events: bool = False
    # Derived from the fields above.
    places: Places = derived()
    ignored: tuple[Path, ...] = derived()
    hidden: Hidden = derived()

    def __post_init__(self) -> None:
        _check_values(self)
        chosen = label_patterns(self.inherited_labels)
        force_setattr(self, "inherited_labels", chosen)
        seal = seal_of(self.state_keys, self.operator)
        places = places_of(self.storage, self.operator, self.former_storages, seal)
        ignored = tuple(sorted({*map(_path_of, self.ignored_fields)}))
        given = tuple(
            each if isinstance(each, str) else tuple(each)
            for each in self.ignored_fields
        )
        force_setattr(self, "ignored_fields", given)
        force_setattr(self, "places", places)
        force_setattr(self, "ignored", ignored)
        hidden: Hidden = hidden_of(ignored, places.paths)
        if places.format is not None:
            hidden = Essence(places.format.essence)
        force_setattr(self, "hidden", hidden)

    def replace(self, **changes: Any) -> Settings:
        """Copy the settings with `changes` to some of them.

        Raises `TypeError` for an unknown setting.

        >>> Settings().replace(default_backoff=5.0).default_backoff
        5.0
        """
        _check_names(changes)
        made = replace(self, **changes)
        witness = Witness.current.get()
        if witness is not None:
            witness.saw_made(made, self)
        return made

    if not TYPE_CHECKING:  # a type checker knows the settings

        def __getattr__(self, name):
            raise AttributeError(_unknown_setting(name))

    def selectors_for(self, resource: Resource) -> Selectors:
        """The selectors that all served objects of a kind must match.

        >>> kinds, wanted = Selector.of("pods"), Selectors(fields="spec.nodeName=a")
        >>> settings = Settings(selector="app=db", kind_selectors=((kinds, wanted),))
        >>> pods = Resource("", "v1", "pods", "Pod", namespaced=True)
        >>> settings.selectors_for(pods)
        Selectors(labels='app=db', fields='spec.nodeName=a')
        """
        found = Selectors(self.selector)
        for kinds, wanted in self.kind_selectors:
            if kinds.matches(resource):
                found = found.joined(wanted)
        return found

    @property
    def predecessor(self) -> Predecessor | None:
        """The Kopf operator that this one takes over from."""
        if self.takes_over is None:
            return None
        return Predecessor(
            self.takes_over,
            self.takes_over_finalizer,
            self.takes_over_key,
            parse_field(self.takes_over_field),
        )

    @property
    def succeeds_kopf(self) -> bool:
        """Whether a Kopf operator may have served the same objects before."""
        return self.takes_over is not None or self.as_kopf

    @property
    def as_kopf(self) -> bool:
        """Whether changes are handled by Kopf's rules, as states have Kopf's form.

        A change that comes while handlers are unfinished belongs to the same handling:
        they see it at their next attempt, and finished ones are not called again.
        """
        return isinstance(self.storage, FormattedStorage)

    @property
    def finalizers(self) -> tuple[str, ...]:
        """This operator's finalizer, and those that it replaces."""
        taken = (self.takes_over_finalizer,) if self.takes_over else ()
        return tuple(dict.fromkeys((self.own_finalizer, *taken)))

    @property
    def own_finalizer(self) -> str:
        """The finalizer that this operator adds.

        >>> Settings(operator="billing").own_finalizer
        'fnop.dev/billing'
        """
        return self.finalizer or self.marker

    @property
    def marker(self) -> str:
        """The operator's name on objects: finalizer, annotation, status field."""
        return f"fnop.dev/{self.operator}"

    @property
    def domain(self) -> str:
        """The operator's name as a DNS name, as webhook configurations require.

        >>> Settings(operator="billing").domain
        'billing.fnop.dev'
        """
        return f"{self.operator}.fnop.dev"


# After the class is made: a frozen Struct ignores the method of its body.
Settings.__setattr__ = _refuse_assignment  # type: ignore[method-assign, assignment]
