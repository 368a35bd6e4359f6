"""What ``duplex serve`` is told about the runs that it creates: options, agents, a model.

Options come from the ``[run]`` table of a file and are those of ``duplex run``; what only
its command line knows is left out. The model's key comes from the environment. It reads
one file and asks nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from duplex.errors import InputError
from duplex.models.client import ModelClient
from duplex.models.place import place
from duplex.options import RunOptions
from duplex.serve.creating import Creator
from duplex.serve.generating import TIMEOUT_MS, ScenarioWriter
from duplex.serve.launching import Launcher
from duplex.serve.library import Library
from duplex.serve.requests import Defaults
from duplex.serve.simulations import Simulations

_OF_THE_SCREEN = frozenset({"json", "markdown", "verbose"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """As the options of ``duplex serve`` say it; ``run`` is the table of the file."""

    run: Mapping[str, object] = field(default_factory=dict)
    agents: tuple[str, ...] = ()
    model: str | None = None
    model_url: str | None = None
    allow_plain_http: bool = False

    def creator(self, library: Library, launcher: Launcher) -> Creator:
        """Who creates runs so. Raises InputError."""
        unknown = self.run.keys() - RunOptions.model_fields.keys() - _OF_THE_SCREEN
        if unknown:
            raise InputError(f"run-config: run.{min(unknown)} is unknown")
        options = {name: one for name, one in self.run.items() if name not in _OF_THE_SCREEN}
        defaults = Defaults.read(options, self.agents)
        simulations = Simulations(library.folder)
        simulations.tidy(library.folder)
        return Creator(simulations, launcher, defaults, self._writer(), library.changed)

    def _writer(self) -> ScenarioWriter | None:
        if self.model is None:
            if self.model_url is not None:
                raise InputError("model-url is given without model, want both")
            return None
        where = place("model-url", self.model_url, self.model, insecure=self.allow_plain_http)
        return ScenarioWriter(ModelClient(where, timeout_ms=TIMEOUT_MS))
