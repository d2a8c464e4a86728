from __future__ import annotations

from typing import Any

import pytest

from odf_common.metadata.events import SetPollingSource
from odf_common.metadata.sources import (
    CompressionFormat,
    EnvVar,
    EventTimeSourceFromPath,
    FetchStep,
    FetchStepContainer,
    FetchStepEthereumLogs,
    FetchStepFilesGlob,
    FetchStepMqtt,
    FetchStepUrl,
    MergeStrategyAppend,
    MqttTopicSubscription,
    PrepStepDecompress,
    PrepStepPipe,
    ReadStepNdJson,
    RequestHeader,
    SourceOrdering,
)
from services.poller.checks import check_fetch
from services.poller.errors import StepRefusedError
from services.poller.settings import PollerSettings

NODE = "http://127.0.0.1:8545"
TOPICS = (MqttTopicSubscription(path="sensors/+/temperature"),)


def a_source(step: FetchStep, **more: Any) -> SetPollingSource:
    return SetPollingSource(fetch=step, read=ReadStepNdJson(), merge=MergeStrategyAppend(), **more)


@pytest.mark.parametrize(
    "step",
    [
        FetchStepUrl(url="https://example.org/a.csv"),
        FetchStepUrl(url="http://127.0.0.1:8000/a.csv"),
        FetchStepUrl(url="https://${{ env.HOST }}/a", headers=(RequestHeader(name="a", value="${{ env.HOST }}"),)),
        FetchStepUrl(url="${{ env.HOST }}"),
        FetchStepUrl(url="file:///data/a.csv"),
        FetchStepUrl(url="ftp://user:${{ env.HOST }}@example.org/a"),
        FetchStepFilesGlob(path="/data/*.csv", event_time=EventTimeSourceFromPath(pattern=r"(\d+)")),
        FetchStepMqtt(host="localhost", port=1883, topics=TOPICS, password="${{ env.HOST }}"),
        FetchStepEthereumLogs(node_url=NODE, filter="block_number > 5"),
        FetchStepEthereumLogs(chain_id=1, signature="E(uint256 a)"),
    ],
)
def test_what_can_be_polled(step: FetchStep) -> None:
    check_fetch(a_source(step), PollerSettings(env_allow="HOST", ethereum_nodes={"1": "https://node.example.org"}))


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (FetchStepUrl(url="s3://bucket/a"), "begins with http, https, file, ftp"),
        (FetchStepUrl(url="https:///a"), "names no host"),
        (FetchStepUrl(url="file:a.csv"), "file:///path"),
        (FetchStepUrl(url="https://x/${{ env.SECRET }}"), "SECRET is not for sources"),
        (FetchStepUrl(url="https://x/${{ other }}"), "is not known"),
        (FetchStepUrl(url="https://x", headers=(RequestHeader(name="a", value="${{ env.SECRET }}"),)), "SECRET"),
        (FetchStepUrl(url="https://x", event_time=EventTimeSourceFromPath(pattern="(.)")), "FromPath is for FilesGlob"),
        (FetchStepFilesGlob(path="*.csv"), "relative"),
        (FetchStepFilesGlob(path="/*.csv", order=SourceOrdering.BY_EVENT_TIME), "ByEventTime"),
        (FetchStepFilesGlob(path="/*.csv", event_time=EventTimeSourceFromPath(pattern="(")), "pattern"),
        (FetchStepContainer(image="a", env=(EnvVar(name="SECRET"),)), "SECRET is not for sources"),
        (FetchStepMqtt(host="x", port=1883, topics=()), "names no topic"),
        (FetchStepMqtt(host="x", port=0, topics=TOPICS), "is no port"),
        (FetchStepMqtt(host="x", port=1, topics=(MqttTopicSubscription(path="a#/b"),)), "no topic filter"),
        (FetchStepMqtt(host="x", port=1, topics=(MqttTopicSubscription(path="a/b+"),)), "no topic filter"),
        (FetchStepMqtt(host="x", port=1, topics=TOPICS, password="${{ env.SECRET }}"), "SECRET"),
        (FetchStepEthereumLogs(), "names no nodeUrl"),
        (FetchStepEthereumLogs(chain_id=5), "has none for chain 5"),
        (FetchStepEthereumLogs(node_url="wss://x"), "http:// or https://"),
        (FetchStepEthereumLogs(node_url=NODE, filter="address like 'a'"), "not understood"),
        (FetchStepEthereumLogs(node_url=NODE, signature="E(uint7 a)"), "is no type"),
    ],
)
def test_what_cannot_be_is_refused(step: FetchStep, text: str) -> None:
    with pytest.raises(StepRefusedError, match=text):
        check_fetch(a_source(step), PollerSettings())


URL = FetchStepUrl(url="https://x/a")


def test_pipes_are_refused_unless_they_are_allowed() -> None:
    source = a_source(URL, prepare=(PrepStepPipe(command=("jq", ".")),))
    check_fetch(source, PollerSettings(allow_pipe=True))
    with pytest.raises(StepRefusedError, match="ODF_POLLER_ALLOW_PIPE"):
        check_fetch(source, PollerSettings())


@pytest.mark.parametrize(
    ("step", "prepare", "text"),
    [
        (URL, PrepStepPipe(command=()), "names no command"),
        (URL, PrepStepDecompress(format=CompressionFormat.ZIP, sub_path=""), "subPath is empty"),
        (
            FetchStepMqtt(host="x", port=1, topics=TOPICS),
            PrepStepDecompress(format=CompressionFormat.ZIP),
            "as they are",
        ),
    ],
)
def test_prepare_steps_that_make_no_sense(step: FetchStep, prepare: Any, text: str) -> None:
    with pytest.raises(StepRefusedError, match=text):
        check_fetch(a_source(step, prepare=(prepare,)), PollerSettings(allow_pipe=True))
