"""Settings of a source, changed one by one and shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from odf_common.catalog.records import SourceSettings

_SCHEDULE = ("poll_every_s", "poll_cron")
_OPTIONS = {"poll_every_s": "--every", "poll_cron": "--cron"}


def changed_settings(settings: SourceSettings, changes: dict[str, Any], *, is_polling: bool) -> SourceSettings:
    """The settings with changes; BadParameter names the option that is wrong."""
    from pydantic import ValidationError

    if not changes:
        raise typer.BadParameter("say what to change, for example --batch-time 60")
    scheduled = [name for name in _SCHEDULE if changes.get(name) is not None]
    if len(scheduled) > 1:
        raise typer.BadParameter("a source has one schedule: --every or --cron")
    if scheduled and not is_polling:
        raise typer.BadParameter("only polling sources have a schedule", param_hint=_OPTIONS[scheduled[0]])
    if (cron := changes.get("poll_cron")) is not None:
        check_cron(cron)
    if scheduled:
        changes = dict.fromkeys(_SCHEDULE) | changes
    try:
        return type(settings).model_validate(settings.model_dump() | changes)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        option = _OPTIONS.get(name) or f"--{name.removesuffix('_s').replace('_', '-')}"
        raise typer.BadParameter(first["msg"], param_hint=option) from error


def check_cron(expression: str) -> None:
    """BadParameter for what is no cron expression, or never comes."""
    from datetime import UTC, datetime

    from cronsim import CronSim, CronSimError

    try:
        next(CronSim(expression, datetime.now(UTC)))
    except CronSimError as error:
        raise typer.BadParameter(f"{expression!r} is no cron expression: {error}", param_hint="--cron") from error
    except StopIteration:
        raise typer.BadParameter(f"{expression!r} never comes", param_hint="--cron") from None


def settings_text(source: dict[str, Any]) -> list[str]:
    """The partitions, and the settings in short; those that say nothing special are left out."""
    settings = source["settings"]
    shown = [
        f"batch {settings['batch_time_s']:g} s, {settings['batch_rows']} rows, {settings['batch_bytes']} bytes",
        f"event ids {settings['event_id_window_s']:g} s",
    ]
    if settings["watermark_delay_s"]:
        shown.append(f"watermark {settings['watermark_delay_s']:g} s behind")
    if settings["max_ahead_s"] is not None:
        shown.append(f"guard {settings['max_ahead_s']:g} s")
    if not settings["accept_new_columns"]:
        shown.append("no new columns")
    if source["kind"] == "polling":
        shown.append(_schedule(settings))
    return [str(settings["partitions"]), "; ".join(shown)]


def _schedule(settings: dict[str, Any]) -> str:
    if settings["poll_cron"] is not None:
        return f"polled at {settings['poll_cron']}"
    return "polled by hand" if settings["poll_every_s"] is None else f"polled every {settings['poll_every_s']:g} s"
