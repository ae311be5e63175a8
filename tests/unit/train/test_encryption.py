"""Encrypted checkpoints: read as MindSpore wrote them, and nothing of a file that was changed."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn
from mindspore.train import CheckpointConfig

pytestmark = pytest.mark.needs("cryptography")
KEY = b"0123456789abcdef"
ENCRYPTED = {
    "AES-GCM": (
        "d85e3a7f808191e1762fe1adf193aad1fd5979666a0000001000000002b74b8fba290dca88cfae55e9f33a23520000002785a52532ab5aa1e6a112dc"
        "521aca23f0bedb2dd11beeb60f28c11e32efc3b413d65cad8c33e54225b39f63db881593d7a4232091d6c814dc6eb2d4fc28332d9a3e332d4830860b"
        "31b1eae551ebd4f429f2"
    ),
    "AES-CBC": (
        "d95e3a7f780000001000000054de90215f673f1a36a1997aa601f131600000006f028d1ea683bbd30cdcc0e3b7d24a3ffcc284d41d5159f22e22dd28"
        "338b84fe86a352e85b3cfaf98a09c5c19ae7b2388dc1eceebb6e45cab6b729490b94c5d014a1811bbc42673dbe03318897269428b066cad08a781f1d"
        "ab390bbe92d0d6f1"
    ),
    "SM4-CBC": (
        "da5e3a7f7800000010000000b1fc5650fc8d60f88b9f0a71a25dfb6560000000fb06ee1a9175bd7eadd9c8543ed8f6473b893465b74952a03bb24ebd"
        "03f1914fa8c66707b23f6b613ed067ad2cd24e22370a13574b3f1f09adbc70a572ae29e8578551fa54f1db70f9cf267dfad94673e2b556eaacb00d2d"
        "e21ab46bc5bf7643"
    ),
}
"""Files of `save_checkpoint(nn.Dense(3, 2), file, enc_key=KEY, enc_mode=...)` of MindSpore 2.10.0, in hexadecimal."""


@pytest.mark.parametrize("mode", ENCRYPTED)
def test_files_of_mindspore_are_read(tmp_path: Path, mode: str) -> None:
    (tmp_path / "net.ckpt").write_bytes(bytes.fromhex(ENCRYPTED[mode]))
    checkpoint = ms.load_checkpoint(str(tmp_path / "net.ckpt"), dec_key=KEY, dec_mode=mode)
    assert {name: value.shape for name, value in checkpoint.items()} == {"weight": (2, 3), "bias": (2,)}
    assert 0 < np.abs(checkpoint["weight"].asnumpy()).max() < 1


@pytest.mark.parametrize("mode", ENCRYPTED)
def test_what_was_saved_is_loaded(tmp_path: Path, mode: str) -> None:
    net, other = nn.Dense(3, 2), nn.Dense(3, 2)
    ms.save_checkpoint(net, str(tmp_path / "net.ckpt"), enc_key=KEY, enc_mode=mode)
    ms.load_checkpoint(str(tmp_path / "net.ckpt"), other, dec_key=KEY, dec_mode=mode)
    np.testing.assert_array_equal(other.weight.asnumpy(), net.weight.asnumpy())
    assert b"weight" not in (tmp_path / "net.ckpt").read_bytes()


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b[:60], lambda b: b[:4], lambda b: b[:-3] + bytes([b[-3] ^ 1]) + b[-2:]])
def test_a_changed_file_loads_nothing(tmp_path: Path, change: Any) -> None:
    (tmp_path / "net.ckpt").write_bytes(change(bytes.fromhex(ENCRYPTED["AES-GCM"])))
    with pytest.raises(ValueError, match=r"net.ckpt: (it is truncated|the key is another one, or the file was changed)"):
        ms.load_checkpoint(str(tmp_path / "net.ckpt"), dec_key=KEY)


@pytest.mark.parametrize(("keywords", "text"), [
    ({}, "it is encrypted"), ({"dec_key": b"1" * 16}, "the key is another one, or the file was changed"),
    ({"dec_key": KEY, "dec_mode": "AES-CBC"}, "it was encrypted with 'AES-GCM'"),
])
def test_the_wrong_key_says_so(tmp_path: Path, keywords: dict[str, Any], text: str) -> None:
    (tmp_path / "net.ckpt").write_bytes(bytes.fromhex(ENCRYPTED["AES-GCM"]))
    with pytest.raises(ValueError, match="net.ckpt: " + text):
        ms.load_checkpoint(str(tmp_path / "net.ckpt"), **keywords)


@pytest.mark.parametrize(("keywords", "kind", "text"), [
    ({"enc_key": "0123456789abcdef"}, TypeError, "save_checkpoint(enc_key=...): expected bytes, got str."),
    ({"enc_key": b"123"}, ValueError, "save_checkpoint(enc_key=...) of 3 bytes: expected 16, 24 or 32 bytes."),
    ({"enc_key": KEY, "enc_mode": "ROT13"}, ValueError, "save_checkpoint(enc_mode='ROT13'): expected 'AES-GCM', 'AES-CBC' or 'SM4-CBC'."),
])
def test_keys_that_can_not_be_used(tmp_path: Path, keywords: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        ms.save_checkpoint(nn.Dense(3, 2), str(tmp_path / "net.ckpt"), **keywords)
    assert str(caught.value).endswith(text) and not list(tmp_path.iterdir())


def test_a_plain_file_needs_no_key(tmp_path: Path) -> None:
    ms.save_checkpoint(nn.Dense(3, 2), str(tmp_path / "net.ckpt"))
    with pytest.raises(ValueError, match="it is not encrypted"):
        ms.load_checkpoint(str(tmp_path / "net.ckpt"), dec_key=KEY)


def test_a_checkpoint_config_keeps_key_and_mode() -> None:
    config = CheckpointConfig(enc_key=KEY, enc_mode="AES-CBC")
    assert (config.enc_key, config.enc_mode) == (KEY, "AES-CBC")
    with pytest.raises(ValueError, match="CheckpointConfig"):
        CheckpointConfig(enc_key=b"1")
