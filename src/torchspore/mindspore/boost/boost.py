"""Selection of the methods of `boost` by a level and a dictionary."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import list_choices, message, short
from torchspore.mindspore.boost.base import OptimizerProcess, ParameterProcess
from torchspore.mindspore.boost.grad_freeze import GradientFreeze
from torchspore.mindspore.boost.less_batch_normalization import LessBN
from torchspore.mindspore.boost.principal_components import local_components
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.optim import SGD
from torchspore.public_names import missing

_METHODS = ("less_bn", "grad_freeze", "adasum", "grad_accumulation", "dim_reduce", "loss_scale_group")
_LEVELS = {"O0": (), "O1": ("less_bn", "grad_freeze"), "O2": ("less_bn", "grad_freeze", "adasum")}
_MODES = ("auto", "manual", "enable_all", "disable_all")
_OPTIONS: dict[str, tuple[str, Any]] = {
    "fn_flag": ("_fn_flag", True), "gc_flag": ("_gc_flag", True), "param_groups": ("_param_groups", 10),
    "freeze_type": ("_freeze_type", 1), "freeze_p": ("_freeze_p", 0.7), "total_steps": ("_total_steps", 65536),
    "device_number": ("device_number", 8), "gradient_split_groups": ("gradient_groups", None),
    "grad_accumulation_step": ("grad_accumulation_step", 1), "rho": ("rho", 0.55), "gamma": ("gamma", 0.9), "alpha": ("alpha", 0.001),
    "sigma": ("sigma", 0.4), "n_components": ("n_components", 32), "pca_mat_path": ("pca_mat_path", None),
    "weight_load_dir": ("weight_load_dir", None), "timeout": ("timeout", 1800),
}
"""A dict from an entry of a method's dictionary to its attribute and default."""


class AutoBoost:
    """The methods of `boost` that a training uses: by `level` 'O0', 'O1' or 'O2' and by `boost_config_dict`.

    The dictionary's 'boost' has 'mode': 'auto' (the level decides), 'manual' (its other entries do), 'enable_all' or 'disable_all'; a
    dictionary under the name of each method, and 'common', has its settings. There is one AutoBoost per process: `AutoBoost()` returns the
    last one created. Raises ValueError for another mode and for invalid entries.
    """

    _instance: AutoBoost | None = None

    def __new__(cls, *_: Any, **__: Any) -> AutoBoost:
        """Return the instance of this process."""
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __init__(self, level: str | None = None, boost_config_dict: Any = "") -> None:
        if level is None and not boost_config_dict and hasattr(self, "boost_config"):
            return
        self.level = level if level in _LEVELS else "O0"
        self.boost_config_dict = boost_config_dict
        for name, default in _OPTIONS.values():
            setattr(self, name, default)
        self.local_pca_mat_path: Any = None
        self._param_processer = ParameterProcess()
        self.boost_config = self._configuration(boost_config_dict or {})

    def _configuration(self, configuration: dict[str, Any]) -> dict[str, bool]:
        selection = configuration.get("boost", {})
        mode = selection.get("mode", "auto")
        if mode not in _MODES:
            raise ValueError(message(f"AutoBoost(boost_config_dict={{'boost': {{'mode': {short(mode)}}}}})", list_choices(_MODES)))
        chosen = {name: name in _LEVELS[self.level] for name in _METHODS}
        if mode == "manual":
            chosen.update({name: selection[name] for name in _METHODS if name in selection})
        elif mode != "auto":
            chosen = dict.fromkeys(_METHODS, mode == "enable_all")
        for method, numbers in configuration.items():
            if method == "common" or chosen.get(method):
                self._set(numbers)
        return chosen

    def _set(self, numbers: dict[str, Any]) -> None:
        for name, value in numbers.items():
            if name == "gradient_split_groups" and not isinstance(value, (list, int)):
                raise ValueError(message(f"AutoBoost(gradient_split_groups={short(value)})", "a list of indexes, or an int"))
            if name in _OPTIONS:
                setattr(self, _OPTIONS[name][0], [value] if name == "gradient_split_groups" and isinstance(value, int) else value)

    def network_auto_process_train(self, network: Cell, optimizer: Any) -> tuple[Cell, Any]:
        """Returns the network and the optimizer for training."""
        if self.boost_config["dim_reduce"]:
            self.local_pca_mat_path = local_components(
                self.weight_load_dir, self.pca_mat_path, self.n_components, self.device_number, network,
            )
            optimizer = SGD(network.trainable_params(), learning_rate=1.0)
            optimizer.dim_reduce = True
            return network, optimizer
        if self.boost_config["less_bn"]:
            network, optimizer = self._less_bn(network, optimizer)
        if self.boost_config["grad_freeze"]:
            freeze = GradientFreeze(self._param_groups, self._freeze_type, self._freeze_p, self._total_steps)
            network, optimizer = freeze.freeze_generate(network, optimizer)
        if self.boost_config["adasum"]:
            optimizer.adasum = True
        return network, optimizer

    def _less_bn(self, network: Cell, optimizer: Any) -> tuple[Cell, Any]:
        network = LessBN(network, fn_flag=self._fn_flag)
        process = OptimizerProcess(optimizer)
        parameters = self._param_processer.assign_parameter_group(network.trainable_params(), self.gradient_groups)
        process.origin_params = ParameterProcess.generate_group_params(parameters, process.origin_params)
        if self._gc_flag:
            process.add_grad_centralization(network)
        return network, process.generate_new_optimizer()

    def network_auto_process_eval(self, network: Cell) -> Cell:
        """Returns the network for evaluation."""
        return LessBN(network) if self.boost_config["less_bn"] and not self.boost_config["dim_reduce"] else network


__getattr__ = missing(__name__)
