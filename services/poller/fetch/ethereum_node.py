"""A node of an Ethereum chain, asked by JSON-RPC."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import httpx

from services.poller.errors import FetchDamagedError, FetchUnreachableError
from services.poller.fetch.ethereum_filter import LogFilter
from services.poller.fetch.hang_up import HangUp
from services.poller.fetched import FetchJob

for _name in ("httpx", "httpcore"):  # they tell of URLs, and those of nodes hold keys
    logging.getLogger(_name).setLevel(logging.WARNING)

_MAX_ANSWER = 64 << 20  # bytes
_BATCH = 100  # requests
_LIMIT_CODES = frozenset({-32005, -32602, -32600})
_LIMIT_WORDS = re.compile(
    r"limit|too many|too large|too big|range|more than|exceed|size|timeout|timed out", re.IGNORECASE
)
_TOO_LARGE = 413
_NUMBERS = 1 << 63  # what fits into a column


class TooManyLogsError(Exception):
    """The node wants to be asked for fewer blocks at once."""


class _RpcError(Exception):
    def __init__(self, code: object, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.is_limit = code in _LIMIT_CODES or _LIMIT_WORDS.search(message) is not None


class Node:
    """A connection to a node, for one fetch."""

    def __init__(self, url: str, job: FetchJob) -> None:
        self._url = url
        self._job = job
        self._ids = count(1)
        settings = job.settings
        timeout = httpx.Timeout(settings.read_timeout_s, connect=settings.connect_timeout_s)
        # Packed answers could unpack to more than memory holds before anybody has counted.
        headers = {"accept-encoding": "identity"}
        self._client = httpx.Client(trust_env=False, timeout=timeout, follow_redirects=False, headers=headers)
        self._hang_up = HangUp(job)

    def __enter__(self) -> Node:
        self._hang_up.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._hang_up.__exit__()

    def chain_id(self) -> int:
        """The chain that the node serves."""
        return number_of(self._answer("eth_chainId"))

    def block_number(self) -> int:
        """The newest block."""
        return number_of(self._answer("eth_blockNumber"))

    def logs(self, chosen: LogFilter, start: int, end: int) -> list[dict[str, Any]]:
        """The logs of blocks, in their order; TooManyLogsError if that is too much at once."""
        try:
            found = self._call([("eth_getLogs", [chosen.to_query(start, end)])])[0]
        except _RpcError as error:
            if error.is_limit:
                raise TooManyLogsError(str(error)) from error
            raise FetchUnreachableError(f"the node says: {error}") from error
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise FetchDamagedError("the node's answer holds no list of logs")
        kept = [each for each in found if each.get("removed") is not True]
        for each in kept:
            if not start <= number_of(each.get("blockNumber")) <= end:
                raise FetchDamagedError("the node gave logs of blocks that it was not asked for")
        return sorted(kept, key=lambda log: (number_of(log["blockNumber"]), number_of(log.get("logIndex"))))

    def timestamps(self, logs: Iterable[dict[str, Any]]) -> dict[int, int]:
        """The time of each block with a log, in seconds. Some nodes say it with the log."""
        found: dict[int, int] = {}
        missing: list[int] = []
        for log in logs:
            number = number_of(log["blockNumber"])
            if number not in found:
                told = log.get("blockTimestamp")
                found[number] = -1 if told is None else number_of(told)
                if told is None:
                    missing.append(number)
        for start in range(0, len(missing), _BATCH):
            numbers = missing[start : start + _BATCH]
            try:
                blocks = self._call([("eth_getBlockByNumber", [hex(number), False]) for number in numbers])
            except _RpcError as error:
                raise FetchUnreachableError(f"the node says: {error}") from error
            for number, block in zip(numbers, blocks, strict=True):
                if not isinstance(block, dict):
                    raise FetchDamagedError(f"the node does not know block {number}, of which it gave logs")
                found[number] = number_of(block.get("timestamp"))
        return found

    def _answer(self, method: str) -> Any:
        try:
            return self._call([(method, [])])[0]
        except _RpcError as error:
            raise FetchUnreachableError(f"the node says: {error}") from error

    def _call(self, calls: Sequence[tuple[str, list[Any]]]) -> list[Any]:
        """The results of calls, in their order."""
        self._job.check_time()
        asked = [
            {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params} for method, params in calls
        ]
        answer = self._post(asked[0] if len(asked) == 1 else asked)
        answers = answer if isinstance(answer, list) else [answer]
        by_id = {each.get("id"): each for each in answers if isinstance(each, dict)}
        return [_result(by_id.get(each["id"]) or (answers[0] if len(answers) == 1 else None)) for each in asked]

    def _post(self, body: Any) -> Any:
        try:
            watched = {"trace": self._hang_up.trace}
            with self._client.stream("POST", self._url, json=body, extensions=watched) as response:
                _check_plain(response)
                data = bytearray()
                for chunk in response.iter_raw():
                    self._job.check_time()
                    data += chunk
                    if len(data) > _MAX_ANSWER:
                        raise _RpcError("too large", f"the answer exceeds the limit of {_MAX_ANSWER >> 20} MiB")
        except httpx.InvalidURL as error:
            raise FetchUnreachableError(f"the node's URL is none: {error}") from error
        except httpx.RequestError as error:
            self._job.check_time()
            raise FetchUnreachableError(f"the node does not answer: {error or type(error).__name__}") from error
        if response.status_code == _TOO_LARGE:
            raise _RpcError(_TOO_LARGE, "the answer would be too large")
        return _parsed(bytes(data), response)


def _check_plain(response: httpx.Response) -> None:
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        raise FetchDamagedError(f"the node answers in the content encoding {encoding[:40]!r}, which was not asked for")


def _parsed(data: bytes, response: httpx.Response) -> Any:
    import orjson

    try:
        return orjson.loads(data)
    except ValueError as error:
        status = f"{response.status_code} {response.reason_phrase}".rstrip()
        raise FetchUnreachableError(f"the node answers {status}, without JSON") from error


def _result(answer: Any) -> Any:
    if isinstance(answer, dict):
        error = answer.get("error")
        if isinstance(error, dict):
            raise _RpcError(error.get("code"), str(error.get("message"))[:300])
        if "result" in answer:
            return answer["result"]
    raise FetchDamagedError("the node's answer is no JSON-RPC")


def number_of(value: Any) -> int:
    """A quantity as nodes write it: `0x1b4`."""
    try:
        if isinstance(value, str) and value.startswith("0x") and (number := int(value, 16)) < _NUMBERS:
            return number
    except ValueError:
        pass
    raise FetchDamagedError(f"{value!r:.60} of the node's answer is no number")


def bytes_of(value: Any) -> bytes:
    """Bytes as nodes write them: `0x00ff`."""
    try:
        if isinstance(value, str) and value.startswith("0x"):
            return bytes.fromhex(value[2:])
    except ValueError:
        pass
    raise FetchDamagedError(f"{value!r:.60} of the node's answer is no hexadecimal text")
