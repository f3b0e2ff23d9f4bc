"""Models of called functions, which answer `fnop.call` in a simulation.

A function of an operator's file is `module:name`, with the name of the loaded module.
The author of a model knows the file, so its stem is enough: `operator:name`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any

from fnop.adapters.common.loading import SCRIPT, LoadProblem, module_of_file, resolve

__all__ = ["Models", "models", "models_for", "models_in", "models_of"]

Model = Callable[..., Any]


def models_for(calls: Mapping[Any, Model] | None) -> Models:
    """The models by all names under which a call may ask for their functions.

    A function is named by itself, as `module:name`, or as `name` alone. A file that is
    both imported by a test and run by its path is two modules with the same functions.
    A model is for either.

    >>> sorted(models_for({"billing:charge": len}))
    ['billing:charge', 'fnop_script_billing:charge']
    >>> models_for({"charge": len}).get("anything:charge")
    <built-in function len>
    """
    return calls if isinstance(calls, Models) else Models(calls or {})


def _by_all_names(calls: Mapping[Any, Model]) -> dict[str, Model]:
    given = {_name_of(function): model for function, model in calls.items()}
    twins = {_other_name(name): model for name, model in given.items()}
    return twins | given


def _name_of(function: str | Callable[..., Any]) -> str:
    if isinstance(function, str):
        return function
    return f"{function.__module__}:{function.__qualname__}"


def _other_name(name: str) -> str:
    """The name of the same function if its file is loaded in the other way."""
    module, colon, function = name.partition(":")
    stem = module.rpartition(".")[2]
    if stem.startswith(SCRIPT):
        return f"{stem.removeprefix(SCRIPT)}{colon}{function}"
    stem = re.sub(r"\W", "_", stem)
    return f"{SCRIPT}{stem}{colon}{function}"


def models_of(
    modules: Iterable[ModuleType],
    scripts: Iterable[ModuleType] = (),
    *,
    real: bool = False,
) -> Models:
    """The models of called functions in the files of `--calls`, and in scripts.

    In a file of models, a public function stands for every called function with its
    name. The mapping `CALLS` goes from functions, `module:name` or `name` to models,
    and has priority over the functions. In a script, whose functions have other
    purposes, only `CALLS` counts. With `real`, functions without a model are called
    themselves. Raises `LoadProblem` if `CALLS` is not such a mapping.
    """
    calls: dict[Any, Model] = {}
    by_name: dict[str, Model] = {}
    own: set[str] = set()
    for module in modules:
        calls |= models_in(module)
        by_name |= {
            name: value
            for name, value in vars(module).items()
            if callable(value) and not name.startswith("_")
        }
        own |= _meant_in(module)
    for script in scripts:
        calls |= models_in(script)
    return Models(calls, by_name, frozenset(own), real=real)


def models(*files: str | Path, script: str | Path | None = None) -> Models:
    """The models in files, as `--calls` reads them, for `calls=` of a `Simulation`.

    `files` are as for `--calls`: a function stands for each called function with its
    name, and `CALLS` adds others (docs/how-to/model-external-systems.md). In a
    `script`, as for `fnop check --script`, only `CALLS` counts. Raises `LoadProblem` if
    a file cannot be loaded.

        sim = Simulation("operator.py", calls=models("models.py"))
    """
    scripts = [] if script is None else [module_of_file(script)]
    return models_of([module_of_file(each) for each in files], scripts)


def models_in(module: ModuleType) -> Mapping[Any, Model]:
    """The `CALLS` of a file. Raises `LoadProblem` if it is not such a mapping."""
    calls = getattr(module, "CALLS", {})
    if (
        isinstance(calls, Mapping)
        and all(map(callable, calls.values()))
        and all(
            isinstance(each, str) or hasattr(each, "__qualname__") for each in calls
        )
    ):
        return calls
    raise LoadProblem(
        f"CALLS of {module.__file__} is not a mapping from functions, 'module:name' or "
        "'name' to functions"
    )


def _meant_in(module: ModuleType) -> frozenset[str]:
    """The functions of a file that are intended as models: no others use them."""
    functions = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == module.__name__
    }
    used = {
        each
        for name, function in functions.items()
        for each in _names_in(function.__code__) - {name}
    }
    mapped = set(map(id, getattr(module, "CALLS", {}).values()))
    return frozenset(
        name
        for name, function in functions.items()
        if not name.startswith("_") and name not in used and id(function) not in mapped
    )


def _names_in(code: CodeType) -> set[str]:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_names_in, inner))


class Models(dict[str, Model]):
    """Models by `module:name`, and else by the bare name (`others`).

    `calls` has both. `by_name` are others by bare names, with a lower priority. Those
    of them in `own` are intended as models, and reported if they answer nothing.
    """

    def __init__(
        self,
        calls: Mapping[Any, Model],
        by_name: Mapping[str, Model] = MappingProxyType({}),
        own: frozenset[str] = frozenset(),
        *,
        real: bool = False,
    ) -> None:
        bare = {
            name: model
            for name, model in calls.items()
            if isinstance(name, str) and ":" not in name
        }
        exact = {name: model for name, model in calls.items() if name not in bare}
        super().__init__(_by_all_names(exact))
        self.others = {**by_name, **bare}
        self._given = [*dict.fromkeys((*map(_name_of, exact), *bare, *sorted(own)))]
        self._real = real
        # The functions that were called: whether each was answered, and by which model.
        self._asked: dict[str, bool] = {}
        self._answered: set[str] = set()

    def with_defaults(self, models: Mapping[str, Model]) -> Models:
        """The same, with further models for functions that none of these answers."""
        defaults = {_bare_name(name): model for name, model in models.items()}
        found = Models({})
        found.update(self)
        found.others = {**defaults, **self.others}
        found._given, found._real = self._given, self._real
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """The model of a function, which is remembered as one that has answered."""
        bare = _bare_name(name)
        found = super().get(name)
        if found is not None:
            self._answered.add(name)
        elif bare in self.others:
            found = self.others[bare]
            self._answered.add(bare)
        self._asked[name] = found is not None
        if found is not None:
            return found
        return resolve(name) if self._real else default

    def __contains__(self, name: object) -> bool:
        """Whether there is a model of a function, under any name.

        >>> calls = models_for({"charge": len})
        >>> "shop:charge" in calls, "shop:refund" in calls
        (True, False)
        """
        return super().__contains__(name) or _bare_name(str(name)) in self.others

    @property
    def unused(self) -> str:
        """A sentence about the models that have answered nothing; or "".

        >>> models = Models({"shop:chrage": len})
        >>> models.get("fnop_script_shop:charge")
        >>> models.unused
        'no call was answered by the model shop:chrage (did you mean shop:charge?)'
        """
        names = [
            each
            for each in self._given
            if self._answered.isdisjoint((each, _other_name(each)))
        ]
        if not names:
            return ""
        shown = ", ".join(each + self._hint(each) for each in names)
        several = "s" if len(names) > 1 else ""
        return f"no call was answered by the model{several} {shown}"

    def _hint(self, name: str) -> str:
        """The function that was probably meant, among those without an answer."""
        wanted = {
            _user_name(each) if ":" in name else _bare_name(each): None
            for each, is_answered in self._asked.items()
            if not is_answered
        }
        near = get_close_matches(_user_name(name), wanted, 1)
        return f" (did you mean {near[0]}?)" if near else ""


def _bare_name(name: str) -> str:
    return name.partition(":")[2].rpartition(".")[2]


def _user_name(name: str) -> str:
    """A name as a user writes it: by the file's stem."""
    return name.removeprefix(SCRIPT)
