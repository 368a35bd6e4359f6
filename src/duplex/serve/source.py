"""Which files of an agent's source a model is shown, in which order, and how much of them.

The entrypoint first, then what lies near it, prose and prompts before data. What others
wrote, what was built, hidden files and whatever looks like a key never leave; values that
look like secrets are hidden in what does. Pure; generation drives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from duplex.errors import InputError
from duplex.grading.judging.rubric import as_data
from duplex.redact import Redactor
from duplex.secret_values import environment_secrets
from duplex.values import Json

SHOWN_CHARS = 120_000
"""Characters of source that a model is shown; a file that does not fit is cut."""
_CODE = (".py", ".ts", ".tsx", ".js", ".jsx", ".mjs", ".go", ".rs", ".java", ".kt", ".rb", ".cs")
_PROSE = (".md", ".txt", ".rst", ".prompt", ".j2", ".jinja", ".jinja2", ".mdx")
_DATA = (".json", ".yaml", ".yml", ".toml", ".csv", ".sql", ".graphql", ".proto")
_ORDER = {suffix: rank for rank, kind in enumerate((_CODE, _PROSE, _DATA)) for suffix in kind}
_FOREIGN = frozenset(
    {
        "node_modules",
        "__pycache__",
        "site-packages",
        "venv",
        "env",
        "vendor",
        "dist",
        "build",
        "target",
        "coverage",
    }
)
_LOCKS = frozenset({"package-lock.json", "pnpm-lock.yaml", "composer.lock", "uv.lock"})
_KEYS = ("secret", "credential", "password", "id_rsa", "id_ed25519", "service_account")


def wanted(path: str) -> bool:
    """Whether a file may be shown at all."""
    parts = PurePosixPath(path.lower()).parts
    name = parts[-1]
    return (
        PurePosixPath(name).suffix in _ORDER
        and not any(part.startswith(".") or part in _FOREIGN for part in parts)
        and name not in _LOCKS
        and not any(word in name for word in _KEYS)
    )


def entrypoint_of(texts: Mapping[str, str], named: str) -> str:
    """The path of the entrypoint; a folder that holds everything need not be named.

    Raises InputError.
    """
    path = "/".join(part for part in named.split("/") if part not in ("", "."))
    tops = {one.partition("/")[0] for one in texts}
    for one in (path, f"{next(iter(tops))}/{path}" if len(tops) == 1 else path):
        if path and one in texts:
            return one
    raise InputError(f"codeEntrypoint {named[:200]!r} is no source file of the archive")


def shown(texts: Mapping[str, str], entrypoint: str) -> str:
    """The source as JSON, a file an entry, as far as there is room."""
    redactor = Redactor(environment_secrets())
    left = SHOWN_CHARS
    files: list[Json] = []
    for path in sorted(texts, key=lambda one: _rank(one, entrypoint)):
        text = redactor.text(texts[path])
        entry: dict[str, Json] = {"path": path, "text": text[:left]}
        if len(text) > left:
            entry["cut"] = True
        files.append(entry)
        left -= len(text) + len(path)
        if left <= 0:
            break
    return as_data({"entrypoint": entrypoint, "files": files})


def _rank(path: str, entrypoint: str) -> tuple[int, int, int, int, str]:
    here, home = PurePosixPath(path), PurePosixPath(entrypoint).parent
    name = here.name.lower()
    tested = any("test" in part for part in here.parts)
    apart = 0 if here.is_relative_to(home) else 1
    kind = -1 if name.startswith("readme") else _ORDER.get(here.suffix.lower(), 9)
    return (path != entrypoint, tested, apart, kind, path)
