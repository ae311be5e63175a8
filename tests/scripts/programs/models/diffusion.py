"""A diffusion U-Net: sinusoidal times, residual blocks with FiLM, attention, the noise predicted, and a few steps of sampling (2.x)."""
import math

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)
TIMESTEPS = 20


def rearrange(head, inputs):
    b, hc, x, y = inputs.shape
    c = hc // head
    return inputs.reshape((b, head, c, x * y))


def linear_beta_schedule(timesteps):
    return np.linspace(1e-4 * 1000 / timesteps / 10, 0.02 * 10, timesteps).astype(np.float32)


class SinusoidalPositionEmbeddings(nn.Cell):
    def __init__(self, dim):
        super().__init__()
        half_dim = dim // 2
        emb = math.log(10000) / (half_dim - 1)
        self.emb = Tensor(np.exp(np.arange(half_dim) * -emb), ms.float32)

    def construct(self, x):
        emb = x[:, None] * self.emb[None, :]
        return ops.concat((ops.sin(emb), ops.cos(emb)), axis=-1)


class Residual(nn.Cell):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def construct(self, x, *args, **kwargs):
        return self.fn(x, *args, **kwargs) + x


class Block(nn.Cell):
    def __init__(self, dim, dim_out, groups=2):
        super().__init__()
        self.proj = nn.Conv2d(dim, dim_out, 3, pad_mode="pad", padding=1)
        self.norm = nn.GroupNorm(groups, dim_out)
        self.act = nn.SiLU()

    def construct(self, x, scale_shift=None):
        x = self.norm(self.proj(x))
        if scale_shift is not None:
            scale, shift = scale_shift
            x = x * (scale + 1) + shift
        return self.act(x)


class ResnetBlock(nn.Cell):
    def __init__(self, dim, dim_out, time_emb_dim):
        super().__init__()
        self.mlp = nn.SequentialCell(nn.SiLU(), nn.Dense(time_emb_dim, dim_out * 2))
        self.block1, self.block2 = Block(dim, dim_out), Block(dim_out, dim_out)
        self.res_conv = nn.Conv2d(dim, dim_out, 1, pad_mode="valid") if dim != dim_out else nn.Identity()

    def construct(self, x, time_emb):
        time_emb = self.mlp(time_emb)
        time_emb = time_emb.expand_dims(-1).expand_dims(-1)
        scale_shift = time_emb.split(int(time_emb.shape[1] / 2), axis=1)
        h = self.block2(self.block1(x, scale_shift=scale_shift))
        return h + self.res_conv(x)


class Attention(nn.Cell):
    def __init__(self, dim, heads=2, dim_head=8):
        super().__init__()
        self.scale = dim_head ** -0.5
        self.heads = heads
        hidden_dim = dim_head * heads
        self.to_qkv = nn.Conv2d(dim, hidden_dim * 3, 1, pad_mode="valid", has_bias=False)
        self.to_out = nn.Conv2d(hidden_dim, dim, 1, pad_mode="valid", has_bias=True)

    def construct(self, x):
        b, _, h, w = x.shape
        qkv = self.to_qkv(x).chunk(3, 1)
        q, k, v = (rearrange(self.heads, t) for t in qkv)
        q = q * self.scale
        sim = ops.bmm(q.swapaxes(2, 3), k)
        attn = ops.softmax(sim, axis=-1)
        out = ops.bmm(attn, v.swapaxes(2, 3))
        out = out.swapaxes(-1, -2).reshape((b, -1, h, w))
        return self.to_out(out)


class Unet(nn.Cell):
    def __init__(self, dim=8, channels=1):
        super().__init__()
        self.init_conv = nn.Conv2d(channels, dim, 5, padding=2, pad_mode="pad", has_bias=True)
        self.time_mlp = nn.SequentialCell(SinusoidalPositionEmbeddings(dim), nn.Dense(dim, dim * 4), nn.GELU(), nn.Dense(dim * 4, dim * 4))
        self.down = nn.CellList([ResnetBlock(dim, dim, dim * 4), ResnetBlock(dim, dim * 2, dim * 4)])
        self.downsample = nn.Conv2d(dim, dim, 4, 2, pad_mode="pad", padding=1)
        self.mid_attn = Residual(nn.SequentialCell(nn.GroupNorm(1, dim * 2), Attention(dim * 2)))
        self.upsample = nn.Conv2dTranspose(dim * 2, dim, 4, 2, pad_mode="pad", padding=1)
        self.up = ResnetBlock(dim * 2, dim, dim * 4)
        self.final_conv = nn.Conv2d(dim, channels, 1)

    def construct(self, x, time):
        x = self.init_conv(x)
        t = self.time_mlp(time)
        x = self.down[0](x, t)
        skip = x
        x = self.mid_attn(self.down[1](self.downsample(x), t))
        x = self.up(ops.concat((self.upsample(x), skip), 1), t)
        return self.final_conv(x)


betas = linear_beta_schedule(TIMESTEPS)
alphas = 1.0 - betas
alphas_cumprod = np.cumprod(alphas, axis=0)
sqrt_alphas_cumprod = Tensor(np.sqrt(alphas_cumprod))
sqrt_one_minus_alphas_cumprod = Tensor(np.sqrt(1.0 - alphas_cumprod))


def extract(a, t, x_shape):
    b = t.shape[0]
    out = Tensor(a).gather(t, -1)
    return out.reshape(b, *((1,) * (len(x_shape) - 1)))


def q_sample(x_start, t, noise):
    return extract(sqrt_alphas_cumprod, t, x_start.shape) * x_start + extract(sqrt_one_minus_alphas_cumprod, t, x_start.shape) * noise


unet_model = begin(Unet(), 1, 0.7)


def forward_fn(data, t, noise):
    x_noisy = q_sample(data, t, noise)
    predicted_noise = unet_model(x_noisy, t)
    return ops.smooth_l1_loss(noise, predicted_noise).mean()


random = np.random.RandomState(101)
images, noise = (Tensor(random.randn(4, 1, 16, 16), ms.float32) for _ in range(2))
times = Tensor([0, 5, 11, 19], ms.int32)
optimizer = nn.Adam(unet_model.trainable_params(), learning_rate=nn.cosine_decay_lr(1e-7, 1e-2, 10, 10, 1), eps=1e-4)
grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=False)


def train_step():
    loss, grads = grad_fn(images, times, noise)
    optimizer(grads)
    return loss


train(train_step, unet_model)
image = noise[:1]
unet_model.set_train(False)
for index in reversed(range(16, TIMESTEPS)):
    t = ops.fill(ms.int32, (1,), index)
    mean = (image - unet_model(image, t) * float(betas[index] / np.sqrt(1 - alphas_cumprod[index]))) / float(np.sqrt(alphas[index]))
    image = mean.clip(-2, 2).astype(ms.float32)
report(image.mean(), image.std())
