"""Roles and the configuration of a parameter server job: bad values are refused with what was written and what is expected."""
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import mindspore as ms
import pytest
from mindspore import nn

from torchspore.distributed.parameter_server import configuration, roles


@pytest.fixture(autouse=True)
def reset(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("MS_ROLE", "MS_WORKER_NUM", "MS_SERVER_NUM", "MS_SCHED_HOST", "MS_SCHED_PORT", "MS_NODE_ID", "MS_TOPO_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    yield
    ms.reset_ps_context()


def test_marks_need_a_job() -> None:
    net = nn.Dense(2, 2)
    with pytest.raises(RuntimeError, match=r"set_param_ps of 'weight' in a process without a parameter server: expected set_ps_context"):
        net.set_param_ps()
    ms.set_ps_context(enable_ps=True)
    with pytest.raises(RuntimeError, match=r"hint: start the job with: torchspore workers -n 2 --servers 1 SCRIPT"):
        net.weight.set_param_ps()


def test_the_cluster_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {
        "MS_ROLE": "MS_SERVER", "MS_WORKER_NUM": "3", "MS_SERVER_NUM": "2", "MS_SCHED_HOST": "10.0.0.1", "MS_SCHED_PORT": "99",
        "MS_NODE_ID": "1", "MS_TOPO_TIMEOUT": "7",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert not roles.has_cluster()
    ms.set_ps_context(enable_ps=True)
    assert roles.has_cluster()
    assert roles.read() == roles.Cluster("server", 3, 2, "10.0.0.1", 99, 1, 7.0)
    ms.set_ps_context(worker_num=4, ms_role="MS_WORKER")
    assert (roles.read().workers, roles.read().role) == (4, "worker")


@pytest.mark.parametrize(("name", "variable"), [("worker_num", "MS_WORKER_NUM"), ("server_num", "MS_SERVER_NUM")])
def test_counts_are_needed(name: str, variable: str) -> None:
    ms.set_ps_context(enable_ps=True, ms_role="MS_WORKER", **({"worker_num": 1, "server_num": 1} | {name: 0}))
    with pytest.raises(ValueError, match=rf"(?s){name}=0: expected at least 1.*{variable}"):
        roles.read()


@pytest.mark.parametrize(("name", "value", "text"), [
    ("MS_ROLE", "worker", "MS_ROLE='worker': expected 'MS_WORKER', 'MS_PSERVER', 'MS_SERVER' or 'MS_SCHED'."),
    ("MS_NODE_ID", "-1", "MS_NODE_ID='-1': expected the number of this process among those of its role."),
    ("MS_NODE_ID", "one", "MS_NODE_ID='one': expected the number of this process among those of its role."),
    ("MS_TOPO_TIMEOUT", "abc", "MS_TOPO_TIMEOUT='abc': expected a number of seconds."),
    ("MS_TOPO_TIMEOUT", "nan", "MS_TOPO_TIMEOUT='nan': expected a number of seconds."),
])
def test_bad_variables_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str, text: str) -> None:
    for variable in ("MS_WORKER_NUM", "MS_SERVER_NUM"):
        monkeypatch.setenv(variable, "1")
    monkeypatch.setenv("MS_ROLE", "MS_WORKER")
    monkeypatch.setenv(name, value)
    ms.set_ps_context(enable_ps=True)
    with pytest.raises(ValueError) as error:               # a wrong role would train without servers
        nn.SGD(nn.Dense(2, 2).trainable_params(), 0.1)
    assert str(error.value) == text


def write(folder: Path, value: Any) -> None:
    path = folder / "config.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    ms.set_ps_context(config_file_path=str(path))


def test_the_configuration(tmp_path: Path) -> None:
    assert configuration.read().recovery is None and configuration.read().heartbeat == 1.0
    write(tmp_path, {"recovery": {"storage_type": 1, "storge_file_path": "snap"}, "heartbeat_interval_in_second": 0.5, "crl_path": ""})
    settings = configuration.read()
    assert settings.recovery == configuration.Recovery(tmp_path / "snap", 1)
    assert (settings.heartbeat, settings.worker_timeout, settings.path("crl_path")) == (0.5, 600.0, None)


@pytest.mark.parametrize(("value", "text"), [
    ("{", "expected a JSON file"), ("[" * 100_000, "expected a JSON file"), ("[]", "list: expected a JSON object"),
    ({"a": 1}, "'a': expected 'server_cert_path', "),
    ({"cert_expire_warning_time_in_day": 6}, "cert_expire_warning_time_in_day=6: expected a number from 7 to 180"),
    ({"heartbeat_interval_in_second": True}, "expected a number"), ({"ca_cert_path": 3}, "ca_cert_path=3: expected a str"),
    ({"recovery": 1}, "recovery=1: expected an object"), ({"recovery": {"storage_type": 2}}, "storage_type=2: expected 1"),
    ({"recovery": {}}, "recovery without storage_file_path"), ({"recovery": {"storage_file_path": "a", "save_steps": 0}}, "save_steps=0"),
])
def test_a_bad_configuration_is_refused(tmp_path: Path, value: Any, text: str) -> None:
    write(tmp_path, value)
    with pytest.raises(ValueError, match=text):
        configuration.read()


def test_an_absent_file_is_refused() -> None:
    ms.set_ps_context(config_file_path="no.json")
    with pytest.raises(ValueError, match=r"set_ps_context\(config_file_path='no.json'\): expected a file that can be read"):
        configuration.read()


def test_tls_needs_the_files(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    ms.set_ps_context(enable_ssl=True)
    with pytest.raises(ValueError, match="has no client_cert_path"):
        configuration.credentials(configuration.read(), "worker")
    write(tmp_path, {"client_cert_path": "c.p12", "ca_cert_path": "ca.crt"})
    with pytest.raises(ValueError, match=r"c.p12: expected a file that can be read"):
        configuration.credentials(configuration.read(), "worker")
    (tmp_path / "c.p12").write_bytes(b"no PKCS#12")
    with pytest.raises(ValueError, match=r"the password of set_ps_context\(client_password=...\) does not open it"):
        configuration.credentials(configuration.read(), "worker")


@pytest.mark.parametrize(("package", "extra"), [("grpc", "server"), ("cryptography", "encryption")])
def test_an_absent_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, package: str, extra: str) -> None:
    from torchspore.distributed.parameter_server import transport

    monkeypatch.setitem(sys.modules, package, None)
    ms.set_ps_context(enable_ps=True, enable_ssl=extra == "encryption")
    with pytest.raises(RuntimeError, match=rf"(?s)without the package.*pip install 'torchspore\[{extra}\]'"):
        transport._grpc() if package == "grpc" else configuration.credentials(configuration.read(), "worker")


def test_the_cache_size_of_older_releases() -> None:
    assert nn.EmbeddingLookup(5, 2, "normal", "DEVICE", "batch_slice", None, None, True, 3).vocab_cache_size == 3
    assert nn.EmbeddingLookup(5, 2, vocab_cache_size=4).vocab_cache_size == 4
    with pytest.raises(ValueError, match=r"EmbeddingLookup\(vocab_cache_size=-1\): expected an int from 0 on"):
        nn.EmbeddingLookup(5, 2, vocab_cache_size=-1)
