"""Layers and losses of `nn`."""
from __future__ import annotations

_SAME_ACTIVATIONS = "ReLU ReLU6 Sigmoid Tanh SiLU Mish Softsign Identity LogSigmoid Tanhshrink"

TABLE = """
nn.SeLU() = nn.SELU()
nn.HSwish() = nn.Hardswish()
nn.HSigmoid() = nn.Hardsigmoid()
nn.GELU(approximate=True) = @@gelu
nn.MatMul(transpose_x1=False, transpose_x2=False) = @MatMul({transpose_x1}, {transpose_x2})
nn.FastGelu() = @FastGELU()
nn.ELU(alpha=1.0) = nn.ELU(<, alpha={alpha}>)
nn.CELU(alpha=1.0) = nn.CELU(<, alpha={alpha}>)
nn.LeakyReLU(alpha=0.2) = nn.LeakyReLU({alpha})
nn.Softmax(axis=-1) = nn.Softmax(dim={axis})
nn.LogSoftmax(axis=-1) = nn.LogSoftmax(dim={axis})
nn.PReLU(channel=1, w=0.25) = nn.PReLU(<, {channel}><, init={w}>)
nn.GLU(axis=-1) = nn.GLU(<, {axis}>)
nn.Hardtanh(min_val=-1.0, max_val=1.0) = nn.Hardtanh(<, {min_val}><, {max_val}>)
nn.Flatten(start_dim=1, end_dim=-1) = nn.Flatten(<, {start_dim}><, {end_dim}>)
nn.Unflatten(axis, unflattened_size) = nn.Unflatten({axis}, {unflattened_size})
nn.Dropout(keep_prob=0.5, p=None, dtype=None) ~dtype = @@dropout
nn.Dropout1d(p=0.5) = nn.Dropout1d({p})
nn.Dropout2d(p=0.5) = nn.Dropout2d({p})
nn.Dropout3d(p=0.5) = nn.Dropout3d({p})
nn.Dense(in_channels, out_channels, weight_init=None, bias_init=None, has_bias=True, activation=None, dtype=None) = @@dense
nn.Conv1d(in_channels, out_channels, kernel_size, stride=1, pad_mode='same', padding=0, dilation=1, group=1, has_bias=False, weight_init=None, bias_init=None) = @@conv
nn.Conv2d(in_channels, out_channels, kernel_size, stride=1, pad_mode='same', padding=0, dilation=1, group=1, has_bias=False, weight_init=None, bias_init=None, data_format='NCHW') = @@conv
nn.Conv3d(in_channels, out_channels, kernel_size, stride=1, pad_mode='same', padding=0, dilation=1, group=1, has_bias=False, weight_init=None, bias_init=None, data_format='NCDHW') = @@conv
nn.Conv1dTranspose(in_channels, out_channels, kernel_size, stride=1, pad_mode='same', padding=0, dilation=1, group=1, has_bias=False, weight_init=None, bias_init=None) = @@conv_transpose
nn.Conv2dTranspose(in_channels, out_channels, kernel_size, stride=1, pad_mode='same', padding=0, output_padding=0, dilation=1, group=1, has_bias=False, weight_init=None, bias_init=None) = @@conv_transpose
nn.Conv3dTranspose(in_channels, out_channels, kernel_size, stride=1, pad_mode='same', padding=0, dilation=1, group=1, output_padding=0, has_bias=False, weight_init=None, bias_init=None, data_format='NCDHW') = @@conv_transpose
nn.BatchNorm1d(num_features, eps=1e-05, momentum=0.9, affine=True, gamma_init='ones', beta_init='zeros', moving_mean_init='zeros', moving_var_init='ones', use_batch_statistics=None, data_format='NCHW') = @@batch_norm
nn.BatchNorm2d(num_features, eps=1e-05, momentum=0.9, affine=True, gamma_init='ones', beta_init='zeros', moving_mean_init='zeros', moving_var_init='ones', use_batch_statistics=None, data_format='NCHW') = @@batch_norm
nn.BatchNorm3d(num_features, eps=1e-05, momentum=0.9, affine=True, gamma_init='ones', beta_init='zeros', moving_mean_init='zeros', moving_var_init='ones', use_batch_statistics=None) = @@batch_norm
nn.SyncBatchNorm(num_features, eps=1e-05, momentum=0.9, affine=True, gamma_init='ones', beta_init='zeros', moving_mean_init='zeros', moving_var_init='ones', use_batch_statistics=None, process_groups=None) = @@batch_norm
nn.LayerNorm(normalized_shape, begin_norm_axis=-1, begin_params_axis=-1, gamma_init='ones', beta_init='zeros', epsilon=1e-07, dtype=None) ~begin_norm_axis begin_params_axis dtype = @@layer_norm
nn.GroupNorm(num_groups, num_channels, eps=1e-05, affine=True, gamma_init='ones', beta_init='zeros') = @@group_norm
nn.InstanceNorm2d(num_features, eps=1e-05, momentum=0.1, affine=True, gamma_init='ones', beta_init='zeros') = @@instance_norm
nn.InstanceNorm1d(num_features, eps=1e-05, momentum=0.1, affine=True, gamma_init='ones', beta_init='zeros') = @@instance_norm
nn.Embedding(vocab_size, embedding_size, use_one_hot=False, embedding_table='normal', dtype=None, padding_idx=None) ~dtype use_one_hot = @@embedding
nn.EmbeddingLookup(vocab_size, embedding_size, param_init='normal', target='CPU', slice_mode='batch_slice', manual_shapes=None, max_norm=None, sparse=True) ~target slice_mode sparse = @@embedding_lookup
nn.LSTM(input_size, hidden_size, num_layers=1, has_bias=True, batch_first=False, dropout=0.0, bidirectional=False) = @LSTM({input_size}, {hidden_size}<, {num_layers}><, bias={has_bias}><, batch_first={batch_first}><, dropout={dropout}><, bidirectional={bidirectional}>)
nn.GRU(input_size, hidden_size, num_layers=1, has_bias=True, batch_first=False, dropout=0.0, bidirectional=False) = @GRU({input_size}, {hidden_size}<, {num_layers}><, bias={has_bias}><, batch_first={batch_first}><, dropout={dropout}><, bidirectional={bidirectional}>)
nn.RNN(input_size, hidden_size, num_layers=1, nonlinearity='tanh', has_bias=True, batch_first=False, dropout=0.0, bidirectional=False) = @RNN({input_size}, {hidden_size}<, {num_layers}><, nonlinearity={nonlinearity}><, bias={has_bias}><, batch_first={batch_first}><, dropout={dropout}><, bidirectional={bidirectional}>)
nn.LSTMCell(input_size, hidden_size, has_bias=True) = nn.LSTMCell({input_size}, {hidden_size}<, bias={has_bias}>)
nn.GRUCell(input_size, hidden_size, has_bias=True) = nn.GRUCell({input_size}, {hidden_size}<, bias={has_bias}>)
nn.RNNCell(input_size, hidden_size, has_bias=True, nonlinearity='tanh') = nn.RNNCell({input_size}, {hidden_size}<, bias={has_bias}><, nonlinearity={nonlinearity}>)
nn.MaxPool1d(kernel_size=1, stride=1, pad_mode='valid', padding=0, dilation=1, return_indices=False, ceil_mode=False) = @@max_pool_layer
nn.MaxPool2d(kernel_size=1, stride=1, pad_mode='valid', padding=0, dilation=1, return_indices=False, ceil_mode=False, data_format='NCHW') = @@max_pool_layer
nn.MaxPool3d(kernel_size=1, stride=1, pad_mode='valid', padding=0, dilation=1, return_indices=False, ceil_mode=False) = @@max_pool_layer
nn.AvgPool1d(kernel_size=1, stride=1, pad_mode='valid', padding=0, ceil_mode=False, count_include_pad=True) = @@avg_pool_layer
nn.AvgPool2d(kernel_size=1, stride=1, pad_mode='valid', padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None, data_format='NCHW') = @@avg_pool_layer
nn.AvgPool3d(kernel_size=1, stride=1, pad_mode='valid', padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None) = @@avg_pool_layer
nn.AdaptiveAvgPool3d(output_size) = nn.AdaptiveAvgPool3d({output_size})
nn.AdaptiveMaxPool1d(output_size) = nn.AdaptiveMaxPool1d({output_size})
nn.AdaptiveMaxPool3d(output_size, return_indices=False) = nn.AdaptiveMaxPool3d({output_size}<, return_indices={return_indices}>)
nn.AdaptiveAvgPool1d(output_size) = nn.AdaptiveAvgPool1d({output_size})
nn.AdaptiveAvgPool2d(output_size) = nn.AdaptiveAvgPool2d({output_size})
nn.AdaptiveMaxPool2d(output_size, return_indices=False) = nn.AdaptiveMaxPool2d({output_size}<, return_indices={return_indices}>)
nn.Pad(paddings, mode='CONSTANT') = @Pad({paddings}<, {mode}>)
nn.ZeroPad2d(padding) = nn.ZeroPad2d({padding})
nn.ReflectionPad2d(padding) = nn.ReflectionPad2d({padding})
nn.ConstantPad2d(padding, value) = nn.ConstantPad2d({padding}, {value})
nn.PixelShuffle(upscale_factor) = nn.PixelShuffle({upscale_factor})
nn.Upsample(size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None) = @@upsample
nn.OneHot(axis=-1, depth=1, on_value=1.0, off_value=0.0, dtype=None) = @OneHot({depth}, {on_value}, {off_value}<, axis={axis}><, dtype={dtype}>)
nn.SequentialCell(*xs) = @@sequential
nn.CellList(xs=()) = nn.ModuleList(<, {xs}>)
nn.CellList(xs=(), auto_prefix=True) ~auto_prefix = nn.ModuleList(<, {xs}>)
nn.CellDict(xs=()) = nn.ModuleDict(<, {xs}>)
nn.CrossEntropyLoss(weight=None, ignore_index=-100, reduction='mean', label_smoothing=0.0) = @CrossEntropyLoss(<, weight={weight}><, ignore_index={ignore_index}><, reduction={reduction}><, label_smoothing={label_smoothing}>)
nn.SoftmaxCrossEntropyWithLogits(sparse=False, reduction='none') = @@sparse_cross_entropy
nn.SoftmaxCrossEntropyWithLogits(sparse=False, reduction='none') = @SoftmaxCrossEntropyWithLogits(<, sparse={sparse}><, reduction={reduction}>)
nn.CTCLoss(blank=0, reduction='mean', zero_infinity=False) = nn.CTCLoss(<, blank={blank}><, reduction={reduction}><, zero_infinity={zero_infinity}>)
nn.NLLLoss(weight=None, ignore_index=-100, reduction='mean') = @NLLLoss(<, weight={weight}><, ignore_index={ignore_index}><, reduction={reduction}>)
nn.BCEWithLogitsLoss(reduction='mean', weight=None, pos_weight=None) = nn.BCEWithLogitsLoss(<, reduction={reduction}><, weight={weight}><, pos_weight={pos_weight}>)
nn.BCELoss(weight=None, reduction='mean') = nn.BCELoss(<, weight={weight}><, reduction={reduction}>)
nn.RMSELoss() = @RMSELoss()
nn.MAELoss(reduction='mean') = nn.L1Loss(<, reduction={reduction}>)
nn.MSELoss(reduction='mean') = nn.MSELoss(<, reduction={reduction}>)
nn.L1Loss(reduction='mean') = nn.L1Loss(<, reduction={reduction}>)
nn.SmoothL1Loss(beta=1.0, reduction='none') = nn.SmoothL1Loss(reduction={reduction}<, beta={beta}>)
nn.HuberLoss(reduction='mean', delta=1.0) = nn.HuberLoss(<, reduction={reduction}><, delta={delta}>)
nn.KLDivLoss(reduction='mean') = @KLDivLoss({reduction})
nn.CosineEmbeddingLoss(margin=0.0, reduction='mean') = nn.CosineEmbeddingLoss(<, margin={margin}><, reduction={reduction}>)
nn.MultiMarginLoss(p=1, margin=1.0, reduction='mean', weight=None) = nn.MultiMarginLoss(<, p={p}><, margin={margin}><, reduction={reduction}><, weight={weight}>)
nn.MultiheadAttention(embed_dim, num_heads, dropout=0.0, has_bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None, batch_first=False) = nn.MultiheadAttention({embed_dim}, {num_heads}<, dropout={dropout}><, bias={has_bias}><, add_bias_kv={add_bias_kv}><, add_zero_attn={add_zero_attn}><, kdim={kdim}><, vdim={vdim}><, batch_first={batch_first}>)  # torch begins with a bias of 0 behind the attention
nn.TransformerEncoderLayer(d_model, nhead, dim_feedforward=2048, dropout=0.1, activation='relu', layer_norm_eps=1e-05, batch_first=False, norm_first=False) = nn.TransformerEncoderLayer({d_model}, {nhead}<, {dim_feedforward}><, dropout={dropout}><, activation={activation}><, layer_norm_eps={layer_norm_eps}><, batch_first={batch_first}><, norm_first={norm_first}>)  # torch begins with a bias of 0 behind the attention
nn.TransformerDecoderLayer(d_model, nhead, dim_feedforward=2048, dropout=0.1, activation='relu', layer_norm_eps=1e-05, batch_first=False, norm_first=False) = nn.TransformerDecoderLayer({d_model}, {nhead}<, {dim_feedforward}><, dropout={dropout}><, activation={activation}><, layer_norm_eps={layer_norm_eps}><, batch_first={batch_first}><, norm_first={norm_first}>)  # torch begins with a bias of 0 behind the attention
nn.TransformerEncoder(encoder_layer, num_layers, norm=None) = nn.TransformerEncoder({encoder_layer}, {num_layers}<, norm={norm}>, enable_nested_tensor=False)
nn.TransformerDecoder(decoder_layer, num_layers, norm=None) = nn.TransformerDecoder({decoder_layer}, {num_layers}<, norm={norm}>)
nn.WithLossCell(backbone, loss_fn) = @WithLoss({backbone}, {loss_fn})
nn.get_activation(name) = @@activation
get_activation(name) = @@activation
nn.ResizeBilinear(half_pixel_centers=False) = @ResizeBilinear({half_pixel_centers})
nn.ClipByNorm(axis=None) = @ClipByNorm(<, {axis}>)
nn.Unfold(ksizes, strides, rates, padding='valid') = @Unfold({ksizes}, {strides}, {rates}<, {padding}>)
Tensor(value, dtype=None) = @@tensor
Tensor(input_data, dtype=None) = @@tensor
Tensor(shape, dtype=None, init=None) = @@initializer
load_checkpoint(ckpt_file_name) = torch.load({ckpt_file_name}, weights_only=True)  # the file is one of torch: `torchspore ckpt to-torch` writes it
load_param_into_net(net, parameter_dict, strict_load=False) = {net.}.load_state_dict({parameter_dict}, strict={strict_load})
log.debug(msg, *args) = logging.debug({msg}<, {*args}>)
log.info(msg, *args) = logging.info({msg}<, {*args}>)
log.warning(msg, *args) = logging.warning({msg}<, {*args}>)
log.error(msg, *args) = logging.error({msg}<, {*args}>)
log.critical(msg, *args) = logging.critical({msg}<, {*args}>)
nn.CentralCrop(central_fraction) = @CentralCrop({central_fraction})
Parameter(value, name=None, requires_grad=True, layerwise_parallel=False, parallel_optimizer=True) ~name layerwise_parallel parallel_optimizer = @@parameter
Parameter(default_input, name=None, requires_grad=True) ~name = @@parameter
ParameterTuple(xs) = nn.ParameterList({xs})
init.initializer(init, shape=None, dtype=None) = @@initializer
init.Normal(sigma=0.01, mean=0.0) = @@distribution
init.TruncatedNormal(sigma=0.01, mean=0.0, a=-2.0, b=2.0) = @@distribution
init.Uniform(scale=0.07) = @@distribution
init.Constant(value) = @@distribution
init.Zero() = @@distribution
init.One() = @@distribution
init.XavierUniform(gain=1) = @@distribution
init.XavierNormal(gain=1) = @@distribution
init.HeUniform(negative_slope=0, mode='fan_in', nonlinearity='leaky_relu') = @@distribution
init.HeNormal(negative_slope=0, mode='fan_in', nonlinearity='leaky_relu') = @@distribution
init.Orthogonal(gain=1.0) = @@distribution
set_seed(seed) = torch.manual_seed({seed})
"""


def lines() -> str:
    """Return the rules of this file as a text."""
    same = [f"nn.{name}() = nn.{name}()" for name in _SAME_ACTIVATIONS.split()]
    return "\n".join([TABLE, *same])
