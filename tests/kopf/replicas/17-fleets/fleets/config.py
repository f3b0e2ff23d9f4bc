import dataclasses
import os


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    domain: str = "fleets.fnop.dev"
    backoff: float = 1.0
    workers: int = 3

    @classmethod
    def from_env(cls):
        given = {
            field.name: field.type(os.environ[f"FLEET_{field.name.upper()}"])
            for field in dataclasses.fields(cls)
            if f"FLEET_{field.name.upper()}" in os.environ
        }
        return cls(**given)
