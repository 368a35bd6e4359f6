"""Where a run was started, as continuous integration tells it in the environment.

Only what names the change and the pipeline; nothing else of the environment is
read. Outside a pipeline it is empty.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "gitlab_ci": {
        "commit_sha": ("CI_COMMIT_SHA",),
        "ref": ("CI_COMMIT_REF_NAME",),
        "pull_request": ("CI_MERGE_REQUEST_IID",),
        "run_url": ("CI_PIPELINE_URL",),
        "actor": ("GITLAB_USER_LOGIN",),
    },
    "circleci": {
        "commit_sha": ("CIRCLE_SHA1",),
        "ref": ("CIRCLE_BRANCH", "CIRCLE_TAG"),
        "pull_request": ("CIRCLE_PR_NUMBER",),
        "run_url": ("CIRCLE_BUILD_URL",),
        "actor": ("CIRCLE_USERNAME",),
    },
    "buildkite": {
        "commit_sha": ("BUILDKITE_COMMIT",),
        "ref": ("BUILDKITE_BRANCH",),
        "pull_request": ("BUILDKITE_PULL_REQUEST",),
        "run_url": ("BUILDKITE_BUILD_URL",),
        "actor": ("BUILDKITE_BUILD_CREATOR",),
    },
    "jenkins": {
        "commit_sha": ("GIT_COMMIT",),
        "ref": ("BRANCH_NAME", "GIT_BRANCH"),
        "pull_request": ("CHANGE_ID",),
        "run_url": ("BUILD_URL",),
        "actor": ("CHANGE_AUTHOR",),
    },
}
_TELLS = {
    "gitlab_ci": "GITLAB_CI",
    "circleci": "CIRCLECI",
    "buildkite": "BUILDKITE",
    "jenkins": "JENKINS_URL",
}


def metadata(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """``provider``, ``commit_sha``, ``ref``, ``pull_request``, ``run_url``, ``actor``, as known."""
    env = os.environ if environment is None else environment
    if env.get("GITHUB_ACTIONS") == "true":
        return _known(_github(env))
    for provider, mark in _TELLS.items():
        if env.get(mark):
            told = {
                name: next((env[key] for key in keys if env.get(key)), "")
                for name, keys in _NAMES[provider].items()
            }
            return _known({"provider": provider, **told})
    return {}


def _github(env: Mapping[str, str]) -> dict[str, str]:
    ref = env.get("GITHUB_REF", "")
    parts = ref.split("/")
    pull = parts[2] if ref.startswith("refs/pull/") and len(parts) > 2 else ""
    base, repository, run = (
        env.get(name, "") for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")
    )
    url = f"{base}/{repository}/actions/runs/{run}" if base and repository and run else ""
    return {
        "provider": "github_actions",
        "commit_sha": env.get("GITHUB_SHA", ""),
        "ref": ref,
        "pull_request": pull,
        "run_url": url,
        "actor": env.get("GITHUB_ACTOR", ""),
    }


def _known(told: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in told.items() if value and value != "false"}
