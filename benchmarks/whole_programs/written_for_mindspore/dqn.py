"""DQN on a pole that must be balanced: 3,000 steps of a NumPy environment, each with one action and one training step on 64 transitions."""
import mindspore as ms
import numpy as np
from execution import EPOCHS, IS_GRAPH
from mindspore import nn, ops

STEPS = 1000 * EPOCHS


class Policy(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(nn.Dense(4, 128), nn.ReLU(), nn.Dense(128, 128), nn.ReLU(), nn.Dense(128, 2))

    def construct(self, state):
        return self.layers(state)


def move(state, action):
    """Return the next state of the pole and whether it fell."""
    position, speed, angle, turn = state
    force = 10.0 if action else -10.0
    pull = (force + 0.05 * turn ** 2 * np.sin(angle)) / 1.1
    swing = (9.8 * np.sin(angle) - np.cos(angle) * pull) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
    push = pull - 0.05 * swing * np.cos(angle) / 1.1
    state = np.float32([position + 0.02 * speed, speed + 0.02 * push, angle + 0.02 * turn, turn + 0.02 * swing])
    return state, abs(state[0]) > 2.4 or abs(state[2]) > 0.2


ms.set_seed(1)
policy, target = Policy(), Policy()
ms.load_param_into_net(target, policy.parameters_dict())
optimizer = nn.Adam(policy.trainable_params(), 1e-3)
loss_function = nn.SmoothL1Loss(reduction="mean")


def forward(states, actions, goals):
    chosen = ops.gather_elements(policy(states), 1, actions)
    return loss_function(chosen, goals)


gradient_function = ms.value_and_grad(forward, None, optimizer.parameters)


def train_step(states, actions, rewards, following, running):
    goals = rewards + 0.99 * running * target(following).max(axis=1, keepdims=True)
    loss, gradients = gradient_function(states, actions, goals)
    optimizer(gradients)
    return loss


if IS_GRAPH:
    train_step = ms.jit(train_step)
rows = np.random.default_rng(0)
columns = ((4, np.float32), (1, np.int32), (1, np.float32), (4, np.float32), (1, np.float32))
memory = [np.zeros((STEPS, width), dtype) for width, dtype in columns]
state = rows.uniform(-0.05, 0.05, 4).astype(np.float32)
for step in range(STEPS):
    if rows.random() < max(0.05, 1 - step / 1000):
        action = int(rows.integers(2))
    else:
        action = int(policy(ms.Tensor(state[None])).asnumpy().argmax())
    following, has_fallen = move(state, action)
    for column, value in zip(memory, (state, action, 1.0, following, 0.0 if has_fallen else 1.0)):
        column[step] = value
    state = rows.uniform(-0.05, 0.05, 4).astype(np.float32) if has_fallen else following
    if step >= 64:
        chosen = rows.integers(0, step, 64)
        loss = train_step(*(ms.Tensor(column[chosen]) for column in memory))
    if step % 200 == 0:
        ms.load_param_into_net(target, policy.parameters_dict())
    if step % 1000 == 999:
        print("loss", float(loss.asnumpy()))
