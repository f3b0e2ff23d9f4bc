"""`kopf run -m fleets.main`: import all modules of handlers, and set up Kopf."""

import concurrent.futures
import importlib
import logging
import pkgutil

import kopf

from . import handlers
from .config import Config
from .storages import ArchivedEssence, OneAnnotation

for found in pkgutil.iter_modules(handlers.__path__):
    if not found.name.startswith("_"):
        importlib.import_module(f"{handlers.__name__}.{found.name}")

logger = logging.getLogger("fleets")


@kopf.on.startup(id="configure", param=Config.from_env())
def configure(settings: kopf.OperatorSettings, memo: kopf.Memo, param: Config, **_):
    settings.execution.executor = concurrent.futures.ThreadPoolExecutor(
        max_workers=param.workers, thread_name_prefix="fleet"
    )
    settings.execution.default_backoff = param.backoff
    settings.posting.level = logging.ERROR
    settings.persistence.finalizer = f"{param.domain}/anchor"
    settings.persistence.progress_storage = kopf.MultiProgressStorage(
        [
            OneAnnotation(f"{param.domain}/progress"),
            kopf.StatusProgressStorage(name="fleet"),
        ]
    )
    settings.persistence.diffbase_storage = kopf.MultiDiffBaseStorage(
        [
            ArchivedEssence(f"{param.domain}/archive", ["spec.note"]),
            kopf.AnnotationsDiffBaseStorage(prefix="old.fnop.dev", v1=False),
        ]
    )
    memo.config = param
    memo.harbour = {}


@kopf.on.cleanup()
async def report(memo, **_):
    logger.info("in the harbour: %s", sorted(memo.harbour))
