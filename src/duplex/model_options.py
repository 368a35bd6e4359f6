"""Which models a run uses besides the voices, as far as options can say and be wrong.

A part of ``options.RunOptions``: the backend that does delegated work, the caller's own
backend, the brains of the embedded voices, and who says when a conversation is over.
Keys are never among them; where a URL may lead is checked by ``models/place.py`` before
anything is opened.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from duplex.application.model_prompts import RULE_MODEL
from duplex.errors import InputError
from duplex.models.place import check_url
from duplex.values import Json

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]


class ModelOptions(BaseModel):
    """The names are the flags' names."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    delegation: Literal["client", "responses"] = "client"
    backend_url: str | None = None
    backend_model: str | None = Field(default=None, min_length=1)
    backend_reasoning_effort: Effort | None = None
    simulator_backend_model: str | None = Field(default=None, min_length=1)
    simulator_backend_reasoning_effort: Effort | None = None
    brain_url: str | None = None
    brain_model: str | None = Field(default=None, min_length=1)
    simulator_brain_model: str | None = Field(default=None, min_length=1)
    completion_url: str | None = None
    completion_model: str | None = Field(default=None, min_length=1)
    completion_reasoning_effort: Effort | None = None
    completion_timeout_seconds: float = Field(default=8.0, gt=0, le=120)
    semantic_drain: bool | None = None
    allow_plain_http: bool = False

    @model_validator(mode="after")
    def _models_have_places(self) -> ModelOptions:
        if self.backend_url is not None and self.backend_model is None:
            raise ValueError("backend-url is given without backend-model, want both")
        brains = (self.brain_model, self.simulator_brain_model)
        if self.brain_url is not None and not any(brains):
            raise ValueError(
                "brain-url is given without brain-model or simulator-brain-model, want one"
            )
        if self.completion_url is not None and self.completion_model is None:
            raise ValueError("completion-url is given without completion-model, want both")
        if self.semantic_drain and self.completion_model is None:
            raise ValueError("semantic-drain wants a completion-model, got none")
        try:
            for option, url in (
                ("backend-url", self.backend_url),
                ("brain-url", self.brain_url),
                ("completion-url", self.completion_url),
            ):
                if url is not None:
                    check_url(option, url, insecure=self.allow_plain_http)
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    def misplaced(self, assistant: str, caller: str) -> str | None:
        """Say which model has nothing to do between these two parties; None if none."""
        delegates = assistant in ("local", "gpt-live")
        if self.delegation == "responses" and not delegates:
            return (
                f"delegation responses: assistant {assistant} does not delegate to a backend of "
                "its own; want local or gpt-live"
            )
        if self.delegation == "responses" and assistant != "local" and self.backend_model is None:
            return "delegation responses: the service wants a backend-model, got none"
        if self.backend_model is not None and not delegates:
            return f"backend-model: assistant {assistant} does its own work; want local or gpt-live"
        if self.delegation == "responses" and assistant != "local" and self.backend_url is not None:
            return "backend-url: the service runs the backend of delegation responses itself"
        if self.brain_model is not None and assistant != "local":
            return f"brain-model: assistant {assistant} thinks for itself; want local"
        if self.simulator_brain_model is not None and caller != "local":
            return f"simulator-brain-model: caller {caller} thinks for itself; want local"
        if self.simulator_backend_model is not None and caller != "gpt-live":
            return f"simulator-backend-model: caller {caller} has no backend; want gpt-live"
        return None

    @property
    def own_backend(self) -> bool:
        """Whether a model over HTTP does the delegated work of ``client`` delegation."""
        named = self.backend_model is not None
        rules = self.backend_model == RULE_MODEL and self.backend_url is None
        return self.delegation == "client" and named and not rules

    @property
    def observed(self) -> bool:
        """Whether a model says when a call is over: one that was named, unless told not to."""
        return self.completion_model is not None and self.semantic_drain is not False

    @property
    def managed_model(self) -> str:
        """The model of ``responses`` delegation; the local server has one of its own."""
        return self.backend_model or RULE_MODEL

    @property
    def asked_backend(self) -> str | None:
        """The model that does the assistant's work; None where rules in this process do."""
        return self.managed_model if self.delegation == "responses" else self.backend_model

    def models(self) -> dict[str, Json]:
        """What a run says of its models, those that were asked for."""
        asked: dict[str, Json] = {
            "backend_url": self.backend_url,
            "backend_model": self.asked_backend,
            "backend_reasoning_effort": self.backend_reasoning_effort,
            "brain_url": self.brain_url,
            "brain_model": self.brain_model,
            "simulator_brain_model": self.simulator_brain_model,
            "completion_url": self.completion_url if self.observed else None,
            "completion_model": self.completion_model if self.observed else None,
        }
        return {name: value for name, value in asked.items() if value is not None}
