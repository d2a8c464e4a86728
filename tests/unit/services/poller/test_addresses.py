from __future__ import annotations

import pytest

from services.poller.addresses import check_public_host, is_public
from services.poller.errors import FetchRefusedError, FetchUnreachableError


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "10.0.0.1",
        "172.16.5.5",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "::127.0.0.1",
        "::ffff:0:127.0.0.1",
        "fec0::1",
        "5f00::1",
        "localhost",
        "",
    ],
)
def test_private(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("host", ["localhost", "127.1", "2130706433", "0x7f.1", "[::1]".strip("[]")])
def test_a_name_of_a_private_address_is_refused_however_it_is_written(host: str) -> None:
    with pytest.raises(FetchRefusedError, match="private network"):
        check_public_host(host, 80)


def test_a_name_that_nobody_knows() -> None:
    with pytest.raises((FetchUnreachableError, FetchRefusedError)):
        check_public_host("nowhere.invalid", 80)
