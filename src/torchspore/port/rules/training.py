"""Signatures of optimizers, loss scales, data sets and their methods."""
from __future__ import annotations

from torchspore.port.rules.rule import declare

OPTIMIZERS = {
    rule.name: rule.parameters for rule in (declare(left, "") for left in """
Momentum(params, learning_rate, momentum, weight_decay=0.0, loss_scale=1.0, use_nesterov=False)
SGD(params, learning_rate=0.1, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, loss_scale=1.0)
Adam(params, learning_rate=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, use_locking=False, use_nesterov=False, weight_decay=0.0, loss_scale=1.0, use_amsgrad=False, use_lazy=False, use_offload=False)
LazyAdam(params, learning_rate=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, use_locking=False, use_nesterov=False, weight_decay=0.0, loss_scale=1.0)
AdamOffload(params, learning_rate=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, use_locking=False, use_nesterov=False, weight_decay=0.0, loss_scale=1.0)
AdamWeightDecay(params, learning_rate=1e-3, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0.0)
RMSProp(params, learning_rate=0.1, decay=0.9, momentum=0.0, epsilon=1e-10, use_locking=False, centered=False, loss_scale=1.0, weight_decay=0.0)
Adagrad(params, accum=0.1, learning_rate=0.001, update_slots=True, loss_scale=1.0, weight_decay=0.0)
Adadelta(params, learning_rate=1.0, rho=0.9, epsilon=1e-6, loss_scale=1.0, weight_decay=0.0)
AdaMax(params, learning_rate=0.001, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0, loss_scale=1.0)
""".strip().splitlines())
}
FIXED_SCALE = declare("FixedLossScaleManager(loss_scale=128.0, drop_overflow_update=True)", "").parameters
DATASETS = {
    rule.name: rule.parameters for rule in (declare(left, "") for left in """
GeneratorDataset(source, column_names=None, column_types=None, schema=None, num_samples=None, num_parallel_workers=1, shuffle=None, sampler=None, num_shards=None, shard_id=None, python_multiprocessing=True, max_rowsize=None, batch_sampler=None, collate_fn=None)
MnistDataset(dataset_dir, usage=None, num_samples=None, num_parallel_workers=None, shuffle=None, sampler=None, num_shards=None, shard_id=None, cache=None)
FashionMnistDataset(dataset_dir, usage=None, num_samples=None, num_parallel_workers=None, shuffle=None, sampler=None, num_shards=None, shard_id=None, cache=None)
Cifar10Dataset(dataset_dir, usage=None, num_samples=None, num_parallel_workers=None, shuffle=None, sampler=None, num_shards=None, shard_id=None, cache=None)
Cifar100Dataset(dataset_dir, usage=None, num_samples=None, num_parallel_workers=None, shuffle=None, sampler=None, num_shards=None, shard_id=None, cache=None)
NumpySlicesDataset(data, column_names=None, num_samples=None, num_parallel_workers=1, shuffle=None, sampler=None, num_shards=None, shard_id=None)
ImageFolderDataset(dataset_dir, num_samples=None, num_parallel_workers=None, shuffle=None, sampler=None, extensions=None, class_indexing=None, decode=False, num_shards=None, shard_id=None, cache=None, decrypt=None)
CSVDataset(dataset_files, field_delim=',', column_defaults=None, column_names=None, num_samples=None, num_parallel_workers=None, shuffle=True, num_shards=None, shard_id=None, cache=None)
MindDataset(dataset_files, columns_list=None, num_parallel_workers=None, shuffle=None, num_shards=None, shard_id=None, sampler=None, padded_sample=None, num_padded=None, num_samples=None, cache=None)
batch(batch_size, drop_remainder=False, num_parallel_workers=None, per_batch_map=None, input_columns=None, output_columns=None, python_multiprocessing=False, max_rowsize=None)
map(operations, input_columns=None, output_columns=None, column_order=None, num_parallel_workers=None, python_multiprocessing=False, cache=None, callbacks=None, max_rowsize=None, offload=None)
shuffle(buffer_size)
repeat(count=None)
rename(input_columns, output_columns)
project(columns)
take(count=-1)
skip(count)
""".strip().splitlines())
}

TABLE = """
ops.GradOperation(get_all=False, get_by_list=False, sens_param=False) = @GradOperation(<get_all={get_all}><, get_by_list={get_by_list}><, sens_param={sens_param}>)
ops.HyperMap() = @HyperMap()
ops.Map() = @HyperMap()
ops.MultitypeFuncGraph(name, read_value=False) ~name read_value = @MultitypeFuncGraph()
ops.partial(fn, *args) = @with_first({fn}, {*args})
ops.Partial()(fn, *args) = @with_first({fn}, {*args})
ops.grad(fn, grad_position=0, weights=None, has_aux=False, return_ids=False) = @grad({fn}<, grad_position={grad_position}><, weights={weights}><, has_aux={has_aux}>)
ops.value_and_grad(fn, grad_position=0, weights=None, has_aux=False, return_ids=False) = @value_and_grad({fn}<, grad_position={grad_position}><, weights={weights}><, has_aux={has_aux}>)
amp.all_finite(inputs, status=None) ~ status = @all_finite({inputs})
amp.StaticLossScaler(scale_value) = @StaticLossScaler({scale_value})
amp.DynamicLossScaler(scale_value, scale_factor, scale_window) = @DynamicLossScaler({scale_value}, {scale_factor}, {scale_window})
amp.auto_mixed_precision(network, amp_level="O0", dtype=None) = @@mixed_precision
"""
