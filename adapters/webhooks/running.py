"""The webhooks of a running operator: served, registered, and unregistered in time.

The server serves before the configurations point to it, and until they no longer do. An
error is logged and retried: it never ends the operator.
"""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    aclosing,
    suppress,
)
from typing import TYPE_CHECKING, Any

from fnop.adapters.kubernetes.login_and_probes import Surroundings
from fnop.adapters.webhooks.addresses import is_local
from fnop.adapters.webhooks.protocol import WebhookFn
from fnop.core.admission.configurations import (
    Group,
    Registration,
    configurations_of,
    groups_of,
    labels_namespaces,
)
from fnop.core.admission.keeping import (
    LOOK_SECONDS,
    farewell,
    secret_of,
    unreached,
)
from fnop.core.admission.unmanaged import astray, place_of
from fnop.core.handlers.declare.settings import Settings
from fnop.core.handlers.program.program import Program
from fnop.core.seam.commands import Command, Say
from fnop.core.seam.inputs import Input
from fnop.core.state.lifecycle import IN_SERVICE, Phase
from fnop.core.values.backoff import growing_seconds
from fnop.core.values.errors import described, joined
from fnop.core.values.now import Now
from fnop.effects.structs import replace
from fnop.effects.values import shown
from fnop.interpreters.runtime.machine import Observer
from fnop.interpreters.runtime.protocol import Asked
from fnop.interpreters.runtime.run import Runner
from fnop.interpreters.runtime.webhook_keeping import (
    Configurations,
    KeepingProblem,
    account_by,
    configurations_by,
    version_by,
)

if TYPE_CHECKING:
    from fnop.adapters.webhooks.answering import Reviewing

__all__ = ["Webhooks"]

# The longest pause after a failure.
PAUSE_MOST_SECONDS = 10.0
# API servers take a moment to notice that a webhook is no longer registered.
LINGER_SECONDS = 1.0
# An ending operator gives up unregistering after this time.
LEAVE_SECONDS = 15.0
# The time in which reviews in flight at the end must be answered.
ANSWER_SECONDS = 30.0
# The pause between two checks at the end.
_LEAVING_SECONDS = 0.5
_BEFORE = (Phase.NEW, Phase.STARTING, Phase.DISCOVERING)

_NOT_SERVED = "the webhook server does not serve yet"


