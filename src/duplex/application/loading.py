"""Finding the application named on the command line, ``module:object`` or ``file.py:object``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from duplex.application.model import Application
from duplex.application.tools import told
from duplex.errors import DuplexError, InputError
from duplex.inputs import exists, opened

DEFAULT_APPLICATION = "duplex.application.restaurant"


def load_application(name: str = DEFAULT_APPLICATION) -> Application:
    """Return the application ``name`` points at.

    ``module`` alone means its object ``application``. A path ending in ``.py``
    is loaded as a file. Raises InputError saying what is wrong with the name.
    """
    place, _, wanted = name.partition(":") if not _is_windows_path(name) else (name, "", "")
    wanted = wanted or "application"
    module = _module(place, "application")
    found = vars(module).get(wanted)
    if found is None:
        have = sorted(k for k, v in vars(module).items() if isinstance(v, Application))
        hint = f"; it has {', '.join(have)}" if have else ""
        raise InputError(f"application {name}: {place} has no object {wanted!r}{hint}")
    if not isinstance(found, Application):
        kind = type(found).__name__
        raise InputError(f"application {name}: {wanted} is {kind}, wanted Application")
    return found


def load_factory(name: str) -> Callable[..., object]:
    """Return the function that makes an agent, by ``module:factory`` or ``file.py:factory``."""
    return load_function(name, "assistant")


def load_function(name: str, kind: str) -> Callable[..., object]:
    """Return a function of the user's; ``kind`` is what errors call it.

    Raises InputError saying what is wrong with the name, or with what it names.
    """
    place, colon, wanted = name.rpartition(":")
    if not colon or not place:
        raise InputError(f"{kind} {name!r}: wanted module:function or file.py:function")
    found = vars(_module(place, kind)).get(wanted)
    if found is None:
        raise InputError(f"{kind} {name}: {place} has no {wanted!r}")
    if not callable(found):
        raise InputError(f"{kind} {name}: {wanted} is {type(found).__name__}, wanted a function")
    function: Callable[..., object] = found
    return function


def _module(place: str, kind: str) -> ModuleType:
    """Load the module at ``place``; ``kind`` is what errors call it."""
    return _from_file(Path(place), kind) if place.endswith(".py") else _from_module(place, kind)


def _is_windows_path(name: str) -> bool:
    return len(name) > 2 and name[1] == ":" and name[2] in "\\/"


def _from_module(place: str, kind: str) -> ModuleType:
    if not all(part.isidentifier() for part in place.split(".")):
        raise InputError(f"{kind} {place!r}: wanted module:object or file.py:object")
    # The command's own folder is not on the path of an installed script.
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and (place == error.name or place.startswith(error.name + ".")):
            raise InputError(f"{kind} {place}: no module named {error.name!r}") from error
        raise InputError(f"{kind} {place}: it imports {error.name!r}, not found") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise InputError(f"{kind} {place}: importing it failed: {_why(error)}") from error
    finally:
        if added:
            sys.path.remove(here)


def _from_file(path: Path, kind: str) -> ModuleType:
    if not exists(path):
        raise InputError(f"{kind} {path}: no such file")
    with opened(path, f"{kind} {path}"):
        pass  # what cannot be read, or would be waited for, is refused before it is run
    spec = importlib.util.spec_from_file_location(f"duplex_{kind}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{kind} {path}: cannot be loaded as a module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        del sys.modules[spec.name]
        raise InputError(f"{kind} {path}: running it failed: {_why(error)}") from error
    return module


def _why(error: BaseException) -> str:
    return str(error) if isinstance(error, DuplexError) else told(error)
