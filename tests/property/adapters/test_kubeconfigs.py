"""Several kubeconfigs are merged as kubectl does, and a broken one is named."""

import asyncio
import base64
import doctest
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st
from returns.result import Failure

import fnop
from fnop.adapters.kubernetes import kubeconfig_files, service_account
from fnop.adapters.kubernetes.kubeconfig import ConfigurationProblem, find_source
from fnop.adapters.kubernetes.kubeconfig_files import Kubeconfig, read
from tests.thorough import examples

KINDS = {"contexts": "context", "clusters": "cluster", "users": "user"}
names = st.sampled_from(("a", "b", "c", "d"))
# The names in each list of a file, and the context that it selects.
files = st.fixed_dictionaries(
    {plural: st.lists(names, max_size=3, unique=True) for plural in KINDS}
    | {"current-context": st.none() | st.just("") | names}
)


@contextmanager
def written(folder: Path, documents: Sequence[dict[str, Any]]) -> Iterator[list[Path]]:
    """The files, each in a folder of its own; each entry names its file."""
    with TemporaryDirectory(dir=folder) as top:
        paths = []
        for number, document in enumerate(documents):
            path = Path(top) / str(number) / "config"
            path.parent.mkdir()
            path.write_text(yaml.safe_dump(spelled(number, document)))
            paths.append(path)
        yield paths


def spelled(number: int, document: dict[str, Any]) -> dict[str, Any]:
    sections = {
        plural: [
            {"name": name, kind: {"mark": f"{number}.{at}"}}
            for at, name in enumerate(document[plural])
        ]
        for plural, kind in KINDS.items()
    }
    return document | sections


def marks(found: Kubeconfig, plural: str) -> dict[str, str]:
    sections: dict[str, Any] = getattr(found, plural)
    return {name: section["mark"] for name, section in sections.items()}


@given(st.lists(files, min_size=1, max_size=4))
def test_the_first_that_has_a_name_counts(
    tmp_path_factory: pytest.TempPathFactory, documents: list[dict[str, Any]]
) -> None:
    with written(tmp_path_factory.getbasetemp(), documents) as paths:
        found = read(paths).unwrap()
        for plural in KINDS:
            firsts: dict[str, str] = {}
            for number, document in reversed([*enumerate(documents)]):
                for at, name in reversed([*enumerate(document[plural])]):
                    firsts[name] = f"{number}.{at}"
            assert marks(found, plural) == firsts
        selected = [each["current-context"] for each in documents]
        assert found.current == next(filter(None, selected), "")


@settings(max_examples=examples(40))
@given(files, files)
def test_the_order_of_files_matters_for_what_both_have_alone(
    tmp_path_factory: pytest.TempPathFactory, one: Any, other: Any
) -> None:
    with written(tmp_path_factory.getbasetemp(), [one, other]) as paths:
        there, back = read(paths).unwrap(), read(reversed(paths)).unwrap()
        for plural in KINDS:
            both = {*one[plural]} & {*other[plural]}
            forth, again = marks(there, plural), marks(back, plural)
            assert forth.keys() == again.keys()
            assert {name for name in forth if forth[name] != again[name]} == both


@settings(max_examples=examples(30))
@given(files, st.integers(0, 3), st.integers(0, 3))
def test_files_that_are_missing_or_empty_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, document: Any, before: int, after: int
) -> None:
    with written(tmp_path_factory.getbasetemp(), [document]) as (path,):
        missing, empty = path.parent / "none", path.parent / "empty"
        empty.write_text("")
        paths = [*[missing, empty] * before, path, *[empty, missing] * after]
        found, alone = read(paths).unwrap(), read([path]).unwrap()
        for each in ("current", *KINDS):
            assert getattr(found, each) == getattr(alone, each)


