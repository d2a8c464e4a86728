"""What a replay came to, as the object that it prints at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.demo.tally import Tally, percentiles_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of a replay over all its datasets. Counted from notifications, except `blocks`: from the chains."""

    published: int
    committed: int
    duplicates: int
    dead_letters: int
    blocks: int
    notifications: int
    seconds: float
    latency_ms: tuple[float, float] | None
    verified: bool
    heads: Mapping[str, str]

    @property
    def complete(self) -> bool:
        """Whether every event is accounted for, and the chains are as they promise."""
        return self.verified and self.published == self.committed + self.duplicates + self.dead_letters

    @property
    def on_their_way(self) -> int:
        """Events in the topics that no block was told of when the replay was stopped."""
        return max(self.published - self.committed - self.duplicates - self.dead_letters, 0)

    def to_data(self) -> dict[str, Any]:
        """The object for scripts."""
        p50, p99 = self.latency_ms or (None, None)
        return {
            "published": self.published,
            "committed": self.committed,
            "duplicates": self.duplicates,
            "dead_letters": self.dead_letters,
            "blocks": self.blocks,
            "notifications": self.notifications,
            "seconds": self.seconds,
            "latency_ms": {"p50": p50, "p99": p99},
            "verified": self.verified,
            "heads": dict(self.heads),
        }

    def to_text(self) -> str:
        """The same for people."""
        took = f"{self.seconds:.1f} s" + (f", {self.published / self.seconds:,.0f} events/s" if self.seconds else "")
        lines = [
            f"{self.published:,} events published, {took}",
            f"{self.committed:,} rows + {self.duplicates:,} duplicates + {self.dead_letters:,} dead letters "
            f"in {self.blocks:,} blocks, told in {self.notifications:,} notifications",
        ]
        if self.on_their_way:
            lines.append(f"{self.on_their_way:,} events are on their way into blocks: the next run finds them there")
        if self.latency_ms is not None:
            p50, p99 = self.latency_ms
            lines.append(f"publish → notification: p50 {p50:,.0f} ms, p99 {p99:,.0f} ms (of all events, the first too)")
        lines.append("verified: " + ("every dataset passed" if self.verified else "FAILED, `odf verify` says why"))
        lines += [f"{alias}  {head}" for alias, head in self.heads.items()]
        return "\n".join(lines)


def figures(tallies: Sequence[Tally], *, blocks: int, seconds: float, checked: Sequence[Mapping[str, Any]]) -> Figures:
    """Add up the tallies; `checked` is what `odf verify` says of each dataset."""
    return Figures(
        published=sum(each.published for each in tallies),
        committed=sum(each.rows for each in tallies),
        duplicates=sum(each.duplicates for each in tallies),
        dead_letters=sum(each.dead_letters for each in tallies),
        blocks=blocks,
        notifications=sum(each.notifications for each in tallies),
        seconds=round(seconds, 3),
        latency_ms=percentiles_ms(tallies),
        verified=bool(checked) and all(each["ok"] for each in checked),
        heads={each["alias"]: each.get("head", "") for each in checked},
    )
