from __future__ import annotations

import re
from pathlib import Path

import pytest

from odf_common.errors import CorruptedError, OdfError, StoreUnavailableError
from odf_common.repository.repository import Repository
from services.gateway import errors, pages
from services.gateway.settings import GatewaySettings
from tests.unit.services.gateway.builders import a_client, a_dataset, a_gateway, append, watermarks

pytestmark = pytest.mark.anyio


async def test_the_process_is_alive(repository: Repository) -> None:
    async with a_gateway(repository) as gateway, a_client(gateway) as client:
        assert (await client.get("/healthz")).json() == {"status": "alive"}


@pytest.mark.slow
async def test_readiness_names_what_does_not_answer(repository: Repository) -> None:
    async with a_gateway(repository) as gateway, a_client(gateway) as client:
        answer = await client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["catalog"] == "ok"
    assert not answer.json()["ready"]
    assert answer.json()["broker"].startswith("the broker: ")


async def test_datasets_come_with_their_newest_blocks(repository: Repository) -> None:
    dataset = a_dataset(repository, "kamu/cities")
    newest = append(dataset, *watermarks(2))[-1].data
    async with a_gateway(repository) as gateway, a_client(gateway) as client:
        (item,) = (await client.get("/datasets")).json()["datasets"]
    assert item["alias"] == "kamu/cities"
    assert item["head"] == item["newestBlock"]["blockHash"] == str(newest.block_hash)
    assert item["newestBlock"]["sequenceNumber"] == 3
    assert item["topics"] == {"default": "push.kamu.cities.default"}


async def test_a_damaged_dataset_does_not_hide_the_others(repository: Repository, tmp_path: Path) -> None:
    damaged = a_dataset(repository, "damaged")
    a_dataset(repository, "whole", number=2)
    for path in (tmp_path / "datasets" / damaged.entry.location / "blocks").iterdir():
        path.unlink()
    async with a_gateway(repository) as gateway, a_client(gateway) as client:
        one, two = (await client.get("/datasets")).json()["datasets"]
    assert ("newestBlock" in one, "newestBlock" in two) == (False, True)


async def test_datasets_come_in_pages(repository: Repository) -> None:
    for number, alias in enumerate(["a", "b", "c"], 1):
        a_dataset(repository, alias, number=number)
    async with a_gateway(repository) as gateway, a_client(gateway) as client:
        first = (await client.get("/datasets?limit=2")).json()
        second = (await client.get(f"/datasets?limit=2&after={first['next']}")).json()
    assert [item["alias"] for item in first["datasets"] + second["datasets"]] == ["a", "b", "c"]
    assert "next" not in second


async def test_requests_are_counted_by_route(repository: Repository) -> None:
    a_dataset(repository)
    async with a_gateway(repository) as gateway, a_client(gateway) as client:
        await client.post("/cities/ingest", content=b"{}", headers={"content-type": "application/x-ndjson"})
        await client.get("/made/up/path")
        text = (await client.get("/metrics")).text
    assert 'odf_gateway_requests_total{method="POST",route="/{dataset:path}/ingest",status="202"}' in text
    assert "made" not in text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example"])
async def test_other_names_for_this_machine_are_refused(repository: Repository, host: str) -> None:
    async with a_gateway(repository) as gateway, a_client(gateway) as client:
        assert (await client.get("/datasets", headers={"host": host})).status_code == 400


def test_a_public_gateway_answers_to_any_name() -> None:
    assert GatewaySettings(host="0.0.0.0").hosts == ()
    assert GatewaySettings(host="0.0.0.0", allowed_hosts=("odf.example",)).hosts == ("odf.example",)


async def test_other_sites_get_no_permission(repository: Repository) -> None:
    async with a_gateway(repository) as gateway, a_client(gateway) as client:
        answer = await client.get("/datasets", headers={"origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_unknown_paths_are_problems_too(repository: Repository) -> None:
    async with a_gateway(repository) as gateway, a_client(gateway) as client:
        answer = await client.get("/nothing")
    assert (answer.status_code, answer.json()) == (404, {"error": "Http", "message": "Not Found"})


async def test_mistakes_of_the_gateway_show_nothing_of_it(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_gateway(repository) as gateway, a_client(gateway) as client:
        monkeypatch.setattr(gateway.repository.catalog, "dataset_page", lambda **_: 1 / 0)
        answer = await client.get("/datasets")
    assert answer.status_code == 500
    assert "division" not in answer.text


class TestPages:
    @pytest.mark.parametrize("path", ["/", "/docs"])
    async def test_pages_allow_their_own_script_only(self, repository: Repository, path: str) -> None:
        async with a_gateway(repository) as gateway, a_client(gateway) as client:
            answer = await client.get(path)
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "default-src 'none'; script-src 'sha256-" in answer.headers["content-security-policy"]

    @pytest.mark.parametrize("page", [pages.ADDRESSES, pages.DOCS])
    def test_pages_take_nothing_from_elsewhere_and_write_no_markup(self, page: pages.Page) -> None:
        assert not re.findall(rb"https?://|innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", page.content)
        assert not re.findall(rb'\s(?:style|on\w+)="', page.content)


class TestStatuses:
    @pytest.mark.parametrize(
        ("error", "status"),
        [
            (errors.MediaTypeError("x"), 415),
            (errors.EmptyBodyError("x"), 400),
            (StoreUnavailableError("x"), 503),
            (CorruptedError("x", "y"), 500),
            (OdfError("x"), 500),
            (ValueError("x"), 500),
        ],
    )
    def test_the_nearest_ancestor_decides(self, error: Exception, status: int) -> None:
        assert errors.status_of(error) == status
