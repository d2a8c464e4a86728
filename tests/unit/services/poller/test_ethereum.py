from __future__ import annotations

import gzip
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pyarrow.parquet as pq
import pytest

from odf_common.messages.payload import FetchedState
from odf_common.metadata.sources import FetchStepEthereumLogs, ReadStepCsv, ReadStepParquet
from services.poller.errors import FetchDamagedError, FetchUnreachableError
from services.poller.fetch import fetch
from services.poller.fetch.ethereum import ETHEREUM_BLOCK
from services.poller.fetch.ethereum_event import EventSignature
from services.poller.fetched import Fetched, FetchJob, UpToDate
from tests.unit.services.poller.conftest import MakeJob, WebServer

TRANSFER = "Transfer(address indexed from, address indexed to, uint256 value)"
TO = "0x" + "12" * 20
CHAIN_ID = 1337

GANACHE = (
    Path(os.environ.get("ODF_GANACHE", Path.home() / ".cache/odf-ganache")) / "node_modules/ganache/dist/node/cli.js"
)


class Chain:
    """A real chain of its own, and a contract on it that emits Transfer(caller, first word, second word)."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        options = [
            "--server.port",
            str(port),
            "--wallet.deterministic",
            "--chain.chainId",
            str(CHAIN_ID),
            "--logging.quiet",
        ]
        node = shutil.which("node")
        assert node is not None
        with (folder / "ganache.log").open("wb") as log:
            self._process = subprocess.Popen([node, GANACHE, *options], stdout=log, stderr=log, cwd=folder)
        give_up = time.monotonic() + 60
        while not self._answers():
            assert time.monotonic() < give_up, (folder / "ganache.log").read_text()
            time.sleep(0.1)
        self.account = self.call("eth_accounts")[0]
        self.contract = self.deploy(_contract(EventSignature.parse(TRANSFER).topic))

    def _answers(self) -> bool:
        try:
            return bool(self.call("eth_chainId"))
        except httpx.HTTPError:
            return False

    def call(self, method: str, *params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return httpx.post(self.url, json=body, timeout=30).json()["result"]

    def deploy(self, code: bytes) -> str:
        sent = self.call("eth_sendTransaction", {"from": self.account, "data": f"0x{code.hex()}", "gas": "0x100000"})
        return str(self.call("eth_getTransactionReceipt", sent)["contractAddress"])

    def transfer(self, value: int) -> None:
        data = bytes(12) + bytes.fromhex(TO[2:]) + value.to_bytes(32, "big")
        sent = {"from": self.account, "to": self.contract, "data": f"0x{data.hex()}", "gas": "0x100000"}
        assert self.call("eth_getTransactionReceipt", self.call("eth_sendTransaction", sent))["status"] == "0x1"

    def mine(self, blocks: int) -> None:
        self.call("evm_mine", {"blocks": blocks})

    @property
    def head(self) -> int:
        return int(self.call("eth_blockNumber"), 16)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)


def _contract(topic: bytes) -> bytes:
    """Copy the second word of the call into memory; push the first word, the caller and the topic; LOG3; stop."""
    runtime = bytes.fromhex("60206020600037" + "600035" + "33" + "7f") + topic + bytes.fromhex("60206000" + "a3" + "00")
    return bytes([0x60, len(runtime)]) + bytes.fromhex("80600b6000396000f3") + runtime


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    if not GANACHE.exists() or shutil.which("node") is None:
        pytest.skip(f"there is no ganache: npm install --prefix {GANACHE.parents[4]} ganache@7.9.2")
    started = Chain(tmp_path_factory.mktemp("ganache"))
    yield started
    started.close()


@pytest.fixture
def job(make_job: MakeJob) -> Callable[..., FetchJob]:
    def make(*, settings: dict[str, Any] | None = None, **more: Any) -> FetchJob:
        return make_job(settings={"ethereum_confirmations": 0} | (settings or {}), **more)

    return make


def after(block: int) -> FetchedState:
    return FetchedState(kind=ETHEREUM_BLOCK, value=str(block))


def got(step: FetchStepEthereumLogs, job: FetchJob) -> Fetched:
    found = fetch(step, job)
    assert isinstance(found, Fetched), found
    return found


def lines(found: Fetched) -> list[dict[str, Any]]:
    return [json.loads(line) for line in found.file]


@pytest.mark.slow
class TestRealChain:
    def step(self, chain: Chain, **more: Any) -> FetchStepEthereumLogs:
        text = f"address = X'{chain.contract[2:]}'"
        return FetchStepEthereumLogs(
            **({"chain_id": CHAIN_ID, "node_url": chain.url, "filter": text, "signature": TRANSFER} | more)
        )

    def test_new_logs_come_once_and_decoded(self, chain: Chain, job: Any) -> None:
        start = chain.head
        chain.transfer(7)
        chain.transfer(2**200)
        found = got(self.step(chain), job(last=after(start)))
        assert (found.state, found.has_more, found.media_type) == (after(chain.head), False, None)
        first, second = lines(found)
        assert first["event"] == {"from": chain.account.lower(), "to": TO, "value": "7"}
        assert second["event"]["value"] == str(2**200)
        block = chain.call("eth_getBlockByNumber", hex(start + 1), False)
        assert (first["block_number"], first["block_hash"]) == (start + 1, block["hash"])
        assert first["address"] == chain.contract.lower()
        assert (first["transaction_index"], first["log_index"]) == (0, 0)
        assert first["topic2"] == "0x" + "00" * 12 + TO[2:]
        assert first["topic3"] is None
        assert first["block_timestamp"].endswith("Z")
        assert isinstance(fetch(self.step(chain), job(last=found.state)), UpToDate)

    def test_a_source_that_reads_parquet_gets_bytes(self, chain: Chain, job: Any) -> None:
        start = chain.head
        chain.transfer(7)
        found = got(self.step(chain), job(last=after(start), read=ReadStepParquet()))
        assert found.media_type is None
        (row,) = pq.read_table(found.file).to_pylist()
        assert row["event"] == {"from": bytes.fromhex(chain.account[2:]), "to": b"\x12" * 20, "value": "7"}
        assert row["address"] == bytes.fromhex(chain.contract[2:])
        other = got(self.step(chain), job(last=after(start), read=ReadStepCsv()))
        assert other.media_type == "application/vnd.apache.parquet"

    def test_blocks_are_asked_for_in_ranges(self, chain: Chain, job: Any) -> None:
        start = chain.head
        for value in range(5):
            chain.transfer(value)
        settings = {"ethereum_range": 2}
        found = got(self.step(chain, signature=None), job(last=after(start), settings=settings))
        assert [row["block_number"] for row in lines(found)] == list(range(start + 1, start + 6))
        assert "event" not in lines(got(self.step(chain, signature=None), job(last=after(start))))[0]

    def test_what_is_much_comes_in_several_polls(self, chain: Chain, job: Any) -> None:
        start = chain.head
        for value in range(5):
            chain.transfer(value)
        last, seen = after(start), []
        while True:
            found = got(self.step(chain), job(last=last, settings={"ethereum_range": 2, "ethereum_max_logs": 2}))
            seen += [row["event"]["value"] for row in lines(found)]
            last = found.state
            if not found.has_more:
                break
        assert seen == ["0", "1", "2", "3", "4"]

    def test_only_confirmed_blocks_count(self, chain: Chain, job: Any) -> None:
        start = chain.head
        chain.transfer(1)
        settings = {"ethereum_confirmations": 3}
        assert isinstance(fetch(self.step(chain), job(last=after(start), settings=settings)), UpToDate)
        chain.mine(3)
        assert got(self.step(chain), job(last=after(start), settings=settings)).state == after(start + 1)

    def test_silence_is_not_worth_a_block_until_it_is_long(self, chain: Chain, job: Any) -> None:
        step = self.step(chain, filter=f"address = X'{'00' * 19}01'")
        assert isinstance(fetch(step, job()), UpToDate)
        chain.mine(100)
        with mock.patch("services.poller.fetch.ethereum._NOTED_RANGE", 100):
            found = got(step, job())
        assert (lines(found), found.state) == ([], after(chain.head))

    def test_another_chain_than_was_meant(self, chain: Chain, job: Any) -> None:
        with pytest.raises(FetchDamagedError, match="serves chain 1337, not 1"):
            fetch(self.step(chain, chain_id=1), job())

    def test_a_node_that_is_behind(self, chain: Chain, job: Any) -> None:
        with pytest.raises(FetchUnreachableError, match="block 10000000 was taken already"):
            fetch(self.step(chain), job(last=after(10_000_000)))


class FalseNode:
    """Answers JSON-RPC as told."""

    def __init__(self, web: WebServer) -> None:
        self.results: dict[str, Any] = {"eth_chainId": "0x1", "eth_blockNumber": "0x64", "eth_getLogs": []}
        self.asked: list[dict[str, Any]] = []
        self.url = web.url

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["content-length"])))
        calls = body if isinstance(body, list) else [body]
        answers = [self._answered(call) for call in calls]
        data = json.dumps(answers if isinstance(body, list) else answers[0]).encode()
        request.send_response(200)
        request.send_header("content-length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    def _answered(self, call: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(call)
        result = self.results[call["method"]]
        if callable(result):
            result = result(*call["params"])
        key = "error" if isinstance(result, dict) and "code" in result else "result"
        return {"jsonrpc": "2.0", "id": call["id"], key: result}


@pytest.fixture
def node(web: WebServer) -> FalseNode:
    false_node = FalseNode(web)
    web.raw("/", false_node.answer)
    return false_node


def step_of(node: FalseNode) -> FetchStepEthereumLogs:
    return FetchStepEthereumLogs(node_url=node.url)


def a_log(block: int, **more: Any) -> dict[str, Any]:
    zeros = "0x" + "00" * 32
    return {
        "blockNumber": hex(block),
        "blockHash": zeros,
        "blockTimestamp": "0x65",
        "transactionHash": zeros,
        "transactionIndex": "0x0",
        "logIndex": "0x0",
        "address": "0x" + "00" * 20,
        "topics": [],
        "data": "0x",
    } | more


def test_a_node_that_finds_it_too_much_is_asked_for_less(node: FalseNode, job: Any) -> None:
    def logs(query: dict[str, Any]) -> Any:
        start, end = int(query["fromBlock"], 16), int(query["toBlock"], 16)
        if end - start >= 7:
            return {"code": -32005, "message": "query returned more than 10000 results"}
        return [a_log(number) for number in range(start, end + 1)]

    node.results["eth_getLogs"] = logs
    found = got(step_of(node), job())
    assert [row["block_number"] for row in lines(found)] == list(range(101))
    assert found.state == after(100)
    assert len(node.asked) < 60


def test_a_node_that_never_gives_enough(node: FalseNode, job: Any) -> None:
    node.results["eth_getLogs"] = {"code": -32005, "message": "limit exceeded"}
    with pytest.raises(FetchUnreachableError, match="does not give the logs of block 0: limit exceeded"):
        fetch(step_of(node), job())


def test_removed_logs_do_not_count(node: FalseNode, job: Any) -> None:
    node.results["eth_getLogs"] = [a_log(5, removed=True), a_log(7), a_log(6)]
    assert [row["block_number"] for row in lines(got(step_of(node), job()))] == [6, 7]


@pytest.mark.parametrize(
    ("method", "result", "error"),
    [
        ("eth_blockNumber", None, FetchDamagedError),
        ("eth_blockNumber", 5, FetchDamagedError),
        ("eth_blockNumber", "0xzz", FetchDamagedError),
        ("eth_blockNumber", {"code": 1, "message": "key ***"}, FetchUnreachableError),
        ("eth_getLogs", {"code": 7, "message": "no such method"}, FetchUnreachableError),
        ("eth_getLogs", "x", FetchDamagedError),
        ("eth_getLogs", [1], FetchDamagedError),
        ("eth_getLogs", [a_log(500)], FetchDamagedError),
        ("eth_getLogs", [a_log(5, data="0xabc")], FetchDamagedError),
        ("eth_getLogs", [a_log(5, topics=[7])], FetchDamagedError),
        ("eth_getLogs", [a_log(5, address=None)], FetchDamagedError),
        ("eth_getLogs", [a_log(5, blockTimestamp="0xffffffffffffffff")], FetchDamagedError),
    ],
)
def test_answers_that_are_none(node: FalseNode, job: Any, method: str, result: Any, error: type[Exception]) -> None:
    node.results[method] = result
    with pytest.raises(error):
        fetch(step_of(node), job())


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"1", b'{"id":1}'])
def test_answers_without_sense(web: WebServer, job: Any, body: bytes) -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers["content-length"]))
        request.send_response(200)
        request.send_header("content-length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    web.raw("/", answer)
    with pytest.raises((FetchUnreachableError, FetchDamagedError)):
        fetch(FetchStepEthereumLogs(node_url=web.url), job())


def test_packed_answers_are_not_unpacked(web: WebServer, job: Any) -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers["content-length"]))
        body = gzip.compress(gzip.compress(bytes(1 << 20)))
        request.send_response(200)
        request.send_header("content-encoding", "gzip, gzip")
        request.send_header("content-length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    web.raw("/", answer)
    with pytest.raises(FetchDamagedError, match="content encoding 'gzip, gzip', which was not asked for"):
        fetch(FetchStepEthereumLogs(node_url=web.url), job())


def test_nobody_listens(job: Any) -> None:
    with pytest.raises(FetchUnreachableError, match="the node does not answer"):
        fetch(FetchStepEthereumLogs(node_url="http://127.0.0.1:1"), job())