@settings(max_examples=examples(40))
@given(
    st.lists(files, max_size=3),
    st.lists(st.integers(0, 3), min_size=1, max_size=2),
    st.sampled_from((b"a: [1", b"- 1", b"a", b"\xff\xff", b"{", b"a: 1\n a: 2", b"*x")),
)
def test_the_first_broken_file_is_named(
    tmp_path_factory: pytest.TempPathFactory,
    documents: list[dict[str, Any]],
    broken_at: list[int],
    text: bytes,
) -> None:
    """With any content of its own, and any content of the others."""
    with written(tmp_path_factory.getbasetemp(), documents) as paths:
        for number, at in enumerate(broken_at):
            broken = tmp_path_factory.getbasetemp() / f"broken{number}"
            broken.write_bytes(text)
            paths.insert(at, broken)
        first = next(path for path in paths if path.name.startswith("broken"))
        match read(paths):
            case Failure(problem):
                assert problem.startswith(f"the kubeconfig {first}")
                assert "\n" not in problem
            case found:
                raise AssertionError(found)
        given = os.pathsep.join(map(str, paths))
        with pytest.raises(fnop.LoginError, match=first.name):
            fnop.login_with_kubeconfig(kubeconfig=given)
        with pytest.raises(ConfigurationProblem, match=first.name):
            asyncio.run(find_source(given, None).login())


@settings(max_examples=examples(40))
@given(
    st.lists(files, min_size=1, max_size=3),
    st.sampled_from(("cert.pem", "../cert.pem", "a/b.pem", "./x/../c.pem")),
    st.booleans(),
)
def test_a_path_is_beside_the_file_that_it_stands_in(
    tmp_path_factory: pytest.TempPathFactory,
    documents: list[dict[str, Any]],
    path: str,
    absolute: bool,
) -> None:
    base = tmp_path_factory.getbasetemp()
    given_path = str(base / path) if absolute else path
    data = base64.b64encode(path.encode()).decode()
    with written(base, documents) as paths:
        for file in paths:
            document = yaml.safe_load(file.read_text())
            for entry in document["clusters"]:
                entry["cluster"]["certificate-authority"] = given_path
            for entry in document["users"]:
                entry["user"]["client-key"] = given_path
                entry["user"]["client-key-data"] = data
            file.write_text(yaml.safe_dump(document))
        found = read(paths).unwrap()
        sections = [*found.clusters.values(), *found.users.values()]
        for section in sections:
            key = "client-key" if "client-key" in section else "certificate-authority"
            stands_in = paths[int(section["mark"].partition(".")[0])]
            assert section[key] == str(stands_in.parent / given_path)
            assert Path(section[key]).is_absolute()
            assert section.get("client-key-data", data) == data


# Few names, so that most references lead somewhere.
few = st.sampled_from(("a", "b"))
said = st.tuples(
    st.dictionaries(few, st.tuples(few, st.none() | few), min_size=1, max_size=2),
    st.sets(few, min_size=1),
    st.sets(few),
    few,
)


@settings(max_examples=examples(50))
@given(st.lists(said, min_size=1, max_size=3), st.none() | few)
def test_both_logins_mean_the_same_server_and_user(
    tmp_path_factory: pytest.TempPathFactory, documents: list[Any], context: str | None
) -> None:
    """Fnop's own and `login_with_kubeconfig`: or both refuse it with one sentence."""
    with TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as top:
        paths = []
        for number, (contexts, clusters, users, current) in enumerate(documents):
            file = Path(top) / str(number)
            file.write_text(
                yaml.safe_dump(
                    {
                        "current-context": current,
                        "contexts": [
                            {"name": name, "context": {"cluster": of, "user": user}}
                            for name, (of, user) in contexts.items()
                        ],
                        "clusters": [
                            {
                                "name": each,
                                "cluster": {"server": f"http://{each}{number}"},
                            }
                            for each in clusters
                        ],
                        "users": [
                            {"name": each, "user": {"token": f"{each}{number}"}}
                            for each in users
                        ],
                    }
                )
            )
            paths.append(str(file))
        given = os.pathsep.join(paths)
        info, refusal = answered(given, context)
        if info is None:
            with pytest.raises(ConfigurationProblem) as refused:
                asyncio.run(find_source(given, context).login())
            assert str(refused.value) == refusal
            assert top in refusal
            return
        assert asyncio.run(find_source(given, context).login()) == info


def answered(
    given: str, context: str | None
) -> tuple[fnop.ConnectionInfo, None] | tuple[None, str]:
    try:
        info = fnop.login_with_kubeconfig(kubeconfig=given, context=context)
    except fnop.LoginError as problem:
        return None, str(problem)
    assert info is not None
    return info, None


