"""The parts of fnop in a frozen operator: all but the development tools."""

from importlib.util import find_spec

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

_NOT_FROZEN = ("fnop.adapters.pyinstaller", "fnop.adapters.generate.scaffold")
# Plugins of pytest, which does not belong in an operator.
_OF_TESTS = (
    "fnop.adapters.testing.cluster_fixture",
    "fnop.adapters.testing.pytest_plugin",
)

datas = collect_data_files("fnop", excludes=["**/scaffold/**"])
hiddenimports = [
    *collect_submodules(
        "fnop", filter=lambda name: not name.startswith(_NOT_FROZEN + _OF_TESTS)
    ),
    *filter(find_spec, ("uvloop",)),
]
