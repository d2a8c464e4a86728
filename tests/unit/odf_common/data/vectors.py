"""Public vectors of arrow-digest 0, computed with the published crate 53.0.0."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

UTC_MS = pa.timestamp("ms", "UTC")


class ArrayVector(NamedTuple):
    """An array, its digest alone, and that of a record of one column `x`."""

    type: pa.DataType
    values: list[Any]
    array: str
    record: str

    def to_array(self) -> pa.Array:
        """Temporal values are given as numbers in the unit of their type."""
        if not pa.types.is_temporal(self.type):
            return pa.array(self.values, self.type)
        return pa.array(self.values, pa.int32() if self.type.bit_width == 32 else pa.int64()).cast(self.type)


ARRAYS = {
    "int32": ArrayVector(
        pa.int32(),
        [1, 2, 3],
        "95d11399ecaed3721501c76f154c3430744d178831b53896cb8f54fed36fb321",
        "28fce19a913e86e31638d061ae9f872e91377762e1a1e2aa3c646c9f67081661",
    ),
    "uint32": ArrayVector(
        pa.uint32(),
        [1, 2, 3],
        "e831c2bdebc5fde2cdf84c8d0d71d4fdbb78b2e5f015aa112af03129474b4926",
        "261bc87d7ffee95c00608094c09cb639735d5140e13f754c5c44cf74efe29d71",
    ),
    "int32 with a null": ArrayVector(
        pa.int32(),
        [1, 2, None, 3],
        "20b4574d7526ce57fcdf90a4544eebfb94d9b65bc14d4dd8d2ac24d2b6adaf1f",
        "dd7e06e0c19da2ec67c6de6484676c250a13d648409116b8dcd8d10a39ff5d77",
    ),
    "bool": ArrayVector(
        pa.bool_(),
        [None, False, True, False, None, True],
        "6d539a8460608b9677a8d9f9ebcee0553d525c625ddb88352a32be71cbec5308",
        "d4e1d5ad7589013b444e162c587002246e219109280c616330ad4a81b1d68ba9",
    ),
    "utf8": ArrayVector(
        pa.string(),
        ["foo", "bar", "baz"],
        "c09fe3b0cabaef56d03b408feb328d0f0e523d130f1af88799669c88317bab85",
        "c488f99ec2fcae62eefabc76bdb501d2d72d47cd063fe60e66dd34e24ebf7f4a",
    ),
    "utf8 with a null": ArrayVector(
        pa.string(),
        ["foo", "bar", None, "baz"],
        "f884cd124a1acea39dce2477090f60db86d837ffb7e987992337d5ee71f3d6d0",
        "05905a55dc9e1d19a82281655ba704ea25a77ae2a95e374c70efc18fa397feda",
    ),
    "binary": ArrayVector(
        pa.binary(),
        [b"one", b"two"],
        "8c4eef937e340507c5681472f8909b286c61c9a74b4bf51e5e824cd4258c371a",
        "9ae60429c31e10b1f07494786d196ed53a03e4559550321c0dca6532354d5956",
    ),
    "list<int32>": ArrayVector(
        pa.list_(pa.int32()),
        [[0, 1, 2], None, [3, None, 4, 5], [6, 7]],
        "ba72d7de1b2334d11a456cc787a9f3aa358dd1a136f90278105e0641813a2671",
        "d47d1367bc67d01b19d1cc15b84ef05bdeb258322c671229cf62c2789e2fd98d",
    ),
    "int16": ArrayVector(
        pa.int16(),
        [-1, 0, 1],
        "cb5cc269af383e1f7fe6616c1e1c3427e42ee29e8a9cc7d5459817cb5e801b32",
        "beea4eaa61826ea083a8d6de201a4de1a44a8b2833701c3355645c49a8f322a0",
    ),
    "float64": ArrayVector(
        pa.float64(),
        [0.0, 1.5, -2.25, 1e300],
        "fe6053b07ea64627823a24e8ddc118717268e7af492e814fce0ce8854acb7b02",
        "a97550f02eb02b478703f3e473a1b988d0657caf99c8f1dd5f679dce3c20a6a7",
    ),
    "timestamp[ms, UTC]": ArrayVector(
        UTC_MS,
        [0, 1577880000000, None],
        "1b4dfe6f7c03afd12db338e4fa4ef8ff1b00b006859bcf3d56d818b2b4f80ae1",
        "a0d2514090b9ab2ba31978737c555d33ef959f07cb025a4b5d5272db9107d8ed",
    ),
    "timestamp[ms]": ArrayVector(
        pa.timestamp("ms"),
        [0, 1577880000000, None],
        "58683407e389bc8109a7536b4eb57e558c85f074f52508ef07353c81609c8619",
        "5257f739a4859b38048a202fc83521d25f7c4421b5fccaf784fd7a546162e1b1",
    ),
    "date32": ArrayVector(
        pa.date32(),
        [0, 18262, None],
        "8304afa15b8c0f47cdd5d87b026fb6fc9cdf3b7ccd7154e2baacfb71e0b9d607",
        "6af130c039569966704035ef6db908cf0b67e49f664f11d10667af8db58404bf",
    ),
    "time32[ms]": ArrayVector(
        pa.time32("ms"),
        [0, 43200000],
        "aa27462826e2984decb84a1923b121ad351ad60f66c6158688eb6877d128d255",
        "60703e3652c403952df6f3f658f3b5ac2586ac0d710772f1a602722c43982dce",
    ),
    "decimal128(10, 2)": ArrayVector(
        pa.decimal128(10, 2),
        [Decimal("1.23"), Decimal("-4.56"), None],
        "b2d42bebed2b482388a7626ef73e1f0592f3fa54230965d06c1f1456040248ad",
        "496709926d33cffbe81087c977b76ebc86688425891b58f7293acaea2d9f586d",
    ),
    "no int32": ArrayVector(
        pa.int32(),
        [],
        "853720ccf7d3cb0dd2605edc1197a238c839214462a0a2d506a6df6d69e7ce21",
        "6cc5d7a7dc2510b6e63dccde511bae55819bc4e046dfc1866f736519bb16524f",
    ),
    "int64, only nulls": ArrayVector(
        pa.int64(),
        [None, None],
        "5782b23215bd78a686e56b005cab9db66e94032ce1642d9b66c2fcde69776fb0",
        "688b9103fb7694376991ad0effc68045f06c880a95880ef6016425e902e728d6",
    ),
}

_PAIR = pa.struct([("c", pa.string()), ("d", pa.int32())])


def mixed() -> pa.RecordBatch:
    return pa.record_batch({"a": pa.array([1, 2, 3, 4, 5], pa.int32()), "b": pa.array(["a", "b", "c", "d", "e"])})


def nested() -> pa.RecordBatch:
    pairs = [{"c": "a", "d": 3}, {"c": "b", "d": 2}, {"c": "c", "d": 1}]
    return pa.record_batch({"a": pa.array([1, 2, 3], pa.int32()), "b": pa.array(pairs, _PAIR)})


def nested_null_struct() -> pa.RecordBatch:
    pairs = [{"c": "a", "d": 3}, None, {"c": "c", "d": 1}]
    return pa.record_batch({"a": pa.array([1, 2, 3], pa.int32()), "b": pa.array(pairs, _PAIR)})


def odf() -> pa.RecordBatch:
    return pa.record_batch(
        {
            "offset": pa.array([0, 1, 2], pa.int64()),
            "op": pa.array([0, 0, 0], pa.int32()),
            "system_time": pa.array([1577880000000] * 3).cast(UTC_MS),
            "event_time": pa.array([1262304000000, 1293840000000, 1325376000000]).cast(UTC_MS),
            "city": pa.array(["vancouver", "seattle", None]),
            "population": pa.array([675000, None, 2884000], pa.int64()),
        }
    )


def quirk() -> pa.RecordBatch:
    """Rows (a, 3), (null, 2), and a null struct with (c, 1) underneath."""
    members = [pa.array(["a", None, "c"]), pa.array([3, 2, 1], pa.int32())]
    return pa.record_batch({"b": pa.StructArray.from_arrays(members, ["c", "d"], mask=pa.array([False, False, True]))})


def two_levels() -> pa.RecordBatch:
    """v = 1, 2, null (0 underneath); s2 is null in row 1, s1 in row 0, so no row is null on both levels."""
    v = pa.Array.from_buffers(pa.int32(), 3, [pa.py_buffer(b"\x03"), pa.array([1, 2, 0], pa.int32()).buffers()[1]])
    s2 = pa.StructArray.from_arrays([v], ["v"], mask=pa.array([False, True, False]))
    s1 = pa.StructArray.from_arrays([s2], ["s2"], mask=pa.array([True, False, False]))
    return pa.record_batch({"s1": s1})


def two_and_one(batch: pa.RecordBatch) -> list[pa.RecordBatch]:
    return [batch.slice(0, 2), batch.slice(2)]


RECORDS = {
    "mixed": ([mixed()], "98c0eccc62805320769d68714e1a5fb9cd4deeb7bdb7f4d77f36259883f3ef28"),
    "nested": ([nested()], "fad2f505cc7d67eb2a3c24e137831723ce886e31e34b80bddac5f8757616aa0b"),
    "nested_null_struct": (
        [nested_null_struct()],
        "e398355e9b8c179f3f1bf0569fccc1e9a9a922c6691a61ae251295a5686178a4",
    ),
    "odf": ([odf()], "25e9be32ff0087b6610482d13791cd03e12d8f7f020e541c915aab5264b18a7e"),
    "quirk, 1 batch": ([quirk()], "e51de9b2c493bb2dd09ef293899a68d4acdb22602907b4aa6b030f0c6642a91b"),
    "quirk, batches of 2 + 1 rows": (
        two_and_one(quirk()),
        "9bddca94f3a99847929887a51d9a1f41f41a50387e2436d73f7d891a135add7e",
    ),
    "two levels, OR cancels": (
        [two_levels()],
        "3e88c108e28df2edb9cd5c8abe04f7d9752d899325d211ff966ff6b5a8c55254",
    ),
}
"""Batches and the digest of their record."""