def test_a_token_file_counts_before_a_token_as_long_as_it_can_be_read(
    tmp_path: Path,
) -> None:
    file, token = tmp_path / "config", tmp_path / "token"
    user = {"tokenFile": "token", "token": "old"}

    def access(user: dict[str, Any]) -> Any:
        document = {
            "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "clusters": [{"name": "a", "cluster": {"server": "https://h"}}],
            "users": [{"name": "a", "user": user}],
        }
        file.write_text(yaml.safe_dump(document))
        return kubeconfig_files.access_in([file], None)

    assert access(user).unwrap().user["token"] == "old"
    match access({"tokenFile": "token"}):
        case Failure(problem):
            missing = (
                f"the token file {token} cannot be used: No such file or directory"
            )
            assert problem == f"{file}: {missing}"
        case found:
            raise AssertionError(found)
    token.write_text("new\n")
    for given_user in (user, {"tokenFile": "token"}):
        assert access(given_user).unwrap().user["token"] == "new"


async def test_a_context_needs_no_user_and_certificates_are_beside_their_own_file(
    tmp_path: Path,
) -> None:
    """The cluster's file, and the user's, if these are two."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for name in ("ca.pem", "cert.pem", "key.pem"):
            (tmp_path / folder / name).write_text(folder)
    first, second = tmp_path / "one" / "config", tmp_path / "two" / "config"
    cluster = {"server": "https://h", "certificate-authority": "ca.pem"}
    contexts = {
        "b": {"cluster": "c", "user": "u"},
        "anonymous": {"cluster": "c"},
    }
    first.write_text(
        yaml.safe_dump(
            {
                "current-context": "b",
                "contexts": [
                    {"name": name, "context": each} for name, each in contexts.items()
                ],
                "clusters": [{"name": "c", "cluster": cluster}],
            }
        )
    )
    user = {"client-certificate": "cert.pem", "client-key": "key.pem"}
    second.write_text(
        yaml.safe_dump(
            {"current-context": "anonymous", "users": [{"name": "u", "user": user}]}
        )
    )
    both = f"{first}{os.pathsep}{second}"
    found = await find_source(both, None).login()
    assert found.ca_path == str(tmp_path / "one" / "ca.pem")
    assert found.certificate_path == str(tmp_path / "two" / "cert.pem")
    assert found.private_key_path == str(tmp_path / "two" / "key.pem")
    found = await find_source(both, "anonymous").login()
    assert found.certificate_path is None
    assert found.token is None


def test_the_examples_hold() -> None:
    assert doctest.testmod(kubeconfig_files).failed == 0


def test_who_names_files_that_are_missing_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A login handler finds nothing then, unless it has named them itself."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    one, other = tmp_path / "one", tmp_path / "other"
    both = f"{one}{os.pathsep}{other}"
    sentence = f"the kubeconfig {one}, {other} does not exist"
    with pytest.raises(fnop.LoginError, match=sentence):
        fnop.login_with_kubeconfig(kubeconfig=both)
    with pytest.raises(ConfigurationProblem, match=sentence):
        find_source(both, None)
    monkeypatch.setenv("KUBECONFIG", both)
    assert fnop.login_with_kubeconfig() is None
    with pytest.raises(ConfigurationProblem, match=sentence):
        find_source(None, None)
    other.mkdir()
    with pytest.raises(ConfigurationProblem, match=f"{other} is a directory"):
        find_source(None, None)
    monkeypatch.setenv("KUBECONFIG", os.pathsep)
    with pytest.raises(ConfigurationProblem, match="KUBECONFIG names no file, and"):
        find_source(None, None)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert find_source(None, None).files == (service_account.token_file(),)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    monkeypatch.delenv("KUBECONFIG")
    assert fnop.login_with_kubeconfig() is None
    with pytest.raises(ConfigurationProblem, match="KUBECONFIG is not set, and this"):
        find_source(None, None)


@pytest.mark.parametrize(
    ("text", "reader"),
    [
        ('"KUBECONFIG"', "kubeconfig_files.py"),
        ('".kube"', "kubeconfig_files.py"),
        ("kubernetes.io/serviceaccount", "service_account.py"),
    ],
)
def test_one_module_knows_where_credentials_are(text: str, reader: str) -> None:
    folder = Path(kubeconfig_files.__file__).parent
    knowing = [each.name for each in folder.glob("*.py") if text in each.read_text()]
    assert knowing == [reader]
