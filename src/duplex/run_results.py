"""The results of a run as they come: every attempt listed once, and the run made of them.

It keeps what the runner hands it and puts it in the order of the plan; it holds no
call, writes no file and computes nothing that results and the verdict do not. The
runner drives it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from duplex.about_run import Held, about, configuration
from duplex.discretion import hidden_run
from duplex.early import Early
from duplex.holding import Setting
from duplex.inputs import is_folder
from duplex.journal import Opening
from duplex.options import RunOptions
from duplex.plan import Plan, PlannedCall, plan_id
from duplex.redact import Redactor
from duplex.results import schema
from duplex.results.run import build_run
from duplex.scenario import Scenario
from duplex.values import Json
from duplex.verdict.block import blocks
from duplex.verdict.criteria import Criterion


def data_path(options: RunOptions) -> Path:
    """Where scenarios come from: the option, ./scenarios, or the copy in the package."""
    if options.data is not None:
        return options.data
    here = Path("scenarios")
    if is_folder(here):
        return here
    package = Path(__file__).parent
    shipped = package / "scenarios"
    # An editable install has no copy: its scenarios are the checkout's.
    return shipped if shipped.is_dir() else package.parents[1] / "scenarios"


class Listed:
    """Results by test case and attempt."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._results: dict[str, dict[int, schema.Result]] = {}
        self._early = Early()

    def add(self, planned: PlannedCall, attempt: int, result: schema.Result) -> None:
        self._results.setdefault(planned.id, {})[attempt] = result
        if is_final(result):
            self._early.saw(result)

    @property
    def broken(self) -> str | None:
        """Why the rest of the run is not worth holding; None while it may be."""
        return self._early.broken

    def unheld(self) -> list[PlannedCall]:
        """Test cases without any attempt, in the order of the plan."""
        return [planned for planned in self.plan.calls if planned.id not in self._results]

    @property
    def whole(self) -> bool:
        """Whether every test case has its last attempt."""
        return all(
            (tries := self._results.get(planned.id)) and is_final(tries[max(tries)])
            for planned in self.plan.calls
        )

    def __iter__(self) -> Iterator[schema.Result]:
        """All attempts, in the order of the plan."""
        for planned in self.plan.calls:
            tries = self._results.get(planned.id, {})
            for attempt in sorted(tries):
                yield tries[attempt]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: ``status`` None while it goes on, ``ended_at`` None until it ended."""

    status: str | None = None
    ended_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResults:
    """Makes the run of what is listed."""

    options: RunOptions
    chosen: Sequence[Scenario]
    plan: Plan
    settings: Sequence[Setting]
    criteria: Sequence[Criterion]
    redactor: Redactor
    listed: Listed

    def built(
        self,
        run_id: str,
        opening: Opening,
        progress: Progress,
        *,
        held: Sequence[Held],
        opened_in: float,
        cost: Mapping[str, Json],
    ) -> schema.Run:
        """The run so far; with its verdict once it has a status."""
        options = self.options
        pairs = [(self.settings[call.setting], call.scenario) for call in self.plan.calls]
        ours = about(options, held, opened_in)
        run = build_run(
            list(self.listed),
            run_id=run_id,
            execution_mode="live" if options.clock == "wall" else "offline",
            dataset=str(data_path(options)),
            configuration=configuration(
                options,
                {setting.ends.first_speaker(scenario) for setting, scenario in pairs},
                [setting.condition(scenario) for setting, scenario in pairs],
            ),
            duplex=ours | {"cost": dict(cost), "plan": self._plan_json(opening, progress)},
        )
        if progress.status is not None:
            run.run.duplex.update(blocks(run))
        return hidden_run(run, self.redactor)

    def _plan_json(self, opening: Opening, progress: Progress) -> dict[str, Json]:
        """``run.duplex.plan``: what was asked for, pinned when the run began."""
        options, swept = self.options, self.plan.swept
        named = data_path(options).resolve()
        return {
            "id": plan_id(options, named, [one.id for one in self.chosen]),
            "name": named.stem,
            "status": progress.status or "running",
            "created_at": opening.created_at,
            "started_at": opening.created_at,
            "ended_at": progress.ended_at,
            "expected": len(self.plan.calls),
            "samples": options.samples,
            "pass_rate": options.pass_rate,
            "silent_retries": options.silent_retries,
            "criteria": [one.as_json() for one in self.criteria],
            "sweep": None
            if swept is None
            else {
                "property": swept.property,
                "arms": [
                    {"key": a.key, "value": a.value, "label": a.label, "baseline": a.baseline}
                    for a in swept.arms
                ],
            },
            "ci": dict(opening.ci),
        }


def is_final(result: schema.Result) -> bool:
    """Whether no further attempt will follow; one the user stopped is held again if resumed."""
    case = result.duplex.get("case")
    final = not isinstance(case, dict) or case.get("final") is not False
    return final and not was_stopped(result)


def was_stopped(result: schema.Result) -> bool:
    """Whether the user ended the call."""
    return result.error is not None and result.error.stage == "user_stopped"