class Webhooks:
    """The webhooks of an operator, as a task next to its runner.

    It is an observer of the runner (`fnop.interpreters.runtime.machine.Observer`), and
    the runner waits for it at its end. `namespace` is the one that the operator runs
    in.
    """

    def __init__(
        self,
        program: Program,
        around: Surroundings,
        say: Callable[[Say], None],
        namespace: str = "",
    ) -> None:
        self._around, self._say, self._namespace = around, say, namespace
        self._groups: tuple[Group, ...] = groups_of(program.handlers)
        self._handlers = [each.id for group in self._groups for each in group.handlers]
        self._wake = asyncio.Event()
        self._seen: tuple[object, object] = (None, None)
        self._task: asyncio.Task[None] | None = None
        self._is_ending = False
        self._client: dict[str, Any] | None = None
        self._taken = asyncio.Event()
        self._said: dict[str, frozenset[str]] = {}
        self._reviews = 0
        # The address of the API server.
        self._server = ""
        self.ready = asyncio.Event()
        self.unready: tuple[str, ...] = ()

    # ------------------------------------------------------------ next to the runner

    @property
    def observers(self) -> tuple[Observer, ...]:
        """Itself, if there are admission handlers."""
        return (self,) if self._groups else ()

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        """Check again if the kinds have changed, or the operator's phase."""
        state = self._around.state()
        phase, catalogue = self._seen
        if state.lifecycle.phase is phase and state.survey.catalogue is catalogue:
            return
        self._seen = state.lifecycle.phase, state.survey.catalogue
        self._wake.set()

    def start(self, runner: Runner, api: Asked, review: Reviewing) -> None:
        """Begin: the server is started when the kinds are known.

        `review` decides like the runner (`Runner.review`).
        """
        if self._groups:
            self._task = asyncio.create_task(self._run(runner, api, review))
            return
        self.ready.set()
        if self._around.settings.admission_managed is not None:
            self._task = asyncio.create_task(self._clear(api))

    async def _clear(self, api: Asked) -> None:
        """Remove the webhooks of handlers that a former version had.

        Without the right to do so there were none.
        """
        configurations = self._configurations(self._around.settings, api)
        with suppress(KeepingProblem):
            while not (await configurations.clear(self._around.clock.now().mono)).done:
                await asyncio.sleep(LOOK_SECONDS)

    async def end(self) -> None:
        """Unregister, answer reviews in flight, and stop the server."""
        self._is_ending = True
        self._wake.set()
        if self._task is None:
            return
        try:
            await asyncio.wait({self._task})
        except asyncio.CancelledError:
            self._task.cancel()
            await asyncio.wait({self._task})
            raise

    @property
    def _ends(self) -> bool:
        phase = self._around.state().lifecycle.phase
        return self._is_ending or phase not in (*_BEFORE, *IN_SERVICE)

    async def _run(self, runner: Runner, api: Asked, review: Reviewing) -> None:
        while self._around.state().lifecycle.phase in _BEFORE and not self._ends:
            await self._woken(None)
        settings = self._around.settings
        if self._ends:
            return
        if settings.admission_server is None:
            left = await configurations_by(api, settings.domain)
            self._tell("server", self._nobody_asks(left))
            self.ready.set()
            return
        self.unready = (_NOT_SERVED,)
        self._share(settings, api)
        self._server = getattr(api, "server", "https://localhost")
        runner.account = await account_by(api) or getattr(api, "account", "")
        serving = asyncio.create_task(
            self._serve(settings.admission_server, _answer_function(review, self))
        )
        try:
            await self._keep(settings, api, runner.account)
            await self._answered()
        except Exception as problem:  # an error in fnop itself
            self._tell("keeping", f"the webhooks are not kept: {described(problem)}")
        finally:
            serving.cancel()
            await asyncio.wait({serving})

    def _share(self, settings: Settings, api: Asked) -> None:
        """Let the replicas of a pod serve certificates of one authority."""
        server: Any = settings.admission_server
        if self._namespace and getattr(server, "store", server) is None:
            from fnop.adapters.webhooks.shared import SharedSecret

            name = secret_of(settings.operator)
            server.store = SharedSecret(api, self._namespace, name)

    def _nobody_asks(self, left: Iterable[Mapping[str, Any]]) -> str:
        """The warning that no server answers for the admission handlers.

        `left` are the configurations that a killed process has left in the cluster.
        """
        text = (
            f"there are admission handlers ({joined(self._handlers)}), and nobody will "
            "ask them: run with --webhooks, or set admission_server= in the settings"
        )
        names = sorted(
            f"{each['kind']} {each['metadata']['name']}"
            for each in left
            if each.get("webhooks")
        )
        if not names:
            return text
        return (
            f"{text}; nobody answers the webhooks of {joined(names)}, whose failure "
            "policies decide: fnop uninstall deletes what the operator has left"
        )

    async def _woken(self, seconds: float | None) -> None:
        """Wait until there is news, for at most this number of seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()

    def _tell(self, about: str, *texts: str, level: str = "warning") -> None:
        """Log each text once, until it no longer holds."""
        before = self._said.get(about, frozenset())
        for each in texts:
            if each not in before:
                self._say(Say(level, each))
        self._said[about] = frozenset(texts)

    # ------------------------------------------------------------------- the server

    async def _serve(self, server: Callable[..., Any], answer: Any) -> None:
        """Run the server, again and again, until it is cancelled."""
        tries = 0
        while True:
            try:
                async for client in _clients_of(server, answer):
                    tries, self._client = 0, _plain_client(client)
                    self._tell("server")
                    self._taken.clear()
                    self._wake.set()
                    # It may serve a new certificate once clients know it.
                    await self._taken.wait()
                why = "it has ended, and should serve until it is cancelled"
            except Exception as problem:
                why = described(problem)
            self._client, self.unready = None, (_NOT_SERVED,)
            pause = growing_seconds(tries, 0.0, most=PAUSE_MOST_SECONDS)
            self._tell(
                "server", f"the webhook server has failed, and is started again: {why}"
            )
            tries += 1
            await asyncio.sleep(pause)

    async def _answered(self) -> None:
        """Wait until no review is in flight."""
        loop = asyncio.get_running_loop()
        until = loop.time() + ANSWER_SECONDS
        while self._reviews and loop.time() < until:
            await self._woken(until - loop.time())

    async def reviewing(self, work: Any) -> Any:
        """Await an answer, which the end waits for, too."""
        self._reviews += 1
        try:
            return await work
        finally:
            self._reviews -= 1
            if not self._reviews and self._ends:
                self._wake.set()

    # ----------------------------------------------------------- the configurations

    async def _keep(self, settings: Settings, api: Asked, account: str) -> None:
        """Keep the configurations up to date until the end, and remove them."""
        if settings.admission_managed is None:
            await self._only_serve(settings, api)
            return
        configurations = self._configurations(settings, api)
        about = Registration(
            configurations.name,
            {},
            account,
            self._namespace,
            settings.namespaces,
            settings.selector,
            settings.marker,
            labels_namespaces(await version_by(api)),
        )
        tries = 0
        while not self._ends:
            if await self._look(settings, configurations, about):
                tries, pause = 0, LOOK_SECONDS
            else:
                pause = growing_seconds(tries, 0.0, most=PAUSE_MOST_SECONDS)
                tries += 1
            await self._woken(pause)
        if configurations.has_written:
            await self._leave(configurations)

    def _configurations(self, settings: Settings, api: Asked) -> Configurations:
        assert settings.admission_managed is not None, "they have a name"
        wall = self._around.clock.now().wall
        return Configurations(
            api,
            settings.admission_managed,
            operator=settings.operator,
            process=f"{wall:014.3f}-{secrets.token_hex(4)}",
            namespace=self._namespace,
            manager=settings.marker,
            answers=_is_served,
            adopts=settings.succeeds_kopf,
        )

    async def _only_serve(self, settings: Settings, api: Asked) -> None:
        """Serve without registration: other tools may point the API server here."""
        while not self._ends:
            client = self._client
            if client is not None and not self._taken.is_set():
                self.unready = ()
                self._taken.set()
                self.ready.set()
                text = f"webhooks are served at {place_of(client)}, and not registered"
                self._tell("serving", text, level="info")
                await self._compare(settings, api, client)
            await self._woken(None)

    async def _compare(
        self, settings: Settings, api: Asked, client: Mapping[str, Any]
    ) -> None:
        """Warn of manual configurations that do not point here, as far as visible."""
        if is_local(client.get("url") or "") and not is_local(self._server):
            return  # another configuration points the API server here
        labelled = labels_namespaces(await version_by(api))
        found = await configurations_by(api, settings.domain)
        texts = [astray(e, self._groups, client, labelled=labelled) for e in found]
        self._tell("keeping", *filter(None, texts))

    async def _look(
        self, settings: Settings, configurations: Configurations, about: Registration
    ) -> bool:
        """Make the configurations as wanted; return False if they cannot be kept."""
        client = self._client
        if client is None:
            return True
        if (url := client.get("url")) and is_local(url) and not is_local(self._server):
            return self._hold_registration(_out_of_reach(self._server, url))
        distrust = getattr(settings.admission_server, "distrust", None)
        if distrust is not None and (why := distrust(client)):
            return self._hold_registration(_distrust_message(client, why))
        catalogue = self._around.state().survey.catalogue
        about = replace(about, client=client)
        wanted = configurations_of(self._groups, catalogue, about)
        kept = await configurations.look(wanted, self._around.clock.now().mono)
        if kept.written:
            names = joined(sorted(kept.written))
            self._say(Say("info", f"webhooks are registered: {names}"))
        for each in kept.mended:
            self._say(Say("info", each))
        idle = unreached(self._groups, catalogue)
        self._tell("keeping", *kept.problems, *kept.notes, *([idle] if idle else []))
        if not kept.problems:
            self.ready.set()
        if not (kept.failed and self.ready.is_set()):  # written configurations stay
            self.unready = kept.problems
        if kept.agree and client is self._client:
            self._taken.set()
        return not kept.failed

    def _hold_registration(self, problem: str) -> bool:
        """Register nothing before a problem is solved; existing registrations stay."""
        self.unready = (problem,)
        self._tell("keeping", problem)
        return False

    async def _leave(self, configurations: Configurations) -> None:
        """Unregister, and serve as long as API servers may still call."""
        self.unready = ("the webhooks are being unregistered",)
        loop = asyncio.get_running_loop()
        until = loop.time() + LEAVE_SECONDS
        unregistered: set[str] = set()
        while True:
            now = self._around.clock.now().mono
            try:
                left = await configurations.leave(self._groups, now)
                unregistered |= {*left.unregistered}
                self._tell("leaving", *left.notes, level="info")
                if left.done:
                    break
            except KeepingProblem as problem:
                self._tell("keeping", str(problem))
            if loop.time() > until:
                self._tell(
                    "keeping",
                    "the webhooks are still registered, and nobody answers any more: "
                    f"the failure policies of {configurations.name} decide until the "
                    "operator runs again",
                )
                return
            await asyncio.sleep(_LEAVING_SECONDS)
        if text := farewell(unregistered, left.stays):
            self._say(Say("info", text))
        await asyncio.sleep(LINGER_SECONDS)


def _out_of_reach(server: str, url: str) -> str:
    return (
        f"the webhooks are not registered, as the API server {server} does not reach "
        f"{url}; say where it does with --webhook-service or --webhook-url"
    )


def _distrust_message(client: Mapping[str, Any], why: str) -> str:
    return (
        f"the webhooks are not registered, as the API server would refuse their "
        f"certificate at {place_of(client)}: {why}"
    )


async def _is_served(client: Mapping[str, Any]) -> bool:
    from fnop.adapters.webhooks.liveness import is_served

    return await is_served(client)


def _answer_function(review: Reviewing, webhooks: Webhooks) -> WebhookFn:
    from fnop.adapters.webhooks.answering import answering

    function = answering(review)

    async def answer(
        request: Any,
        *,
        webhook: str | None = None,
        headers: Mapping[str, str] | None = None,
        sslpeer: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        work = function(request, webhook=webhook, headers=headers, sslpeer=sslpeer)
        found: dict[str, Any] = await webhooks.reviewing(work)
        return found

    return answer


async def _clients_of(server: Callable[..., Any], answer: Any) -> AsyncIterator[Any]:
    """The client configurations of a server, which may be a context manager, too."""
    async with AsyncExitStack() as stack:
        if isinstance(server, AbstractAsyncContextManager):
            await stack.enter_async_context(server)
        clients = server(answer)
        if inspect.isawaitable(clients):
            clients = await clients
        if hasattr(clients, "aclose"):
            clients = await stack.enter_async_context(aclosing(clients))
        async for client in clients:
            yield client


def _plain_client(client: Any) -> dict[str, Any]:
    """A client configuration without None values. Raises `ValueError`."""
    found = _without_none(client) if isinstance(client, Mapping) else {}
    service = found.get("service")
    is_service = isinstance(service, dict) and {"namespace", "name"} <= service.keys()
    if not isinstance(found.get("url"), str) and not is_service:
        what = f"a mapping of {joined([*found])}" if found else shown(client)
        raise ValueError(
            f"it yields {what}; yield {{'url': 'https://...'}}, or "
            "{'service': {'namespace': '...', 'name': '...'}}, with its caBundle"
        )
    return found


def _without_none(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_none(value) if isinstance(value, Mapping) else value
        for key, value in found.items()
        if value is not None
    }
