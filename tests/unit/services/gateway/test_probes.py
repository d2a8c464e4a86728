from __future__ import annotations

import asyncio
import threading
from unittest import mock

import pytest

from odf_common.errors import StoreUnavailableError
from services.gateway.probes import BrokerQuestion, Probe

pytestmark = pytest.mark.anyio


class Asked:
    """Counts the questions, and answers when it may."""

    def __init__(self) -> None:
        self.count = 0
        self.may_answer = threading.Event()
        self.problem: str | None = None

    def __call__(self) -> None:
        self.count += 1
        assert self.may_answer.wait(5)
        if self.problem is not None:
            raise StoreUnavailableError(self.problem)


async def test_many_ask_once() -> None:
    asked = Asked()
    probe = Probe(asked)
    waiting = asyncio.gather(*(probe.answer() for _ in range(20)))
    await asyncio.sleep(0)
    asked.may_answer.set()
    assert set(await waiting) == {"ok"}
    assert asked.count == 1


async def test_who_gives_up_starts_no_second_question() -> None:
    asked = Asked()
    probe = Probe(asked, wait_s=0.01)
    for _ in range(3):
        assert await probe.answer() == "no answer within 0.01 s"
    assert asked.count == 1
    asked.may_answer.set()


async def test_an_answer_counts_for_a_moment() -> None:
    now, asked = 0.0, Asked()
    asked.may_answer.set()
    probe = Probe(asked, clock=lambda: now)
    assert await probe.answer() == "ok"
    asked.problem = "the broker is gone"
    now = 0.9
    assert await probe.answer() == "ok"
    now = 1.1
    assert await probe.answer() == "the broker is gone"
    assert asked.count == 2


def test_the_broker_is_asked_with_one_client() -> None:
    with mock.patch("services.gateway.probes.admin_client") as made:
        ask = BrokerQuestion("127.0.0.1:1")
        ask()
        ask()
    assert made.call_count == 1
    assert made.return_value.list_topics.call_count == 2
