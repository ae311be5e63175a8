# tolerance 5e-4: three rollouts and six updates, and the smallest of the printed values is 0.008.
"""PPO: a policy and a value net, generalized advantages in NumPy, the clipped objective, an entropy bonus, several epochs over minibatches."""
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from measured import MODE, begin, report, train

ms.set_context(mode=MODE)


class Agent(nn.Cell):
    def __init__(self):
        super().__init__()
        self.body = nn.SequentialCell(nn.Dense(4, 12), nn.Tanh())
        self.policy, self.value = nn.Dense(12, 3), nn.Dense(12, 1)

    def construct(self, x):
        h = self.body(x)
        return self.policy(h), self.value(h).squeeze(-1)


def objective(observations, actions, old, advantages, returns):
    logits, values = agent(observations)
    log_all = ops.log_softmax(logits, axis=-1)
    log_prob = ops.gather_elements(log_all, 1, actions.expand_dims(1)).squeeze(1)
    ratio = ops.exp(log_prob - old)
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    surrogate = ops.minimum(ratio * advantages, ops.clamp(ratio, 0.8, 1.2) * advantages)
    entropy = -(ops.exp(log_all) * log_all).sum(-1).mean()
    value_loss = 0.5 * ops.square(values - returns).mean()
    return -surrogate.mean() + 0.5 * value_loss - 0.01 * entropy, (entropy, value_loss)


class Environment:
    """Points that drift; the reward says how near to nought the first number is."""

    def __init__(self, count):
        self.random = np.random.RandomState(3)
        self.state = self.random.randn(count, 4)

    def step(self, action):
        self.state = 0.9 * self.state + 0.2 * (action[:, None] - 1) + 0.05 * self.random.randn(*self.state.shape)
        return self.state.copy(), -np.abs(self.state[:, 0]), np.abs(self.state[:, 0]) > 2.5


agent = begin(Agent(), 2, 0.6)
optimizer = nn.Adam(agent.trainable_params(), 3e-3, eps=1e-5)
grad_fn = ops.value_and_grad(objective, None, optimizer.parameters, has_aux=True)


def update(*batch):
    (loss, (entropy, value_loss)), grads = grad_fn(*batch)
    grads = ops.clip_by_global_norm(grads, 0.5)
    optimizer(grads)
    return loss, entropy, value_loss


update = ms.jit(update) if MODE == ms.GRAPH_MODE else update
environment = Environment(6)
choice = np.random.RandomState(9)


def rollout(steps=5, gamma=0.95, lam=0.9):
    rows = []
    state = environment.state.copy()
    for _ in range(steps):
        logits, value = agent(Tensor(state, ms.float32))
        probabilities = ops.softmax(logits, -1).asnumpy()
        action = np.array([int((choice.rand() > np.cumsum(row)[:-1]).sum()) for row in probabilities])
        log_prob = np.log(probabilities[np.arange(6), action])
        after, reward, done = environment.step(action)
        rows.append((state, action, log_prob, value.asnumpy(), reward, done))
        state = after
    last = agent(Tensor(state, ms.float32))[1].asnumpy()
    advantage, gathered = np.zeros(6), []
    for state_, action, log_prob, value, reward, done in reversed(rows):
        delta = reward + gamma * last * ~done - value
        advantage = delta + gamma * lam * ~done * advantage
        gathered.append((state_, action, log_prob, advantage.copy(), advantage + value))
        last = value
    columns = [np.concatenate(column) for column in zip(*gathered)]
    kinds = (ms.float32, ms.int32, ms.float32, ms.float32, ms.float32)
    return [Tensor(column, kind) for column, kind in zip(columns, kinds)]


def iteration():
    batch = rollout()
    for at in range(0, 30, 15):
        result = update(*[column[at: at + 15] for column in batch])
    return result


train(iteration, agent)
report(agent(Tensor(np.eye(4), ms.float32)))
