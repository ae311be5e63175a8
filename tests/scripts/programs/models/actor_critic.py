# tolerance 3e-5: the loss of the policy is a sum of gains and losses that nearly cancel.
"""Actor-critic: a shared body, two heads, log-probabilities of taken actions, advantages, entropy; sums of a whole episode (2.x mint)."""
import mindspore as ms
import numpy as np
from mindspore import Tensor, mint, nn, ops

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)


class ActorCritic(nn.Cell):
    def __init__(self, states=4, actions=3, hidden=16):
        super().__init__()
        self.body = mint.nn.Linear(states, hidden)
        self.actor, self.critic = mint.nn.Linear(hidden, actions), mint.nn.Linear(hidden, 1)

    def construct(self, state):
        hidden = mint.tanh(self.body(state))
        return mint.nn.functional.softmax(self.actor(hidden), dim=-1), self.critic(hidden)


class Pendulum:
    """A stick in one dimension: pushes of -1, 0 and 1 keep it near the middle."""

    def __init__(self):
        self.random = np.random.RandomState(211)
        self.state = self.random.normal(0, 0.1, 4).astype(np.float32)

    def step(self, action):
        location, speed, angle, spin = self.state
        spin, speed = spin + 0.1 * (angle + 0.2 * (action - 1)), speed + 0.1 * (action - 1)
        self.state = np.array([location + 0.1 * speed, speed, angle + 0.1 * spin, spin], np.float32)
        return self.state, 1.0 - abs(self.state[2])


model = begin(ActorCritic(), 3, 0.5)
optimizer = nn.Adam(model.trainable_params(), learning_rate=0.01, eps=1e-5)


def play(length=8):
    world, random = Pendulum(), np.random.RandomState(7)
    states, actions, rewards = [], [], []
    for _ in range(length):
        probabilities, _ = model(Tensor(world.state[None]))
        action = int((random.rand() > np.cumsum(probabilities.asnumpy()[0])).sum())
        states.append(world.state)
        actions.append(min(action, 2))
        rewards.append(world.step(actions[-1])[1])
    returns, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + 0.95 * total
        returns.insert(0, total)
    returns = np.array(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    return Tensor(np.stack(states)), Tensor(actions, ms.int64), Tensor(returns, ms.float32)


def loss_fn(states, actions, returns):
    probabilities, values = model(states)
    log_probability = mint.log(mint.gather(probabilities, 1, mint.unsqueeze(actions, 1)).squeeze(1) + 1e-8)
    values = mint.squeeze(values, 1)
    advantage = ops.stop_gradient(returns - values)
    policy = -mint.sum(log_probability * advantage)
    value = mint.nn.functional.smooth_l1_loss(values, returns, reduction="sum")
    entropy = -mint.sum(probabilities * mint.log(probabilities + 1e-8))
    return policy + value - 0.01 * entropy, policy, value


grad_fn = ms.value_and_grad(loss_fn, None, optimizer.parameters, has_aux=True)


def episode():
    losses, grads = grad_fn(*play())
    optimizer(grads)
    return losses


train(episode, model)
report(model(Tensor(np.zeros((1, 4), np.float32))))
